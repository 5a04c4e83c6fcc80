#pragma once
// The track store: state in memory, a journal that makes changes durable, and checkpoints that make the
// journal short. What was acknowledged is there after a crash at any moment.
//
//   change ─▶ state ─▶ journal (one sync for all that wait) ─▶ answer
//                └───▶ checkpoint: files of points synced, rows of the image, old journal files removed
//
// Safe for several threads: one changes, many read. When the journal cannot be written, those who wait are
// told; the state, which is ahead of it, is thrown away and loaded as after a crash, as soon as the disk
// takes something again. Reads go on meanwhile.
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "track/change.h"
#include "track/image.h"
#include "track/journal.h"
#include "track/state.h"

namespace slipway::track {

struct TrackerOptions {
  std::string folder;                           // of the journal and of the points
  std::uint64_t journal_bytes_max = 32u << 20;  // then a checkpoint is made
  Duration checkpoint_after = 30s;              // of the first change since the last one
};

class Tracker {
 public:
  static Result<std::unique_ptr<Tracker>> open(TrackerOptions options, Image& image, const Clock& clock);
  ~Tracker();  // with a last checkpoint

  // Runs `work`, which checks everything before it changes anything. `done` gets what it gave once that is
  // durable; on the journal's thread or the caller's: it must not wait, nor ask the tracker for anything.
  template <class T>
  void change(const Caller& caller, const std::function<Result<T>(Change&)>& work,
              std::function<void(Result<T>)> done) {
    std::unique_lock lock(mutex_);
    if (auto ready = get_ready(); !ready) {
      lock.unlock();
      return done(fail(ready.error()));
    }
    Change change(*state_, caller, now());
    auto result = std::make_shared<Result<T>>(work(change));
    const auto written = [result, done = std::move(done)](Result<void> durable) {
      done(durable ? std::move(*result) : Result<T>(fail(durable.error())));
    };
    // What changes nothing may repeat what is not durable yet.
    if (change.is_empty()) {
      lock.unlock();
      return *result ? journal_.after_synced(written) : written({});
    }
    note_change();
    journal_.append(change.take_record(), written);
  }

  // Runs `work` beside others that read. Its series are read after it.
  template <class Work>
  auto read(const Work& work) const {
    const std::shared_lock lock(mutex_);
    return work(*state_);
  }

  // Also made by itself when it is due.
  Result<void> checkpoint();

 private:
  Tracker(TrackerOptions options, Image& image, const Clock& clock);
  Result<void> load();
  Result<void> get_ready();
  void note_change();
  Millis now() const { return clock_.now().time_since_epoch().count() / 1000; }
  void run_upkeep(const std::stop_token& stop);

  const TrackerOptions options_;
  Image& image_;
  const Clock& clock_;
  mutable std::shared_mutex mutex_;
  std::unique_ptr<State> state_;  // guarded by mutex_
  Journal journal_;
  std::mutex checkpoint_mutex_;  // one at a time
  std::mutex upkeep_mutex_;
  std::condition_variable_any upkeep_wake_;
  bool is_due_ = false;      // guarded by upkeep_mutex_; a checkpoint, after a while
  bool is_due_now_ = false;  // guarded by upkeep_mutex_
  std::jthread upkeep_;
};

}  // namespace slipway::track
