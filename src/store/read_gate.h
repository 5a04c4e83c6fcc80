#pragma once
// Lets the writer have the file to itself for a moment. SQLite begins its write-ahead log anew only when
// nobody reads from it; with readers that always overlap it would grow without end.
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace slipway::store {

class ReadGate {
 public:
  void enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !is_closed_; });
    ++readers_;
  }
  void leave() {
    {
      const std::lock_guard lock(mutex_);
      --readers_;
    }
    changed_.notify_all();
  }
  // Holds back new readers, waits for those inside, runs `work` if they left in time, and opens again.
  template <class Work>
  bool close_for(std::chrono::milliseconds patience, Work work) {
    std::unique_lock lock(mutex_);
    is_closed_ = true;
    const bool is_empty = changed_.wait_for(lock, patience, [&] { return readers_ == 0; });
    if (is_empty) work();
    is_closed_ = false;
    lock.unlock();
    changed_.notify_all();
    return is_empty;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int readers_ = 0;         // guarded by mutex_
  bool is_closed_ = false;  // guarded by mutex_
};

}  // namespace slipway::store
