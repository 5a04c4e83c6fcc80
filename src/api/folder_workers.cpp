#include "api/folder_workers.h"

#include <fmt/format.h>

#include <atomic>
#include <thread>
#include <utility>

namespace slipway::api {

namespace {

constexpr std::size_t queue_max = 1'000;
constexpr auto idle_max = 60s;
constexpr std::size_t threads_max = 64;

}  // namespace

// One request. Whoever sets `is_settled` answers it.
struct FolderWorkers::Job {
  std::function<Done()> work;
  std::function<void(std::string)> refused;
  std::atomic<bool> is_settled{false};
  std::shared_ptr<net::Loop::Timer> timer;  // of the loop's thread
};

// Outlives the workers where its thread hangs: nothing in it refers to them but the loop, which is asked for
// only while they are there.
struct FolderWorkers::Folder {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Job>> queue;  // guarded by mutex
  std::shared_ptr<Job> running;            // guarded by mutex
  bool is_over = false;                    // guarded by mutex: its thread has ended, or is to
  net::Loop* loop = nullptr;               // guarded by mutex; nullptr: the workers are gone
  std::thread thread;
};

FolderWorkers::FolderWorkers(net::Loop& loop, Duration patience) : loop_(loop), patience_(patience) {}

FolderWorkers::~FolderWorkers() {
  for (auto& [name, folder] : folders_) {
    bool is_running = false;
    {
      const std::lock_guard lock(folder->mutex);
      folder->is_over = true;
      folder->loop = nullptr;
      folder->queue.clear();
      is_running = folder->running != nullptr;
    }
    folder->changed.notify_all();
    if (is_running)
      folder->thread.detach();  // it may hang for ever, and holds nothing of ours
    else
      folder->thread.join();
  }
}

bool FolderWorkers::post(const std::string& datastore, std::function<Done()> work,
                         std::function<void(std::string why)> refused) {
  std::shared_ptr<Folder>& folder = folders_[datastore];
  if (folder) {
    const std::lock_guard lock(folder->mutex);
    if (folder->is_over) folder->thread.detach();  // about to end, or ended
    if (folder->is_over) folder.reset();
  }
  if (!folder) {
    if (folders_.size() > threads_max) std::erase_if(folders_, [](const auto& each) { return !each.second; });
    if (folders_.size() > threads_max) return false;
    folder = std::make_shared<Folder>();
    folder->loop = &loop_;
    folder->thread = std::thread([folder = folder] { run(folder); });
  }
  auto job = std::make_shared<Job>();
  job->work = std::move(work);
  job->refused = std::move(refused);
  const std::lock_guard lock(folder->mutex);
  if (folder->queue.size() >= queue_max) return false;
  if (folder->running && folder->running->is_settled) {  // it hangs
    loop_.post([job] {
      if (!job->is_settled.exchange(true)) job->refused("has not answered an earlier request for a while");
    });
    return true;
  }
  job->timer = loop_.after(patience_, [job, patience = patience_] {
    if (!job->is_settled.exchange(true))
      job->refused(
          fmt::format("does not answer within {:g} s", std::chrono::duration<double>(patience).count()));
  });
  folder->queue.push_back(job);
  folder->changed.notify_all();
  return true;
}

void FolderWorkers::run(const std::shared_ptr<Folder>& folder) {
  std::unique_lock lock(folder->mutex);
  for (;;) {
    const bool is_asked =
        folder->changed.wait_for(lock, idle_max, [&] { return folder->is_over || !folder->queue.empty(); });
    if (!is_asked) folder->is_over = true;
    if (folder->is_over) return;
    const std::shared_ptr<Job> job = folder->running = std::move(folder->queue.front());
    folder->queue.pop_front();
    if (!job->is_settled) {
      lock.unlock();
      Done done = job->work();
      lock.lock();
      if (folder->loop)
        folder->loop->post([job, done = std::move(done)] {
          job->timer.reset();
          if (!job->is_settled.exchange(true)) done();
        });
    }
    folder->running.reset();
  }
}

}  // namespace slipway::api
