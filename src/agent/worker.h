#pragma once
// One thread for work that blocks (copying code, fetching it), so that the agent's own thread never does.
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace slipway::agent {

class Worker {
 public:
  using Work = std::function<void(std::stop_token)>;

  explicit Worker(std::size_t queue_max)
      : queue_max_(queue_max), thread_([this](std::stop_token stop) { run(stop); }) {}

  // False, and nothing happens, when queue_max pieces wait already.
  bool post(Work work) {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= queue_max_) return false;
    queue_.push_back(std::move(work));
    changed_.notify_one();
    return true;
  }

 private:
  void run(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !queue_.empty(); })) {
      const Work work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work(stop);
      lock.lock();
      if (stop.stop_requested()) return;
    }
  }

  const std::size_t queue_max_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Work> queue_;  // guarded by mutex_
  std::jthread thread_;     // last, so that it ends before what it uses
};

}  // namespace slipway::agent
