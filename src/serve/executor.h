#pragma once
// Runs models for requests: small ones at once on the caller's thread, others on a pool of threads; with
// batching, all of them through the queues.
//
// A request whose deadline has passed is not run. What waits is bounded; more is refused with UNAVAILABLE.
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "serve/batching.h"
#include "serve/metrics.h"
#include "serve/model_manager.h"

namespace slipway::serve {

struct ExecutorOptions {
  std::optional<BatchingParameters> batching{};
  int threads = 1;
  std::size_t waiting_max = 1024;  // requests; without batching
  double inline_work_max = 2e6;    // multiply-adds that may be done on the caller's thread
};

struct Execution {
  std::string model_name;
  ServedModel served;
  std::string signature;
  std::string api;  // predict: for metrics
  Tensors inputs;
  TimePoint deadline = TimePoint::max();
  // Called exactly once, before execute() returns or from another thread.
  std::function<void(Answer<Tensors>)> done;
};

class Executor {
 public:
  Executor(ExecutorOptions options, const Clock& clock, Metrics& metrics);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor() { stop(); }
  void stop();  // ends the threads; what waits is answered UNAVAILABLE, from here

  void execute(Execution execution);

 private:
  struct Waiting {  // of a batching queue
    Execution execution;
    TimePoint since;
    std::int64_t rows = 0;
    std::int64_t taken = 0;                   // rows that a batch has
    std::int64_t pending = 0;                 // rows not answered yet
    std::map<std::int64_t, Tensors> parts{};  // by first row
    std::optional<Failure> failure{};
  };
  struct Part {  // of a task, in a batch
    BatchTaskId id;
    std::int64_t first, rows;
    Tensors inputs;
  };
  using Lock = std::unique_lock<std::mutex>;

  void run_now(Execution& execution);
  void enqueue(Execution execution);
  void work(const std::stop_token& stop);
  void run_batch(const Batch& batch, Lock& lock);
  std::vector<Part> take_parts(const Batch& batch, Execution& of);
  void finish(const std::vector<Part>& parts, const Answer<Tensors>& outputs, Lock& lock);
  static Answer<Tensors> assembled(Waiting& waiting);

  ExecutorOptions options_;
  const Clock& clock_;
  Metrics& metrics_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Execution> waiting_;                   // guarded by mutex_
  std::optional<BatchQueues> queues_;               // guarded by mutex_
  std::unordered_map<BatchTaskId, Waiting> tasks_;  // guarded by mutex_
  BatchTaskId next_id_ = 1;                         // guarded by mutex_
  bool is_stopping_ = false;                        // guarded by mutex_
  std::vector<std::jthread> threads_;
};

// The inputs of several requests as those of one; `padded` rows are added, copies of the last one's first
// row.
Answer<Tensors> join_inputs(const std::vector<const Tensors*>& parts, std::int64_t padded, bool pads_lengths);
// Rows of the inputs: their first dimension, which all of them share.
Answer<std::int64_t> row_count(const Tensors& inputs);

}  // namespace slipway::serve
