#pragma once
// The batching queues: requests of few rows wait a little and run together. Pure: knows tasks by number and
// rows, and the clock is handed in.
//
// One queue per model, version and signature. Only its last batch is open; a task that does not fit closes it
// and opens the next. A batch is ready when it is closed, full, or its first task has waited for the
// time-out; a free thread takes ready batches of the queues in turn.
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "serve/failure.h"

namespace slipway::serve {

struct BatchingParameters {
  std::int64_t max_batch_size = 1000;  // rows
  Duration timeout{0};
  std::int64_t max_enqueued_batches = 10;
  std::int64_t threads = 0;                         // 0: as many as cores
  std::vector<std::int64_t> allowed_batch_sizes{};  // ascending, the last equals the largest batch
  bool pads_variable_lengths = false;
  bool splits_large_batches = false;
  std::int64_t max_execution_batch_size = 0;  // with splitting; 0: max_batch_size
  friend bool operator==(const BatchingParameters&, const BatchingParameters&) = default;

  std::int64_t execution_size_max() const {
    return splits_large_batches && max_execution_batch_size > 0 ? max_execution_batch_size : max_batch_size;
  }
};
Result<void> check(const BatchingParameters& parameters);

// The rows a batch of `rows` is run with: the next allowed size.
std::int64_t padded_size(const BatchingParameters& parameters, std::int64_t rows);

using BatchTaskId = std::uint64_t;

struct BatchTask {
  BatchTaskId id = 0;
  std::int64_t rows = 0;
  friend bool operator==(const BatchTask&, const BatchTask&) = default;
};

struct Batch {
  std::string queue;
  std::vector<BatchTask> tasks;  // a task that was split occurs in several batches, its parts in order
  std::int64_t rows = 0;
};

class BatchQueues {
 public:
  explicit BatchQueues(BatchingParameters parameters) : parameters_(std::move(parameters)) {}

  // UNAVAILABLE when the queue is full, INVALID_ARGUMENT when the task is larger than a batch may be; then
  // nothing of it is queued.
  Answer<void> enqueue(const std::string& queue, BatchTask task, TimePoint now);
  // The next ready batch, of the queue whose turn it is.
  std::optional<Batch> take(TimePoint now);
  // When the next batch that is not ready now becomes so by its age.
  std::optional<TimePoint> ready_at() const;
  std::size_t waiting_batches() const;
  const BatchingParameters& parameters() const { return parameters_; }

 private:
  struct Waiting {
    std::vector<BatchTask> tasks;
    std::int64_t rows = 0;
    TimePoint since{};
  };
  using Queue = std::deque<Waiting>;
  bool is_ready(const Queue& queue, TimePoint now) const;
  void append(Queue& queue, BatchTask task, TimePoint now) const;
  std::size_t batches_after(const Queue& queue, std::int64_t rows) const;

  BatchingParameters parameters_;
  std::map<std::string, Queue> queues_;  // none is empty
  std::string last_taken_;
};

}  // namespace slipway::serve
