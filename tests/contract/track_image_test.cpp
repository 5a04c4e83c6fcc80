// What every image of checkpoints promises; and a store that is killed while it is written to.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <future>

#include "base/file.h"
#include "base/random.h"
#include "store/track_image.h"
#include "track/memory_image.h"
#include "track/tracker.h"

namespace slipway {
namespace {

using track::EntityName;
using track::Image;
using track::Kind;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/slipway-track-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class TrackImage : public testing::TestWithParam<bool> {
 public:
  // The same again, as after a restart.
  void reopen() {
    if (!GetParam()) {
      if (!image) image = std::make_unique<track::MemoryImage>();
      return;
    }
    image.reset();
    auto opened = store::open_track_image(folder.path() + "/track.db");
    ASSERT_TRUE(opened.has_value()) << opened.error().what;
    image = std::move(*opened);
  }
  std::string contents() {
    std::string all;
    const auto number = image->load([&](const EntityName& name, std::string_view body) -> Result<void> {
      all += std::to_string(static_cast<int>(name.kind)) + "/" + name.workspace + "/" + name.id + "=" +
             std::string(body) + " ";
      return {};
    });
    return all + std::to_string(number.value_or(99));
  }
  TemporaryFolder folder;
  std::unique_ptr<Image> image;
};
INSTANTIATE_TEST_SUITE_P(All, TrackImage, testing::Bool(),
                         [](const auto& one) { return one.param ? "Sqlite" : "Memory"; });

TEST_P(TrackImage, KeepsRowsAndTheNumber) {
  reopen();
  EXPECT_EQ(contents(), "0");
  const EntityName run{Kind::run, "default", "r1"};
  ASSERT_TRUE(
      image->save(7, {{run, "a"}, {{Kind::experiment, "default", "1"}, "e"}, {{Kind::run, "b", "r1"}, "o"}}));
  EXPECT_EQ(contents(), "1/default/1=e 2/b/r1=o 2/default/r1=a 7");
  reopen();
  EXPECT_EQ(contents(), "1/default/1=e 2/b/r1=o 2/default/r1=a 7");
  const std::string bytes("\0\xff'\0", 4);
  ASSERT_TRUE(image->save(9, {{run, bytes}, {{Kind::run, "b", "r1"}, std::nullopt}}));
  reopen();
  EXPECT_EQ(contents(), "1/default/1=e 2/default/r1=" + bytes + " 9");
  ASSERT_TRUE(image->save(10, {}));
  EXPECT_TRUE(contents().ends_with(" 10"));
}

TEST_P(TrackImage, AnErrorOfARowEndsTheLoad) {
  reopen();
  ASSERT_TRUE(image->save(1, {{{Kind::run, "default", "r1"}, "a"}}));
  const auto loaded = image->load([](const EntityName&, std::string_view) -> Result<void> {
    return fail(ErrorCode::internal, "damaged");
  });
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().what, "damaged");
}

TEST(TrackImageFile, OneThatIsNoDatabaseIsRefused) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file(folder.path() + "/track.db", std::string(5'000, 'x')));
  const auto opened = store::open_track_image(folder.path() + "/track.db");
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::conflict);
}

struct FixedClock final : Clock {
  TimePoint now() const override { return TimePoint(1'700'000'000s); }
};

// One store on the folder, with checkpoints as often as it can.
struct Opened {
  explicit Opened(const std::string& folder) {
    image = store::open_track_image(folder + "/track.db").value();
    tracker = track::Tracker::open({folder + "/track", 20'000, 1ms}, *image, clock).value();
  }
  FixedClock clock;
  std::unique_ptr<Image> image;
  std::unique_ptr<track::Tracker> tracker;
};

const track::Caller ann{"default", "ann"};
constexpr int metrics = 3;

track::Point point_of(std::int64_t i) { return {i, 1'000 + i * 3, static_cast<double>(i) / 8}; }

// Logs batches until it is killed, and says of each how far it has come once it is acknowledged.
[[noreturn]] void write_until_killed(const std::string& folder, int told) {
  Opened store(folder);
  store.tracker->change<int>(
      ann,
      [](track::Change& change) -> Result<int> {
        if (change.state().run("r1")) return 0;
        change.put_experiment({"1", "fits", "", "ann", track::Lifecycle::active, 1, 1, {}});
        change.put_run(
            {"r1", "1", "calm-owl", "ann", "", track::RunStatus::running, track::Lifecycle::active, 1, {}});
        return 0;
      },
      [](const Result<int>&) {});
  std::int64_t next = store.tracker->read([](const track::State& state) {
    const auto key = state.keys().find("m0");
    const track::Run* run = state.run("r1");
    const track::Point* last = run && key ? run->metric(*key) : nullptr;
    return last ? last->step + 1 : std::int64_t{0};
  });
  constexpr std::int64_t batch = 97;
  while (true) {
    // Each batch twice, as a client that did not hear the answer: none of it may be there twice.
    for (int round = 0; round < 2; ++round)
      store.tracker->change<std::int64_t>(
          ann,
          [next](track::Change& change) -> Result<std::int64_t> {
            track::State& state = change.points();
            track::Run& run = *state.run("r1");
            for (int metric = 0; metric < metrics; ++metric) {
              const std::string name = "m" + std::to_string(metric);
              const track::KeyId key = state.keys().put(name);
              std::vector<track::Point> fresh;
              for (std::int64_t i = next; i < next + batch; ++i)
                if (!state.points_of(run).has(key, name, point_of(i)).value()) fresh.push_back(point_of(i));
              change.add_points(run, name, fresh);
            }
            return next + batch;
          },
          [told](const Result<std::int64_t>& done) {
            if (done && ::write(told, &*done, sizeof *done) != sizeof *done) ::_exit(1);
          });
    next += batch;
    if (next % (batch * 16) != 0) continue;
    // Not further ahead than the journal takes.
    std::promise<void> promise;
    store.tracker->change<int>(
        ann, [](track::Change&) -> Result<int> { return 0; },
        [&](const Result<int>&) { promise.set_value(); });
    promise.get_future().wait();
  }
}

TEST(TrackStore, KilledWhileItIsWrittenItHasEachAcknowledgedPointOnce) {
  const TemporaryFolder folder;
  Random random(15);
  std::int64_t acknowledged = 0;
  for (int round = 0; round < 20; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      write_until_killed(folder.path(), ends[1]);
    }
    ::close(ends[1]);
    // After so many acknowledgements, at whatever moment that is.
    const std::int64_t wanted = random.between(1, 60);
    for (std::int64_t heard = 0; heard < wanted; ++heard) {
      std::int64_t now = 0;
      if (::read(ends[0], &now, sizeof now) != static_cast<ssize_t>(sizeof now)) {
        int ended = 0;
        ::waitpid(child, &ended, 0);
        FAIL() << "the writer ended by itself: " << ended;
      }
      acknowledged = std::max(acknowledged, now);
    }
    ::kill(child, SIGKILL);
    for (std::int64_t now = 0; ::read(ends[0], &now, sizeof now) == sizeof now;)
      acknowledged = std::max(acknowledged, now);
    ::close(ends[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));

    const Opened store(folder.path());
    for (int metric = 0; metric < metrics; ++metric) {
      const track::Series series = store.tracker->read([&](const track::State& state) {
        return state.series(*state.run("r1"), "m" + std::to_string(metric));
      });
      const auto points = track::read_series(series);
      ASSERT_TRUE(points.has_value()) << points.error().what;
      ASSERT_GE(static_cast<std::int64_t>(points->size()), acknowledged) << "round " << round;
      for (std::size_t i = 0; i < points->size(); ++i)
        ASSERT_TRUE(track::same_point((*points)[i], point_of(static_cast<std::int64_t>(i)))) << i;
    }
  }
}

}  // namespace
}  // namespace slipway
