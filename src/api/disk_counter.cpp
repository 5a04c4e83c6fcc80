#include "api/disk_counter.h"

#include <chrono>
#include <utility>

#include "base/file.h"
#include "base/folder_size.h"
#include "wire/snapshot.h"

namespace slipway::api {
namespace {

constexpr std::size_t waiting_max = 10'000;
constexpr std::size_t entries_a_step = 2'000;
constexpr std::size_t results_max = 100;  // told together, in one turn of the control loop
constexpr int pauses = 3;                 // so many times as long as a step took

// All that a snapshot has, its manifest included; 0 where it is not there any more.
std::uint64_t code_size(const std::string& manifest) {
  const auto text = read_file(manifest);
  if (!text) return 0;
  const auto snapshot = wire::parse_snapshot(*text);
  if (!snapshot) return 0;
  std::uint64_t bytes = text->size();
  for (const SnapshotEntry& entry : snapshot->entries) bytes += entry.size;
  return bytes;
}

}  // namespace

struct DiskCounter::Count {
  Thing thing;
  FolderSize folder;
  std::uint64_t bytes = 0;
  bool has_more = true;
  Duration took{};

  explicit Count(Thing what) : thing(std::move(what)), folder(thing.is_code ? std::string() : thing.path) {}
  void run() {
    const auto begin = std::chrono::steady_clock::now();
    has_more = !thing.is_code && folder.count_some(entries_a_step);
    bytes = thing.is_code ? code_size(thing.path) : folder.bytes();
    took = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
  }
};

void DiskCounter::add(Thing thing) {
  if (queue_.size() >= waiting_max || !queued_.emplace(thing.key, thing.name).second) return;
  queue_.push_back(std::move(thing));
  if (!is_busy_) next();
}

void DiskCounter::next() {
  if (!results_.empty() && (queue_.empty() || results_.size() >= results_max))
    counted_(std::exchange(results_, {}));
  is_busy_ = !queue_.empty();
  if (!is_busy_) return idle_();
  const auto thing = std::make_shared<Thing>(std::move(queue_.front()));
  queue_.pop_front();
  queued_.erase({thing->key, thing->name});
  worker_.post([this, thing] {
    const auto count = std::make_shared<Count>(std::move(*thing));
    count->run();
    loop_.post([this, count] { step(count); });
  });
}

void DiskCounter::step(const std::shared_ptr<Count>& count) {
  pause_ = loop_.after(count->took * pauses, [this, count] {
    if (!count->has_more) return finish(*count);
    worker_.post([this, count] {
      count->run();
      loop_.post([this, count] { step(count); });
    });
  });
}

void DiskCounter::finish(const Count& count) {
  results_.push_back({count.thing.key, count.thing.name, count.bytes});
  next();
}

}  // namespace slipway::api
