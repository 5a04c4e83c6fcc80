#include "sim/sim_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/overloaded.h"

namespace slipway::sim {
namespace {

constexpr Duration guard_patience_least = 100ms;  // see Processes::set_guard()

std::string_view variable(const keeper::ProcessSpec& process, std::string_view name) {
  for (const std::string& text : process.environment)
    if (text.starts_with(name) && text.size() > name.size() && text[name.size()] == '=')
      return std::string_view(text).substr(name.size() + 1);
  return {};
}

// How many nodes the gang has, by the environment of its processes.
std::size_t nodes_of(const keeper::StartRequest& start) {
  const std::string_view nodes = variable(start.processes.front(), "SLIPWAY_NODES");
  return 1 + static_cast<std::size_t>(std::count(nodes.begin(), nodes.end(), ','));
}

std::vector<std::uint32_t> visible_gpus(const keeper::ProcessSpec& process) {
  const std::string_view value = variable(process, "CUDA_VISIBLE_DEVICES");
  std::vector<std::uint32_t> gpus;
  for (const char* at = value.data(); at < value.data() + value.size(); ++at)
    at = std::from_chars(at, value.data() + value.size(), gpus.emplace_back()).ptr;
  return gpus;
}

// Processes of gangs that nodes may join run longer, or none ever would.
bool is_elastic(const keeper::ProcessSpec& process) {
  return std::find(process.argv.begin(), process.argv.end(), "--log_dir") != process.argv.end();
}

bool is_push(const WorkKey& key) { return std::holds_alternative<PushRun>(key); }

}  // namespace

SimKeeper::SimKeeper(std::string node, Context context)
    : node_(std::move(node)), context_(context), slowness_(0.9 + 0.25 * context.random.unit()) {}

// ── time ──

void SimKeeper::run(TimePoint now) {
  look_at_guard(now);
  if (is_stopped(now)) return;
  // What happened while it was stopped it hears in any order; what an agent asks, in the order it was asked.
  if (context_.random.chance(0.5)) end_due(now);
  for (; !inbox_.empty(); inbox_.pop_front()) take(inbox_.front(), now);
  end_due(now);
  end_leases(now);
}

void SimKeeper::take(keeper::ToKeeper& message, TimePoint now) {
  std::visit(Overloaded{
                 [&](keeper::ListRequest&) {
                   lose_agent();  // the one before it, and the list says it all
                   has_agent_ = true;
                   tell(list());
                 },
                 [&](keeper::StartRequest& order) { start(std::move(order), now); },
                 [&](keeper::StopRequest& order) { stop(order, now); },
                 [&](keeper::ForgetRequest& order) { forget(order.keys); },
                 [&](keeper::QuitRequest&) {},
                 [&](keeper::RenewRequest& renew) {
                   end_leases(now);
                   leases_.renew(renew.from);
                   set_guard();
                 },
                 [&](keeper::DutyRecord& record) { note(record); },
             },
             message);
}

void SimKeeper::tell(const keeper::FromKeeper& event) {
  if (has_agent_) events_.emplace_back(event);
}

void SimKeeper::lose_agent() {
  has_agent_ = false;
  events_.clear();
}

keeper::ProcessList SimKeeper::list() const {
  keeper::ProcessList list;
  list.keeps_duties = true;
  for (const auto& [key, running] : running_) list.running.push_back({running.started, running.resources});
  for (const auto& [key, work] : works_)
    list.ended.insert(list.ended.end(), work.ended.begin(), work.ended.end());
  for (const WorkKey& key : capacity_.waiting_keys()) {
    keeper::WaitingAttempt& waiting = list.waiting.emplace_back(keeper::WaitingAttempt{key, {}});
    for (const keeper::ProcessSpec& process : waiting_.at(key).processes)
      waiting.ranks.push_back(process.rank);
  }
  for (const auto& [name, content] : duties_) list.duties.push_back({name.first, name.second, content});
  return list;
}

// ── leases, and the guard ──

void SimKeeper::set_guard() {
  const std::optional<Duration> next = leases_.next();
  const Duration late_max = std::max(leases_.shortest() / 20, guard_patience_least);
  guard_deadline_ = next ? std::optional(*next + late_max) : std::nullopt;
}

void SimKeeper::look_at_guard(TimePoint now) {
  if (!guard_deadline_ || now.time_since_epoch() < *guard_deadline_) return;
  if (!is_stopped(now)) {  // it would have been in time, had the simulation not jumped over that time
    end_due(now);
    end_leases(now);
    if (guard_deadline_ && now.time_since_epoch() >= *guard_deadline_)
      context_.history.break_off("the guard of " + node_ + " kills a keeper that runs");
    return;
  }
  ++context_.tally["keeper.killed_by_guard"];
  kill(now);
}

// By a clock that may be slow or fast.
void SimKeeper::end_leases(TimePoint now) {
  const std::vector<WorkKey> over = leases_.take_over(now.time_since_epoch());
  if (over.empty()) return;
  for (const WorkKey& key : over) {
    ++context_.tally["lease.ended"];
    if (const auto waiting = waiting_.extract(key))
      did_not_start(waiting.mapped(), ProcessEndKind::lost, "its lease ended", now);
    std::vector<ProcessKey> ending;
    for (const auto& [process, running] : running_)
      if (process.first == key) ending.push_back(process);
    for (const ProcessKey& process : ending) end(process, ProcessEndKind::lost, 0, now);
  }
  set_guard();
}

// ── starts ──

void SimKeeper::start(keeper::StartRequest start, TimePoint now) {
  if (is_push(start.key) && works_.contains(start.key))
    context_.history.break_off(
        fmt::format("{} is started while one that is known is not forgotten", to_string(start.key)));
  const auto [work, is_new] = works_.try_emplace(start.key);
  if (!is_new) return;
  work->second.left = start.processes.size();
  if (!start.duties.empty()) note({start.key, 0, start.duties});
  if (start.lease.count() > 0) {
    const Duration lease(static_cast<Duration::rep>(static_cast<double>(start.lease.count()) * slowness_));
    if (leases_.is_over(lease, now.time_since_epoch())) {
      ++context_.tally["lease.start_refused"];
      return did_not_start(start, ProcessEndKind::lost, "its lease ended before it was started", now);
    }
    leases_.add(start.key, lease);
    set_guard();
  }
  Resources needs;
  for (const keeper::ProcessSpec& process : start.processes) needs = needs + process.resources;
  if (!start.prefetched) {
    capacity_.take(start.key, needs);
    return begin(start, now);
  }
  const WorkKey key = start.key;
  capacity_.wait(key, needs, start.total);
  waiting_.emplace(key, std::move(start));
  start_waiting(now);
  context_.tally["task.prefetched"] += waiting_.contains(key);
}

void SimKeeper::start_waiting(TimePoint now) {
  while (const auto key = capacity_.next()) begin(waiting_.extract(*key).mapped(), now);
}

void SimKeeper::did_not_start(const keeper::StartRequest& start, ProcessEndKind kind, const std::string& why,
                              TimePoint now) {
  for (const keeper::ProcessSpec& process : start.processes)
    note_end({start.key, process.rank, kind, 0, false, why, {}, now, now}, now);
}

void SimKeeper::begin(const keeper::StartRequest& start, TimePoint now) {
  if (is_push(start.key)) return begin_push(start, now);
  ProcessHistory& history = context_.history;
  const auto* attempt = std::get_if<AttemptKey>(&start.key);
  if (const std::size_t nodes = nodes_of(start);
      attempt && nodes > 1 && history.prepared[*attempt].size() < nodes)
    history.break_off(
        fmt::format("{} was started before all its {} nodes were prepared", to_string(start.key), nodes));
  for (const keeper::ProcessSpec& process : start.processes) {
    const ProcessKey key{start.key, process.rank};
    // After the death of an agent a preparation may have to run again.
    if (!is_preparation(start.key) && !history.started.insert(key).second)
      history.break_off(
          fmt::format("process {} of {} was started twice", process.rank, to_string(start.key)));
    if (context_.random.chance(context_.odds.start_fails)) {
      ++context_.tally["process.start_failed"];
      const bool counts = context_.random.chance(0.5);
      note_end(
          {start.key, process.rank, ProcessEndKind::start_failed, 0, counts, "no such file", {}, now, now},
          now);
      continue;
    }
    Running running;
    running.started = {start.key, process.rank, ++last_pid_, now};
    running.resources = process.resources;
    running.gpus = visible_gpus(process);
    context_.tally["gpu.granted"] += attempt ? running.gpus.size() : 0;
    plan_end(start, process, running, now);
    running_[key] = running;
    if (attempt) {
      std::uint32_t& newest = history.newest[attempt->task];
      newest = std::max(newest, attempt->attempt);
    }
    if (Outputs* outputs = outputs_of(start.key)) outputs->has_run = true;
    tell(running.started);
  }
}

void SimKeeper::plan_end(const keeper::StartRequest& start, const keeper::ProcessSpec& process,
                         Running& running, TimePoint now) {
  Random& random = context_.random;
  const Odds& odds = context_.odds;
  const Duration lasts = is_elastic(process)            ? context_.between(5s, 60s)
                         : random.chance(odds.is_short) ? context_.between(100us, odds.short_max)
                                                        : context_.between(10ms, 60s);
  running.ends_at = now + lasts;
  const auto stalls = context_.history.stalls.find(start.key);
  if (stalls != context_.history.stalls.end() && stalls->second.will) {
    running.is_quiet = true;
    running.ends_at = now + 60s;
    if (random.chance(0.3)) {
      running.resumes_at = now + stalls->second.timeout + context_.between(1ms, 2s);
      running.ends_at = *running.resumes_at + context_.between(10ms, 1s);
    }
  }
  const double fails = is_preparation(start.key)  ? odds.preparation_fails
                       : is_start_task(start.key) ? odds.start_task_fails
                                                  : odds.exits_with_1;
  running.kind = random.chance(odds.is_killed) ? ProcessEndKind::signalled : ProcessEndKind::exited;
  running.code = running.kind == ProcessEndKind::signalled ? 11 : random.chance(fails) ? 1 : 0;
}

// Only what all processes have written is worth sending, and only for the newest attempt.
void SimKeeper::begin_push(const keeper::StartRequest& start, TimePoint now) {
  ProcessHistory& history = context_.history;
  const WorkKey of = work_of(std::get<PushRun>(start.key));
  const std::string what = fmt::format("what {} wrote on {}", to_string(of), node_);
  ++context_.tally["push.started"];
  for (const auto& [key, running] : running_)
    if (key.first == of) history.break_off(what + " is sent while it still writes");
  if (const auto* attempt = std::get_if<AttemptKey>(&of);
      attempt && history.newest[attempt->task] > attempt->attempt)
    history.break_off(what + " is sent after the next attempt has begun");
  if (const Outputs* outputs = outputs_of(of)) {
    if (outputs->has_outcome)
      history.break_off(what + " is sent again, though it is on record what came of it");
    if (outputs->pushes > 0) history.break_off(what + " is sent again, though all of it is there");
  }
  for (const keeper::ProcessSpec& process : start.processes) {
    Running& running = running_[{start.key, process.rank}];
    running.started = {start.key, process.rank, ++last_pid_, now};
    running.ends_at = now + (context_.random.chance(0.5) ? context_.between(1ms, 50ms)
                                                         : context_.between(50ms, context_.odds.push_max));
    running.kind = ProcessEndKind::exited;
    running.code = context_.random.chance(context_.odds.push_fails) ? 1 : 0;
    tell(running.started);
  }
}

// ── ends ──

// Those that ended while it was stopped it finds all at once.
void SimKeeper::end_due(TimePoint now) {
  std::vector<ProcessKey> due;
  for (const auto& [key, running] : running_)
    if (running.ends_at <= now) due.push_back(key);
  for (const ProcessKey& key : due) end(key, running_.at(key).kind, running_.at(key).code, now);
}

void SimKeeper::end(const ProcessKey& key, ProcessEndKind kind, int code, TimePoint now) {
  const auto found = running_.find(key);
  if (found == running_.end()) return;
  const TimePoint started_at = found->second.started.time;
  running_.erase(found);
  note_end({key.first, key.second, kind, code, true, "", {1 << 20, 1ms}, started_at, now}, now);
}

void SimKeeper::note_end(ProcessEnded end, TimePoint now) {
  const bool is_good = end.kind == ProcessEndKind::exited && end.code == 0;
  if (const auto* run = std::get_if<PreparationRun>(&end.key)) {
    if (is_good)
      context_.history.prepared[run->of].insert(node_);
    else
      ++context_.tally["preparation.failed"];
  }
  note_outputs(end);
  Work& work = works_.at(end.key);
  work.ended.push_back(end);
  if (--work.left == 0) {
    capacity_.release(end.key);
    leases_.remove(end.key);
    set_guard();
  }
  tell(std::move(end));
  start_waiting(now);
}

void SimKeeper::note_outputs(const ProcessEnded& end) {
  const auto* run = std::get_if<PushRun>(&end.key);
  Outputs* outputs = outputs_of(run ? work_of(*run) : end.key);
  if (!outputs) return;
  if (!run) {
    outputs->is_lost = outputs->is_lost || end.kind == ProcessEndKind::lost;
  } else if (end.kind == ProcessEndKind::exited && end.code == 0) {
    ++outputs->pushes;
    ++context_.tally["push.done"];
  } else {
    ++context_.tally[end.kind == ProcessEndKind::lost ? "push.lost" : "push.failed"];
  }
}

void SimKeeper::stop(const keeper::StopRequest& stop, TimePoint now) {
  if (const auto waiting = waiting_.extract(stop.key))
    did_not_start(waiting.mapped(), ProcessEndKind::not_started, "stopped", now);
  for (auto& [key, running] : running_) {
    if (key.first != stop.key) continue;
    const TimePoint at = now + context_.between(0s, stop.grace);
    if (at >= running.ends_at) continue;
    running.ends_at = at;
    running.kind = ProcessEndKind::signalled;
    running.code = 15;
  }
}

// ── what it remembers ──

void SimKeeper::note(const keeper::DutyRecord& record) {
  duties_[{record.key, record.part}] = record.content;
  if (Outputs* outputs = outputs_of(record.key); outputs && record.part > 0) outputs->has_outcome = true;
}

void SimKeeper::forget(const std::vector<WorkKey>& keys) {
  for (const WorkKey& key : keys) {
    const auto found = works_.find(key);
    if (found != works_.end() && found->second.left > 0) continue;
    works_.erase(key);
    std::erase_if(duties_, [&](const auto& one) { return one.first.first == key; });
  }
}

// The next one reads the journal: it has no intent of what only waited.
void SimKeeper::kill(TimePoint now) {
  stopped_until_ = now;
  inbox_.clear();
  if (std::exchange(has_agent_, false) || !events_.empty()) events_.emplace_back(std::nullopt);
  leases_ = {};
  guard_deadline_.reset();
  capacity_ = {};
  for (const auto& [key, request] : std::exchange(waiting_, {})) works_.erase(key);
  for (const auto& [key, running] : std::exchange(running_, {})) {
    ++context_.tally["process.lost"];
    ProcessEnded end{key.first,         key.second, ProcessEndKind::lost, 0,  false,
                     "the keeper died", {},         running.started.time, now};
    note_outputs(end);
    Work& work = works_.at(key.first);
    work.ended.push_back(std::move(end));
    work.left = 0;
  }
}

void SimKeeper::forget_everything(TimePoint now) {
  for (const auto& [key, running] : running_)
    if (Outputs* outputs = outputs_of(key.first)) outputs->is_lost = true;
  for (const auto& [key, work] : works_)
    if (Outputs* outputs = outputs_of(key)) outputs->is_lost = true;
  kill(now);
  works_.clear();
  duties_.clear();
}

Outputs* SimKeeper::outputs_of(const WorkKey& key) {
  const auto* attempt = std::get_if<AttemptKey>(&key);
  if (!attempt) return nullptr;
  const auto nodes = context_.history.outputs.find(*attempt);
  if (nodes == context_.history.outputs.end()) return nullptr;
  const auto found = nodes->second.find(node_);
  return found == nodes->second.end() ? nullptr : &found->second;
}

// ── what runs ──

std::optional<Duration> SimKeeper::progress_of(std::int64_t pid, TimePoint now) const {
  for (const auto& [key, running] : running_)
    if (running.started.pid == pid) {
      if (running.ends_at <= now) return std::nullopt;
      if (!running.is_quiet) return now - running.started.time;
      return running.resumes_at ? std::max(Duration(0), now - *running.resumes_at) : Duration(0);
    }
  return std::nullopt;
}

bool SimKeeper::runs(const ProcessKey& process, TimePoint now) const {
  const auto found = running_.find(process);
  return found != running_.end() && found->second.ends_at > now;
}

Resources SimKeeper::running_now(TimePoint now) const {
  Resources sum;
  for (const auto& [key, running] : running_)
    if (running.ends_at > now) sum = sum + running.resources;
  return sum;
}

std::set<AttemptKey> SimKeeper::attempts_running(TimePoint now) const {
  std::set<AttemptKey> keys;
  for (const auto& [key, running] : running_) {
    if (running.ends_at <= now) continue;
    const auto* push = std::get_if<PushRun>(&key.first);
    const WorkKey of = push ? work_of(*push) : key.first;
    if (const auto* attempt = std::get_if<AttemptKey>(&of)) keys.insert(*attempt);
  }
  return keys;
}

std::vector<std::pair<ProcessKey, std::vector<std::uint32_t>>> SimKeeper::gpus_visible(TimePoint now) const {
  std::vector<std::pair<ProcessKey, std::vector<std::uint32_t>>> visible;
  for (const auto& [key, running] : running_)  // a start task sees all of its node's
    if (running.ends_at > now && !running.gpus.empty() && std::holds_alternative<AttemptKey>(key.first))
      visible.emplace_back(key, running.gpus);
  return visible;
}

}  // namespace slipway::sim
