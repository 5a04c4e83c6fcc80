#include "api/read_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"

namespace slipway::api {
namespace {

constexpr int niceness = 10;
constexpr std::size_t queue_max = 1'000;

// Niceness holds between the threads of one process only: a reader and a node's agent are equals to the
// kernel. So that pages which are asked for without end do not delay every start, half of the cores are left
// alone.
unsigned thread_count() { return std::clamp(std::thread::hardware_concurrency() / 2, 1U, 4U); }

void run_read(control::ReadStore& store, const ReadPool::Work& work, const ReadPool::Failed& failed) {
  if (auto begun = store.begin(); !begun) return failed(begun.error());
  work(store);
  store.end();
}

}  // namespace

ReadPool::ReadPool(Open open) : open_(std::move(open)) {
  for (unsigned i = 0; i < thread_count(); ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
}

ReadPool::~ReadPool() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

void ReadPool::post(Work work, Failed failed) {
  {
    std::unique_lock lock(mutex_);
    if (queue_.size() >= queue_max) {
      lock.unlock();
      return failed(
          {ErrorCode::unavailable,
           "too many reads wait already: the service answers them in order and keeps a bounded number",
           "try again in a second, or ask for smaller pages"});
    }
    queue_.push_back({std::move(work), std::move(failed)});
  }
  wake_.notify_one();
}

std::optional<ReadPool::Read> ReadPool::take(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!wake_.wait(lock, stop, [this] { return !queue_.empty(); }) || stop.stop_requested())
    return std::nullopt;
  Read read = std::move(queue_.front());
  queue_.pop_front();
  return read;
}

void ReadPool::run(const std::stop_token& stop) {
  // On Linux a priority belongs to the thread. Without it reads are only as quick as everything else.
  if (::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), niceness) != 0)
    log::warning("reads.priority", {{"why", "it cannot be lowered"}});
  std::shared_ptr<control::ReadStore> store;
  while (auto read = take(stop)) {
    if (!store) {
      auto opened = open_();
      if (!opened) {
        read->failed(opened.error());
        continue;
      }
      store = std::move(*opened);
    }
    run_read(*store, read->work, read->failed);
  }
}

}  // namespace slipway::api
