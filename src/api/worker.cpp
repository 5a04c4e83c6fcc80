#include "api/worker.h"

namespace slipway::api {

Worker::Worker() : thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
}

bool Worker::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= 10'000) return false;
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
  return true;
}

void Worker::run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || !queue_.empty(); });
      if (stop_) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace slipway::api
