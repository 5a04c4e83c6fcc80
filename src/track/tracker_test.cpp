// The store on a disk: what was acknowledged is there again after a restart, whatever was cut, and nothing
// twice. The image is one in memory (tests/contract has the one over SQLite).
#include "track/tracker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>

#include "track/memory_image.h"
#include "track/view.h"

namespace slipway::track {
namespace {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/slipway-track-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct TestClock final : Clock {
  TimePoint now() const override { return TimePoint(1'700'000'000s); }
};

const Caller ann{"default", "ann"};

class Store {
 public:
  Store() { open(); }
  void open() {
    tracker.reset();
    auto opened = Tracker::open({folder.path(), 32u << 20, 1h}, image, clock);
    ASSERT_TRUE(opened.has_value()) << opened.error().what;
    tracker = std::move(*opened);
  }
  // As a crash: nothing is saved at the end.
  void crash() {
    image.fails = true;
    tracker.reset();
    image.fails = false;
    open();
  }
  Result<int> change(const std::function<Result<int>(Change&)>& work) {
    std::promise<Result<int>> promise;
    tracker->change<int>(ann, work, [&](Result<int> result) { promise.set_value(std::move(result)); });
    return promise.get_future().get();
  }
  void make_run(const std::string& id) {
    const auto made = change([&](Change& change) -> Result<int> {
      if (!change.workspace().experiments.contains("1"))
        change.put_experiment({"1", "fits", "", "ann", Lifecycle::active, 1, 1, {}});
      change.put_run(
          {id, "1", "calm-owl", "ann", "mlflow-artifacts:/1", RunStatus::running, Lifecycle::active, 1, {}});
      return 0;
    });
    ASSERT_TRUE(made.has_value());
  }
  // How many of them were new.
  int log(const std::string& id, const std::string& key, const std::vector<Point>& points) {
    return change([&](Change& change) -> Result<int> {
             track::Run& run = *change.points().run(id);
             const KeyId key_id = change.points().keys().put(key);
             std::vector<Point> fresh;
             for (const Point& point : points)
               if (!change.points().points_of(run).has(key_id, key, point).value()) fresh.push_back(point);
             change.add_points(run, key, fresh);
             return static_cast<int>(fresh.size());
           })
        .value();
  }
  std::vector<Point> points(const std::string& id, const std::string& key) const {
    const Series series =
        tracker->read([&](const State& state) { return state.series(*state.run(id), key); });
    auto read = read_series(series);
    EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().what);
    return read.value_or(std::vector<Point>());
  }
  std::uintmax_t journal_bytes() const {
    std::uintmax_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/journal"))
      bytes += entry.file_size();
    return bytes;
  }
  std::string newest_journal() const {
    std::string newest;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/journal"))
      newest = std::max(newest, entry.path().string());
    return newest;
  }

  Folder folder;
  MemoryImage image;
  TestClock clock;
  std::unique_ptr<Tracker> tracker;
};

std::vector<Point> counting(std::int64_t from, std::int64_t count) {
  std::vector<Point> points;
  for (std::int64_t i = from; i < from + count; ++i)
    points.push_back({i, 1'000'000 + i * 7, 1.0 / (1.0 + static_cast<double>(i))});
  return points;
}

void expect_counting(const std::vector<Point>& points, std::int64_t count) {
  ASSERT_EQ(points.size(), static_cast<std::size_t>(count));
  const auto wanted = counting(0, count);
  for (std::size_t i = 0; i < points.size(); ++i) ASSERT_TRUE(same_point(points[i], wanted[i])) << i;
}

TEST(Tracker, KeepsEverythingThroughCrashesAndRestarts) {
  Store store;
  store.make_run("aa11");
  EXPECT_EQ(store.log("aa11", "loss", counting(0, 3'000)), 3'000);
  ASSERT_TRUE(store.change([](Change& change) -> Result<int> {
    track::Run& run = *change.points().run("aa11");
    change.set_param(run, "lr", "0.1");
    change.set_tag(run, "team", "red");
    change.set_tag(run, "gone", "x");
    change.erase_tag(run, "gone");
    change.put_links(run, {{"mnist", "d1", "local", "here", "", "", {{"mlflow.data.context", "train"}}}},
                     {"m-1"}, {{"m-2", 7}});
    return 0;
  }));
  const auto check = [&](const char* when, std::int64_t count) {
    SCOPED_TRACE(when);
    expect_counting(store.points("aa11", "loss"), count);
    store.tracker->read([&](const State& state) {
      const track::Run& run = *state.run("aa11");
      const Keys& keys = state.keys();
      EXPECT_EQ(*run.param(*keys.find("lr")), "0.1");
      EXPECT_EQ(*run.tag(*keys.find("team")), "red");
      EXPECT_TRUE(!keys.find("gone") || !run.tag(*keys.find("gone")));
      EXPECT_EQ(run.metric(*keys.find("loss"))->step, count - 1);
      EXPECT_EQ(run.datasets.at(0).tags.at(0).value, "train");
      EXPECT_EQ(run.model_outputs.at(0).step, 7);
      EXPECT_EQ(state.workspace("default")->experiments.at("1").runs.size(), 1u);
    });
  };
  check("at once", 3'000);
  store.crash();
  check("after a crash", 3'000);
  ASSERT_TRUE(store.tracker->checkpoint());
  check("after a checkpoint", 3'000);
  EXPECT_EQ(store.journal_bytes(), 0u);
  EXPECT_EQ(store.log("aa11", "loss", counting(3'000, 500)), 500);
  store.crash();
  check("after a checkpoint and a crash", 3'500);
  ASSERT_TRUE(store.tracker->checkpoint());
  ASSERT_TRUE(store.tracker->checkpoint());  // nothing came since: its points go to the file as a whole
  EXPECT_EQ(store.tracker->read([](const State& state) { return state.run("aa11")->points != nullptr; }),
            false);
  check("when it is idle", 3'500);
  store.open();
  check("after a restart", 3'500);
  EXPECT_EQ(store.log("aa11", "loss", counting(3'400, 200)), 100);
  store.crash();
  check("after it was idle", 3'600);
}

TEST(Tracker, ARepeatedPointIsDropped) {
  Store store;
  store.make_run("bb22");
  EXPECT_EQ(store.log("bb22", "m", counting(0, 2'500)), 2'500);
  EXPECT_EQ(store.log("bb22", "m", counting(0, 2'500)), 0);
  EXPECT_EQ(store.log("bb22", "m", {{-3, 5, 1}, {-3, 5, 1.5}, {5, 5, NAN}}), 3);
  EXPECT_EQ(store.log("bb22", "m", {{-3, 5, 1.5}, {5, 5, NAN}, {-3, 5, 1}, {-3, 6, 1}}), 1);
  store.open();
  EXPECT_EQ(store.log("bb22", "m", counting(1'000, 1'500)), 0);
  ASSERT_TRUE(store.tracker->checkpoint());
  ASSERT_TRUE(store.tracker->checkpoint());
  EXPECT_EQ(store.log("bb22", "m", counting(0, 2'500)), 0);
  EXPECT_EQ(store.log("bb22", "m", {{5, 5, NAN}, {-3, 6, 1}}), 0);
  EXPECT_EQ(store.points("bb22", "m").size(), 2'504u);
  // Many points of one step: they are told apart by their time.
  std::vector<Point> same_step;
  for (int i = 0; i < 5'000; ++i) same_step.push_back({0, 1'000 + i, 1});
  EXPECT_EQ(store.log("bb22", "flat", same_step), 5'000);
  EXPECT_EQ(store.log("bb22", "flat", same_step), 0);
}

TEST(Tracker, ATornTailIsCut) {
  Store store;
  store.make_run("cc33");
  store.log("cc33", "m", counting(0, 10));
  const std::uint64_t whole = std::filesystem::file_size(store.newest_journal());
  store.log("cc33", "m", counting(10, 10));
  const std::string file = store.newest_journal();
  const std::uint64_t end = std::filesystem::file_size(file);
  std::string bytes(end, '\0');
  std::ifstream(file).read(bytes.data(), static_cast<std::streamsize>(end));
  store.image.fails = true;
  store.tracker.reset();
  store.image.fails = false;
  for (std::uint64_t cut = whole; cut < end; cut += 5) {
    std::ofstream(file, std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(cut));
    const auto opened = Tracker::open({store.folder.path(), 32u << 20, 1h}, store.image, store.clock);
    ASSERT_TRUE(opened.has_value()) << opened.error().what;
    store.image.fails = true;
    const Series series =
        (*opened)->read([&](const State& state) { return state.series(*state.run("cc33"), "m"); });
    expect_counting(read_series(series).value(), 10);
  }
}

TEST(Tracker, MissingRecordsAreAnErrorAndNothingIsLost) {
  Store store;
  store.make_run("dd44");
  store.image.fails = true;
  EXPECT_FALSE(store.tracker->checkpoint());  // the next record begins a file
  store.image.fails = false;
  const std::string first = store.newest_journal();
  store.log("dd44", "m", counting(0, 10));
  ASSERT_NE(store.newest_journal(), first);
  store.image.fails = true;
  store.tracker.reset();
  std::filesystem::rename(first, store.folder.path() + "/away");
  const auto opened = Tracker::open({store.folder.path(), 32u << 20, 1h}, store.image, store.clock);
  ASSERT_FALSE(opened.has_value());
  EXPECT_NE(opened.error().what.find("are missing"), std::string::npos);
  std::filesystem::rename(store.folder.path() + "/away", first);
  store.open();
  expect_counting(store.points("dd44", "m"), 10);
}

TEST(Tracker, AJournalThatCannotBeWrittenRefusesAndRecovers) {
  Store store;
  store.make_run("ee55");
  store.log("ee55", "m", counting(0, 10));
  ASSERT_TRUE(store.tracker->checkpoint());  // the next record begins a file, in a folder that is none
  std::filesystem::rename(store.folder.path() + "/journal", store.folder.path() + "/away");
  std::ofstream(store.folder.path() + "/journal") << "no folder";
  const auto add = [](Change& change) -> Result<int> {
    change.add_points(*change.points().run("ee55"), "m", counting(10, 10));
    return 0;
  };
  for (int i = 0; i < 3; ++i) {
    const auto refused = store.change(add);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  }
  std::filesystem::remove(store.folder.path() + "/journal");
  std::filesystem::rename(store.folder.path() + "/away", store.folder.path() + "/journal");
  ASSERT_TRUE(store.change(add).has_value());
  expect_counting(store.points("ee55", "m"), 20);
  store.crash();
  expect_counting(store.points("ee55", "m"), 20);
}

TEST(Tracker, ViewsOfLongSeriesKeepPeaks) {
  Store store;
  store.make_run("ff66");
  std::vector<Point> points = counting(0, 60'000);
  points[31'234].value = 77;
  points[12'345].value = -77;
  store.log("ff66", "m", points);
  for (int round = 0; round < 2; ++round) {
    const Series series =
        store.tracker->read([&](const State& state) { return state.series(*state.run("ff66"), "m"); });
    for (const std::size_t limit : {50UL, 1'000UL}) {  // of blocks, and of points
      const auto view = read_view(series, limit).value();
      EXPECT_LE(view.size(), limit);
      EXPECT_GE(view.size(), limit / 3);
      EXPECT_TRUE(
          std::any_of(view.begin(), view.end(), [](const Point& point) { return point.value == 77; }));
      EXPECT_TRUE(
          std::any_of(view.begin(), view.end(), [](const Point& point) { return point.value == -77; }));
      EXPECT_EQ(view.front().step, 0);
      EXPECT_EQ(view.back().step, 59'999);
    }
    ASSERT_TRUE(store.tracker->checkpoint());
    ASSERT_TRUE(store.tracker->checkpoint());
  }
}

}  // namespace
}  // namespace slipway::track
