#include "cli/client/log_stream.h"

#include <fmt/format.h>

#include <condition_variable>
#include <iterator>
#include <map>
#include <thread>

#include "base/file.h"
#include "cli/client/merged_log.h"
#include "cli/client/retry.h"
#include "domain/state.h"

namespace slipway::cli {
namespace {

struct OneLog {  // of one process
  std::string job, task, stream, process;
  std::uint32_t attempt = 0;
  std::optional<std::uint32_t> tail;
  bool follow = false;
  std::uint64_t offset = 0;
};

std::string target_of(const OneLog& log, std::uint64_t offset) {
  const auto text = [](std::uint64_t number) { return std::to_string(number); };
  return with_query(resource({"jobs", log.job, "tasks", log.task, "logs"}),
                    {{"stream", log.stream},
                     {"process", log.process},
                     {"attempt", text(log.attempt)},
                     {"tail", log.tail ? text(*log.tail) : ""},
                     {"offset", offset > 0 ? text(offset) : ""},
                     {"follow", log.follow ? "true" : ""}});
}

enum class Found { all, nothing };  // nothing: there is no such attempt (yet)

Outcome<Found> copy_log(Service& service, const OneLog& log, LineWriter& writer) {
  std::uint64_t offset = log.offset;
  Retry retry;
  for (;;) {
    bool writable = true;
    net::Client::Options options;
    options.on_piece = [&](std::string_view piece) {
      offset += piece.size();
      retry.reset();
      return writable = writer.add(piece);
    };
    const Outcome<net::Response> answer = service.request("GET", target_of(log, offset), options);
    if (!writable) return Found::all;  // the caller asks the output what is wrong
    if (answer) {
      writer.finish();
      return Found::all;
    }
    if (answer.error().status == 404 && offset == log.offset) return Found::nothing;
    // After a tail the offset is unknown.
    const bool can_resume = log.follow && !(log.tail && offset > log.offset);
    if (!can_resume || !retry.again(answer.error())) return give_up(answer);
  }
}

Outcome<Value> get_task(Service& service, const LogSource& source) {
  return service.get(resource({"jobs", source.job, "tasks", source.task}));
}

Outcome<std::string> end_of_attempt(Service& service, const LogSource& source, std::uint32_t attempt) {
  const Outcome<Value> all = with_retry([&] {
    return service.get(resource({"jobs", source.job, "tasks", source.task, "attempts"}));
  });
  if (!all) return give_up(all);
  for (const Value& one : all->items_at("items"))
    if (one.count_at("attempt") == attempt) return one.text_at("detail");
  return std::string();
}

std::vector<std::string> processes_of(const LogSource& source, const Value& task) {
  if (!source.process.empty()) return {source.process};
  std::vector<std::string> names;
  for (const Value& name : task.items_at("process_names")) names.push_back(name.scalar());
  if (names.empty()) names.emplace_back("0");
  return names;
}

// On a terminal each process has a colour of its own.
std::string prefix_of(const LogSource& source, const std::string& process, bool is_one_of_several,
                      std::size_t which) {
  std::string text = source.label;
  if (is_one_of_several) text += (text.empty() ? "" : "/") + process;
  if (text.empty()) return "";
  if (!source.in_colour) return fmt::format("[{}] ", text);
  static constexpr int colours[] = {36, 33, 32, 35, 34, 31, 96, 93, 92, 95, 94, 91};
  return fmt::format("\x1b[{}m[{}]\x1b[0m ", colours[which % std::size(colours)], text);
}

Outcome<void> check(const std::vector<LogTarget>& targets) {
  for (const LogTarget& target : targets)
    if (const Outcome<void> state = target.output->state(); !state) return state;
  return {};
}

// Processes may join while it runs.
bool may_grow(const LogSource& source, const Value& task) {
  return source.process.empty() && task.at("spec").text_at("elastic") == "framework";
}

std::vector<MergedStream> merged_streams(const LogSource& source, const Value& task,
                                         const std::vector<LogTarget>& targets) {
  const std::vector<std::string> processes = processes_of(source, task);
  std::vector<MergedStream> streams;
  for (std::size_t which = 0; which < processes.size(); ++which) {
    const std::string prefix =
        prefix_of(source, processes[which], may_grow(source, task) || processes.size() > 1, which);
    for (const LogTarget& target : targets)
      streams.push_back({processes[which], target.stream, prefix, target.output, 0});
  }
  return streams;
}

// Where to continue in each stream after what was there was printed in order.
using Offsets = std::map<std::pair<std::string, std::string>, std::uint64_t>;

Outcome<Offsets> catch_up(Service& service, const LogSource& source, const Value& task, std::uint32_t attempt,
                          const std::vector<LogTarget>& targets) {
  std::vector<MergedStream> streams = merged_streams(source, task, targets);
  const Outcome<void> copied = copy_merged(service, source, attempt, LastLine::kept, streams);
  if (!copied && copied.error().status == 404) return Offsets();  // it may still start
  if (!copied) return give_up(copied);
  Offsets offsets;
  for (const MergedStream& stream : streams) offsets[{stream.process, stream.stream}] = stream.offset;
  return offsets;
}

// Every process and stream of one attempt at once, each on a thread and a connection of its own.
Outcome<Found> follow_attempt(Service& service, const LogSource& source, const Value& task,
                              std::uint32_t attempt, const std::vector<LogTarget>& targets,
                              const Offsets& offsets) {
  std::vector<std::string> processes = processes_of(source, task);
  const bool grows = may_grow(source, task);
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t running = 0;         // guarded by mutex
  std::optional<Failure> failure;  // guarded by mutex
  Found found = Found::nothing;    // guarded by mutex
  const auto copy = [&](Service own, const std::string& process, const std::string& prefix,
                        const LogTarget& target) {
    LineWriter writer(*target.output, prefix, source.filter);
    const auto known = offsets.find({process, target.stream});
    const OneLog log{source.job, source.task, target.stream, process,
                     attempt,    source.tail, true,          known == offsets.end() ? 0 : known->second};
    const Outcome<Found> copied = copy_log(own, log, writer);
    const std::lock_guard lock(mutex);
    if (!copied)
      failure = copied.error();
    else if (*copied == Found::all)
      found = Found::all;
    --running;
    ended.notify_one();
  };
  std::vector<std::jthread> threads;
  const auto follow = [&](std::size_t which) {
    const std::string prefix = prefix_of(source, processes[which], grows || processes.size() > 1, which);
    for (const LogTarget& target : targets) {
      ++running;
      threads.emplace_back([&copy, &service, process = processes[which], prefix, &target] {
        copy(service.another(), process, prefix, target);
      });
    }
  };
  std::unique_lock lock(mutex);
  for (std::size_t which = 0; which < processes.size(); ++which) follow(which);
  while (!ended.wait_for(lock, 1s, [&] { return running == 0; })) {
    if (!grows) continue;
    lock.unlock();
    const Outcome<Value> now = get_task(service, source);
    lock.lock();
    if (!now || now->number_at("attempts") != attempt) continue;
    std::vector<std::string> all = processes_of(source, *now);
    const std::size_t known = processes.size();
    if (all.size() > known) processes = std::move(all);
    for (std::size_t which = known; which < processes.size(); ++which) follow(which);
  }
  lock.unlock();
  threads.clear();
  if (failure) return give_up(std::move(*failure));
  if (const Outcome<void> written = check(targets); !written) return give_up(written);
  return found;
}

// Waits until `done` is true of the task, asking once a second and whenever its job has ended.
Outcome<Value> wait_until(Service& service, const LogSource& source,
                          const std::function<bool(const Value&)>& done) {
  const std::string wait = with_query(resource({"jobs", source.job, "wait"}), {{"timeout", "1"}});
  for (;;) {
    Outcome<Value> task = with_retry([&] { return get_task(service, source); });
    if (!task || has_ended(*task) || done(*task)) return task;
    const Outcome<Value> job = with_retry([&] { return service.get(wait); });
    if (!job) return job;
  }
}

}  // namespace

bool SharedOutput::write(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (failure_) return false;
  if (auto written = write_all(fd_, bytes, fd_ == 1 ? "standard output" : "standard error"); !written)
    failure_ = to_failure(written.error());
  return !failure_;
}

Outcome<void> SharedOutput::state() {
  const std::lock_guard lock(mutex_);
  if (failure_) return give_up(Failure(*failure_));
  return {};
}

bool LineWriter::add(std::string_view piece) {
  if (prefix_.empty() && filter_.is_plain()) return output_.write(piece);
  std::string whole;
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    line_.append(piece.substr(0, end));
    piece = end == std::string_view::npos ? std::string_view() : piece.substr(end + 1);
    if (end == std::string_view::npos && line_.size() < line_max) break;
    const TimePoint now = filter_.is_plain() ? TimePoint{} : clock_.now();
    if (filter_.is_plain() || filter_.takes(line_, now))
      whole.append(filter_.format(prefix_, line_, now) + "\n");
    line_.clear();
  }
  return whole.empty() || output_.write(whole);
}

bool LineWriter::finish() { return line_.empty() || add("\n"); }

bool has_ended(const Value& job_or_task) {
  // The ends of jobs are ends of tasks too, and neither has a state that is an end only for the other.
  const std::optional<TaskState> state = parse_task_state(job_or_task.text_at("state"));
  return state && is_terminal(*state);
}

Outcome<void> copy_logs(Service& service, const LogSource& source, const std::vector<LogTarget>& targets) {
  const Outcome<Value> task = get_task(service, source);
  if (!task) return give_up(task);
  const auto last = static_cast<std::uint32_t>(task->count_at("attempts"));
  if (last == 0) return {};
  const std::uint32_t attempt = source.attempt.value_or(last);
  std::vector<MergedStream> streams = merged_streams(source, *task, targets);
  const Outcome<void> copied = copy_merged(service, source, attempt, LastLine::printed, streams);
  if (!copied && copied.error().status == 404 && (source.attempt || !source.process.empty()))
    return refuse(fmt::format("{}/{} has no process {} in attempt {}", source.job, source.task,
                              streams.front().process, attempt),
                  {}, fmt::format("slipway task show {}/{}", source.job, source.task));
  if (!copied) return give_up(copied);
  return check(targets);
}

Outcome<Value> follow_logs(Service& service, const LogSource& source, const std::vector<LogTarget>& targets,
                           const std::function<void(const std::string&)>& say) {
  Outcome<Value> task = get_task(service, source);
  if (!task) return task;
  LogSource now = source;
  auto attempt = source.attempt.value_or(
      std::max<std::uint32_t>(1, static_cast<std::uint32_t>(task->count_at("attempts"))));
  for (;;) {
    const bool was_made = task->count_at("attempts") >= attempt;
    Offsets offsets;
    if (was_made && std::exchange(now.is_merged, false)) {
      Outcome<Offsets> shown = catch_up(service, now, *task, attempt, targets);
      if (!shown) return give_up(shown);
      offsets = std::move(*shown);
      now.tail.reset();
    }
    const Outcome<Found> found = follow_attempt(service, now, *task, attempt, targets, offsets);
    if (!found) return give_up(found);
    if (*found == Found::nothing && was_made && !source.process.empty())
      return refuse(fmt::format("{}/{} has no process {}", source.job, source.task, source.process), {},
                    fmt::format("slipway task show {}/{}", source.job, source.task));
    // The log has ended; the end of the attempt may be stored a little later. An attempt that does not exist
    // yet may still start.
    const bool comes = *found == Found::nothing && !was_made;
    task = wait_until(service, source, [&](const Value& seen) {
      const std::uint64_t made = seen.count_at("attempts");
      return comes ? made >= attempt : made > attempt || seen.text_at("state") == "queued";
    });
    if (!task || (source.attempt && !comes)) return task;
    if (has_ended(*task) && task->count_at("attempts") <= (comes ? attempt - 1 : attempt)) return task;
    if (comes) continue;
    const std::string failed = fmt::format("attempt {} failed, retrying", attempt);
    std::string reason = task->text_at("reason");
    if (reason.starts_with(failed + ": ")) {
      reason = reason.substr(failed.size() + 2);
    } else if (reason.empty() || reason.starts_with("attempt ")) {  // a later one has begun
      auto recorded = end_of_attempt(service, source, attempt);
      if (!recorded) return give_up(recorded);
      reason = std::move(*recorded);
    }
    say(fmt::format("{}/{}: {}{}{}", source.job, source.task, failed, reason.empty() ? "" : ": ", reason));
    ++attempt;
    now.tail.reset();  // it was meant for what had been there at the beginning
  }
}

}  // namespace slipway::cli
