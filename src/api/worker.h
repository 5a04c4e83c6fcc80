#pragma once
// One thread for slow work on disks (hashing, syncing, deleting), so that the network's thread never waits
// for one.
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace slipway::api {

class Worker {
 public:
  Worker();
  ~Worker();  // what is queued is dropped; what runs is finished
  // false when 10,000 pieces of work wait already. Thread-safe.
  bool post(std::function<void()> work);

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;  // guarded by mutex_
  bool stop_ = false;                        // guarded by mutex_
  std::jthread thread_;
};

}  // namespace slipway::api
