// What tracking costs by itself, without HTTP: searches, views, bytes and memory.
//
//   track search RUNS METRICS ROUNDS   milliseconds of each search: one filter, one order, the first 1,000 as
//   JSON track view FOLDER POINTS ROUNDS    milliseconds of each view of 1,000 points; then bytes a point on
//   the disk track memory RUNS METRICS          bytes that so many idle runs take track batch FOLDER SECONDS
//   points a second: 8 threads, batches of 1,000, each durable
#include <fmt/format.h>
#include <malloc.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <thread>

#include "base/random.h"
#include "base/resident.h"
#include "compat/mlflow/output.h"
#include "store/track_image.h"
#include "track/experiments.h"
#include "track/runs.h"
#include "track/search.h"
#include "track/tracker.h"

using namespace slipway;

namespace {

using Timer = std::chrono::steady_clock;
double milliseconds_since(Timer::time_point begin) {
  return std::chrono::duration<double, std::milli>(Timer::now() - begin).count();
}

const track::Caller caller{"default", "ann"};

// As training logs it: a float that falls, with noise, every 100 ms or so.
std::vector<track::Point> loss_curve(std::int64_t from, std::int64_t count, Random& random) {
  std::vector<track::Point> points;
  for (std::int64_t i = from; i < from + count; ++i)
    points.push_back({i, 1'700'000'000'000 + i * 100 + random.between(0, 20),
                      static_cast<double>(static_cast<float>(
                          0.2 + 2.0 / (1.0 + static_cast<double>(i) / 5'000) + 0.05 * random.unit()))});
  return points;
}

void add_runs(track::State& state, std::size_t runs, std::size_t metrics) {
  Random random(1);
  track::Change change(state, caller, 1'700'000'000'000);
  track::add_default_experiment(change);
  for (std::size_t i = 0; i < runs; ++i) {
    const std::string id = fmt::format("{:032x}", i);
    state.put_run("default", {id, "0", "calm-owl-" + std::to_string(i), "ann", "mlflow-artifacts:/0/" + id,
                              track::RunStatus::finished, track::Lifecycle::active,
                              1'700'000'000'000 + static_cast<std::int64_t>(i), 1'700'000'100'000});
    track::Run& run = *state.run(id);
    state.set_param(run, "model", i % 2 ? "lr" : "svm");
    for (std::size_t key = 0; key < metrics; ++key)
      run.latest.push_back(
          {state.keys().put("metric_" + std::to_string(key)), {100, 1'700'000'000'000, random.unit()}});
    run.latest.shrink_to_fit();
  }
  state.take_changed();
}

int search(std::size_t runs, std::size_t metrics, int rounds) {
  track::State state("/nonexistent");
  add_runs(state, runs, metrics);
  track::SearchRequest request;
  request.filter = "metrics.metric_3 > 0.5";
  request.order_by = {"metrics.metric_7 DESC"};
  for (int round = 0; round < rounds; ++round) {
    const auto begin = Timer::now();
    const auto page = track::search_runs(state, "default", {"0"}, request);
    mlflow::Json json;
    json.begin_list();
    for (const track::Run* run : page.value().items) put(json, state, *run);
    const std::string text = json.end_list().take();
    std::printf("%.2f\n", milliseconds_since(begin));
    if (text.size() < 1'000) return 1;
  }
  return 0;
}

struct Opened {
  explicit Opened(const std::string& folder)
      : image(store::open_track_image(folder + "/track.db").value()),
        tracker(track::Tracker::open({folder + "/track"}, *image, clock).value()) {}
  void change(const std::function<Result<int>(track::Change&)>& work) {
    std::promise<Result<int>> done;
    tracker->change<int>(caller, work, [&](Result<int> result) { done.set_value(std::move(result)); });
    if (auto result = done.get_future().get(); !result) {
      std::fprintf(stderr, "%s\n", result.error().what.c_str());
      std::exit(1);
    }
  }
  void add_run(const std::string& id) {
    change([&](track::Change& change) -> Result<int> {
      track::add_default_experiment(change);
      track::NewRun run;
      run.id = id;
      return create_run(change, run).map([](const track::Run*) { return 0; });
    });
  }
  void log(const std::string& id, const track::Batch& batch) {
    change([&](track::Change& change) { return log_batch(change, id, batch).map([] { return 0; }); });
  }
  SystemClock clock;
  std::unique_ptr<track::Image> image;
  std::unique_ptr<track::Tracker> tracker;
};

track::Batch batch_of(const std::string& key, const std::vector<track::Point>& points) {
  track::Batch batch;
  for (const track::Point& point : points) batch.metrics.push_back({key, point});
  return batch;
}

int view(const std::string& folder, std::int64_t points, int rounds) {
  {
    Opened store(folder);
    store.add_run("r1");
    Random random(2);
    for (std::int64_t from = 0; from < points; from += 1'000)
      store.log("r1", batch_of("loss", loss_curve(from, 1'000, random)));
    for (int i = 0; i < 2; ++i)
      if (!store.tracker->checkpoint()) return 1;  // twice: then it is idle
  }
  Opened store(folder);
  for (int round = 0; round < rounds; ++round) {
    const auto begin = Timer::now();
    const auto series =
        store.tracker->read([](const track::State& state) { return state.series(*state.run("r1"), "loss"); });
    const auto seen = track::read_view(series, 1'000);
    if (!seen || seen->size() < 300) return 1;
    std::printf("%.2f\n", milliseconds_since(begin));
  }
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) bytes += entry.file_size();
  std::printf("%.2f\n", static_cast<double>(bytes) / static_cast<double>(points));
  return 0;
}

int memory(std::size_t runs, std::size_t metrics) {
  const auto before = ::mallinfo2();
  track::State state("/nonexistent");
  add_runs(state, runs, metrics);
  const auto after = ::mallinfo2();
  std::printf("%zu\n", after.uordblks + after.hblkhd - before.uordblks - before.hblkhd);
  return 0;
}

int batch(const std::string& folder, int seconds) {
  Opened store(folder);
  constexpr int writers = 8;
  std::atomic<std::int64_t> logged{0};
  for (int i = 0; i < writers; ++i) store.add_run("r" + std::to_string(i));
  const auto begin = Timer::now();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < writers; ++i)
      threads.emplace_back([&, i] {
        Random random(static_cast<std::uint64_t>(i));
        for (std::int64_t from = 0; milliseconds_since(begin) < seconds * 1e3; from += 1'000) {
          store.log("r" + std::to_string(i), batch_of("loss", loss_curve(from, 1'000, random)));
          logged += 1'000;
        }
      });
  }
  std::printf("%.0f\n", static_cast<double>(logged) / milliseconds_since(begin) * 1e3);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "search" && argc == 5)
    return search(std::strtoul(argv[2], nullptr, 10), std::strtoul(argv[3], nullptr, 10), std::atoi(argv[4]));
  if (what == "view" && argc == 5) return view(argv[2], std::atoll(argv[3]), std::atoi(argv[4]));
  if (what == "memory" && argc == 4)
    return memory(std::strtoul(argv[2], nullptr, 10), std::strtoul(argv[3], nullptr, 10));
  if (what == "batch" && argc == 4) return batch(argv[2], std::atoi(argv[3]));
  std::fprintf(stderr,
               "usage: %s search RUNS METRICS ROUNDS | view FOLDER POINTS ROUNDS | memory RUNS METRICS | "
               "batch FOLDER SECONDS\n",
               argv[0]);
  return 2;
}
