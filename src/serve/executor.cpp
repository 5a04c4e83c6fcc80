#include "serve/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace slipway::serve {
namespace {

constexpr const char* stopping = "the server is stopping";

double elapsed_us(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - since).count();
}

double request_work(const Execution& execution) {
  const auto rows = row_count(execution.inputs);
  return execution.served.model->work_per_row() * static_cast<double>(rows ? *rows : 1);
}

Failure too_late() { return {Code::deadline_exceeded, "the request's time was over before its turn came"}; }

}  // namespace

Executor::Executor(ExecutorOptions options, const Clock& clock, Metrics& metrics)
    : options_(std::move(options)), clock_(clock), metrics_(metrics) {
  int threads = options_.threads;
  if (options_.batching) {
    queues_.emplace(*options_.batching);
    if (options_.batching->threads > 0) threads = static_cast<int>(options_.batching->threads);
  }
  for (int i = 0; i < std::max(threads, 1); ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

void Executor::stop() {
  std::vector<Execution> left;
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    for (Execution& execution : waiting_) left.push_back(std::move(execution));
    waiting_.clear();
  }
  for (auto& thread : threads_) thread.request_stop();
  changed_.notify_all();
  threads_.clear();  // joins
  for (auto& task : tasks_) left.push_back(std::move(task.second.execution));
  tasks_.clear();
  for (Execution& execution : left) execution.done(refuse(Code::unavailable, stopping));
}

void Executor::execute(Execution execution) {
  if (options_.batching) return enqueue(std::move(execution));
  if (request_work(execution) <= options_.inline_work_max) return run_now(execution);
  {
    const std::lock_guard lock(mutex_);
    if (!is_stopping_ && waiting_.size() < options_.waiting_max) {
      waiting_.push_back(std::move(execution));
      changed_.notify_one();
      return;
    }
  }
  execution.done(refuse(Code::unavailable,
                        fmt::format("{} requests wait already; try again later", options_.waiting_max)));
}

void Executor::run_now(Execution& execution) {
  if (execution.deadline < clock_.now()) return execution.done(refuse(too_late()));
  const auto begun = std::chrono::steady_clock::now();
  auto outputs = execution.served.model->run(execution.signature, execution.inputs);
  if (outputs) {
    const auto rows = row_count(execution.inputs);
    metrics_.count_run(execution.model_name, execution.api, elapsed_us(begun), rows ? *rows : 1);
  }
  execution.served.model.reset();  // a version may go as soon as it has answered
  execution.done(std::move(outputs));
}

// --- batching

Answer<std::int64_t> row_count(const Tensors& inputs) {
  std::optional<std::int64_t> rows;
  for (const auto& [name, tensor] : inputs) {
    if (tensor.shape.empty())
      return invalid("Batching session Run() input tensors must have at least one dimension.");
    if (rows && *rows != tensor.shape[0])
      return invalid("Batching session Run() input tensors must have equal 0th-dimension size.");
    rows = tensor.shape[0];
  }
  return rows.value_or(0);
}

namespace {

// The tensor with every dimension but the first grown to `shape`, filled with its own first element.
Tensor padded_to(const Tensor& tensor, const Shape& shape) {
  Shape to = shape;
  to[0] = tensor.shape[0];
  if (to == tensor.shape || tensor.count() == 0) return tensor;
  Tensor grown{tensor.type, to, {}, {}};
  const std::uint64_t count = element_count(to).value_or(0);
  const std::size_t size = names(tensor.type).size;
  Shape at(to.size(), 0);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t from = 0;
    bool is_inside = true;
    for (std::size_t d = 0; d < to.size(); ++d) {
      is_inside = is_inside && at[d] < tensor.shape[d];
      from = from * static_cast<std::uint64_t>(tensor.shape[d]) + static_cast<std::uint64_t>(at[d]);
    }
    if (!is_inside) from = 0;
    if (tensor.type == DataType::string) {
      grown.strings.push_back(tensor.strings[from]);
    } else {
      const auto begin = tensor.bytes.begin() + static_cast<std::ptrdiff_t>(from * size);
      grown.bytes.insert(grown.bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
    }
    for (std::size_t d = to.size(); d-- > 0;) {
      if (++at[d] < to[d]) break;
      at[d] = 0;
    }
  }
  return grown;
}

void pad_lengths(std::vector<Tensor>& tensors) {
  Shape largest = tensors.front().shape;
  for (const Tensor& tensor : tensors)
    for (std::size_t d = 1; d < std::min(largest.size(), tensor.shape.size()); ++d)
      largest[d] = std::max(largest[d], tensor.shape[d]);
  for (Tensor& tensor : tensors)
    if (tensor.shape.size() == largest.size()) tensor = padded_to(tensor, largest);
}

}  // namespace

Answer<Tensors> join_inputs(const std::vector<const Tensors*>& parts, std::int64_t padded,
                            bool pads_lengths) {
  Tensors joined;
  for (const auto& [name, first] : *parts.front()) {
    std::vector<Tensor> tensors;
    for (const Tensors* part : parts) tensors.push_back(part->find(name)->second);
    if (padded > 0) {
      const auto has_rows = [](const Tensor& tensor) { return tensor.shape[0] > 0; };
      const auto last = std::find_if(tensors.rbegin(), tensors.rend(), has_rows);
      SLIPWAY_CHECK(last != tensors.rend());  // no batch without rows is padded
      const Tensor row = slice_rows(*last, 0, 1);
      tensors.insert(tensors.end(), static_cast<std::size_t>(padded), row);
    }
    if (pads_lengths) pad_lengths(tensors);
    std::vector<const Tensor*> pointers;
    for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
    auto whole = concatenate_rows(pointers);
    if (!whole) return refuse(whole.error());
    joined.emplace(name, std::move(*whole));
  }
  return joined;
}

void Executor::enqueue(Execution execution) {
  const auto rows = row_count(execution.inputs);
  if (!rows) return execution.done(refuse(rows.error()));
  const TimePoint now = clock_.now();
  // Rows of unlike shapes or types must not spoil each other's batch, unless their lengths are padded.
  std::string queue =
      fmt::format("{}/{}/{}", execution.model_name, execution.served.version, execution.signature);
  if (!options_.batching->pads_variable_lengths)
    for (const auto& [name, tensor] : execution.inputs)
      for (std::size_t d = 1; d < tensor.shape.size(); ++d) queue += fmt::format("/{}", tensor.shape[d]);
  Answer<void> queued;
  {
    const std::lock_guard lock(mutex_);
    const BatchTaskId id = next_id_;
    queued = is_stopping_ ? refuse(Code::unavailable, stopping) : queues_->enqueue(queue, {id, *rows}, now);
    if (queued) {
      ++next_id_;
      tasks_.emplace(id, Waiting{std::move(execution), now, *rows, 0, *rows});
      changed_.notify_one();
      return;
    }
  }
  execution.done(refuse(queued.error()));
}

void Executor::work(const std::stop_token& stop) {
  Lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (queues_) {
      if (const auto batch = queues_->take(clock_.now())) {
        run_batch(*batch, lock);
        continue;
      }
      // Each task that comes may close a batch, and so make it ready before its time.
      const BatchTaskId seen = next_id_;
      const auto has_come = [&] { return next_id_ != seen; };
      if (const auto ready_at = queues_->ready_at())
        changed_.wait_for(lock, stop, std::max(*ready_at - clock_.now(), Duration(1)), has_come);
      else
        changed_.wait(lock, stop, has_come);
      continue;
    }
    if (!changed_.wait(lock, stop, [&] { return !waiting_.empty(); })) continue;
    Execution next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    run_now(next);
    lock.lock();
  }
}

std::vector<Executor::Part> Executor::take_parts(const Batch& batch, Execution& of) {
  std::vector<Part> parts;
  const TimePoint now = clock_.now();
  for (const BatchTask& task : batch.tasks) {
    Waiting& waiting = tasks_.at(task.id);
    const std::int64_t first = waiting.taken;
    waiting.taken += task.rows;
    if (waiting.execution.deadline < now) waiting.failure = too_late();
    if (!of.served.model) {
      of.served = waiting.execution.served;
      of.model_name = waiting.execution.model_name;
      of.signature = waiting.execution.signature;
      of.api = waiting.execution.api;
    }
    Part part{task.id, first, task.rows, {}};
    if (!waiting.failure) {
      const bool is_whole = task.rows == waiting.rows;
      if (is_whole)
        part.inputs = std::move(waiting.execution.inputs);
      else
        for (const auto& [name, tensor] : waiting.execution.inputs)
          part.inputs.emplace(name, slice_rows(tensor, first, task.rows));
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

void Executor::run_batch(const Batch& batch, Lock& lock) {
  Execution of;
  const TimePoint since = tasks_.at(batch.tasks.front().id).since;
  std::vector<Part> parts = take_parts(batch, of);
  lock.unlock();
  std::vector<const Tensors*> inputs;
  std::int64_t rows = 0;
  for (const Part& part : parts) {
    if (part.inputs.empty()) continue;  // too late
    inputs.push_back(&part.inputs);
    rows += part.rows;
  }
  Answer<Tensors> outputs;
  if (!inputs.empty()) {
    const std::int64_t padded = rows == 0 ? 0 : padded_size(*options_.batching, rows) - rows;
    auto joined = join_inputs(inputs, padded, options_.batching->pads_variable_lengths);
    if (joined) {
      const auto begun = std::chrono::steady_clock::now();
      outputs = of.served.model->run(of.signature, *joined);
      metrics_.count_run(of.model_name, of.api, elapsed_us(begun), rows);
      metrics_.count_batch(of.model_name, static_cast<double>((clock_.now() - since).count()), rows, padded);
    } else {
      outputs = refuse(joined.error());
    }
  }
  of.served.model.reset();
  lock.lock();
  finish(parts, outputs, lock);
}

Answer<Tensors> Executor::assembled(Waiting& waiting) {
  if (waiting.failure) return refuse(*waiting.failure);
  if (waiting.parts.size() == 1) return std::move(waiting.parts.begin()->second);
  std::vector<const Tensors*> parts;
  for (const auto& part : waiting.parts) parts.push_back(&part.second);
  return join_inputs(parts, 0, false);
}

void Executor::finish(const std::vector<Part>& parts, const Answer<Tensors>& outputs, Lock& lock) {
  std::vector<Waiting> done;
  std::int64_t at = 0;
  for (const Part& part : parts) {
    Waiting& waiting = tasks_.at(part.id);
    if (!part.inputs.empty()) {
      if (!outputs) {
        waiting.failure = outputs.error();
      } else {
        Tensors own;
        for (const auto& [name, tensor] : *outputs) {
          const bool has_rows = !tensor.shape.empty() && tensor.shape[0] >= at + part.rows;
          if (has_rows)
            own.emplace(name, slice_rows(tensor, at, part.rows));
          else
            waiting.failure = Failure{
                Code::failed_precondition,
                fmt::format("Batched output tensor {} does not have one row for each of the input", name)};
        }
        waiting.parts.emplace(part.first, std::move(own));
      }
      at += part.rows;
    }
    waiting.pending -= part.rows;
    if (waiting.pending > 0) continue;
    done.push_back(std::move(waiting));
    tasks_.erase(part.id);
  }
  lock.unlock();
  for (Waiting& waiting : done) {
    waiting.execution.served.model.reset();
    waiting.execution.done(assembled(waiting));
  }
  lock.lock();
}

}  // namespace slipway::serve
