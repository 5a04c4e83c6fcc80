#pragma once
// The threads that answer HTTP reads, each with a connection of its own that cannot write. Neither the
// control thread nor the network's waits for a page, and both are preferred to these when cores are scarce.
//
// Bounded: a read that finds 1,000 others waiting is refused.
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "control/read_store.h"

namespace slipway::api {

class ReadPool {
 public:
  using Open = std::function<Result<std::shared_ptr<control::ReadStore>>()>;
  using Work = std::function<void(control::ReadStore&)>;
  using Failed = std::function<void(const Error&)>;

  explicit ReadPool(Open open);  // opened by each thread, when first needed
  ~ReadPool();                   // what is queued is dropped; what runs is finished

  // Everything `work` reads is of one saved turn. `failed` is called instead, on any thread, when too much
  // waits or the store cannot be read. Thread-safe.
  void post(Work work, Failed failed);

 private:
  struct Read {
    Work work;
    Failed failed;
  };
  void run(const std::stop_token& stop);
  std::optional<Read> take(const std::stop_token& stop);

  Open open_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<Read> queue_;  // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace slipway::api
