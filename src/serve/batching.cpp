#include "serve/batching.h"

#include <fmt/format.h>

#include <algorithm>

namespace slipway::serve {

Result<void> check(const BatchingParameters& parameters) {
  const auto refuse_parameter = [](std::string what, const char* hint) {
    return fail(ErrorCode::invalid, std::move(what), hint);
  };
  if (parameters.max_batch_size < 1 || parameters.max_batch_size > 1'000'000)
    return refuse_parameter(fmt::format("max_batch_size is {}", parameters.max_batch_size),
                            "1 to 1000000 rows");
  if (parameters.timeout.count() < 0)
    return refuse_parameter(fmt::format("batch_timeout_micros is {}", parameters.timeout.count()),
                            "0 or more");
  if (parameters.max_enqueued_batches < 1)
    return refuse_parameter(fmt::format("max_enqueued_batches is {}", parameters.max_enqueued_batches),
                            "at least 1");
  if (parameters.threads < 0 || parameters.threads > 1024)
    return refuse_parameter(fmt::format("num_batch_threads is {}", parameters.threads), "1 to 1024 threads");
  const bool has_execution_size = parameters.max_execution_batch_size != 0;
  if (has_execution_size && (parameters.max_execution_batch_size < 1 ||
                             parameters.max_execution_batch_size > parameters.max_batch_size))
    return refuse_parameter(
        fmt::format("max_execution_batch_size is {}", parameters.max_execution_batch_size),
        "1 to max_batch_size");
  const auto& sizes = parameters.allowed_batch_sizes;
  if (!sizes.empty() &&
      (sizes.front() < 1 || sizes.back() != parameters.execution_size_max() ||
       std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()) != sizes.end()))
    return refuse_parameter("allowed_batch_sizes do not rise to the largest batch",
                            "list them ascending; the last one equals max_batch_size "
                            "(with splitting: max_execution_batch_size)");
  return {};
}

std::int64_t padded_size(const BatchingParameters& parameters, std::int64_t rows) {
  for (const std::int64_t size : parameters.allowed_batch_sizes)
    if (size >= rows) return size;
  return rows;
}

// How many batches the queue has once these rows are in it.
std::size_t BatchQueues::batches_after(const Queue& queue, std::int64_t rows) const {
  const std::int64_t size = parameters_.execution_size_max();
  const std::int64_t space = queue.empty() ? 0 : size - queue.back().rows;
  if (rows <= space) return queue.size();
  const std::int64_t rest = parameters_.splits_large_batches ? rows - space : rows;
  return queue.size() + static_cast<std::size_t>((rest + size - 1) / size);
}

void BatchQueues::append(Queue& queue, BatchTask task, TimePoint now) const {
  const std::int64_t size = parameters_.execution_size_max();
  std::int64_t left = task.rows;
  do {
    const std::int64_t space = queue.empty() ? 0 : size - queue.back().rows;
    const bool opens = parameters_.splits_large_batches ? space <= 0 && left > 0 : left > space;
    if (opens || queue.empty()) queue.push_back({{}, 0, now});
    Waiting& batch = queue.back();
    const std::int64_t part = std::min(left, size - batch.rows);
    batch.tasks.push_back({task.id, part});
    batch.rows += part;
    left -= part;
  } while (left > 0);
}

Answer<void> BatchQueues::enqueue(const std::string& name, BatchTask task, TimePoint now) {
  if (task.rows > parameters_.max_batch_size)
    return invalid(fmt::format("Task size {} is larger than maximum input batch size {}", task.rows,
                               parameters_.max_batch_size));
  const auto found = queues_.find(name);
  static const Queue none;
  const Queue& before = found == queues_.end() ? none : found->second;
  if (batches_after(before, task.rows) > static_cast<std::size_t>(parameters_.max_enqueued_batches))
    return refuse(
        Code::unavailable,
        fmt::format("The batch scheduling queue to which this task was submitted is full: {} batches "
                    "wait for {}; try again later",
                    before.size(), name));
  append(queues_[name], task, now);
  return {};
}

bool BatchQueues::is_ready(const Queue& queue, TimePoint now) const {
  const Waiting& first = queue.front();
  return queue.size() > 1 || first.rows >= parameters_.execution_size_max() ||
         now >= first.since + parameters_.timeout;
}

std::optional<Batch> BatchQueues::take(TimePoint now) {
  const auto start = queues_.upper_bound(last_taken_);
  auto ready =
      std::find_if(start, queues_.end(), [&](const auto& entry) { return is_ready(entry.second, now); });
  if (ready == queues_.end())
    ready =
        std::find_if(queues_.begin(), start, [&](const auto& entry) { return is_ready(entry.second, now); });
  // find_if over [begin, start) gives start when there is none.
  if (ready == queues_.end() || !is_ready(ready->second, now)) return std::nullopt;
  Waiting first = std::move(ready->second.front());
  ready->second.pop_front();
  Batch batch{ready->first, std::move(first.tasks), first.rows};
  last_taken_ = ready->first;
  if (ready->second.empty()) queues_.erase(ready);
  return batch;
}

std::optional<TimePoint> BatchQueues::ready_at() const {
  std::optional<TimePoint> first;
  for (const auto& entry : queues_) {
    const TimePoint at = entry.second.front().since + parameters_.timeout;
    if (!first || at < *first) first = at;
  }
  return first;
}

std::size_t BatchQueues::waiting_batches() const {
  std::size_t count = 0;
  for (const auto& entry : queues_) count += entry.second.size();
  return count;
}

}  // namespace slipway::serve
