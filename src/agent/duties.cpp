#include "agent/duties.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace slipway::agent {
namespace {

// The program that pushes tries each request several times itself.
constexpr Duration again_after[] = {1s, 3s};

// The age of a process is known to 10 ms. So what was stopped for its wall time has run for no less than
// that.
constexpr Duration wall_time_margin = 100ms;
constexpr const char* out_of_time = "the time for sending was over";

bool ran(const ProcessEnded& end) {
  return end.kind == ProcessEndKind::exited || end.kind == ProcessEndKind::signalled;
}

bool is_good(const ProcessEnded& end) { return end.kind == ProcessEndKind::exited && end.code == 0; }

bool pushes(const WorkKey& key, const Duty& duty) {
  return !is_preparation(key) && !pushed_mounts(duty).empty();
}

// The pushes of a list, taken out of it, by what they are for.
struct Pushes {
  std::map<WorkKey, std::set<std::uint32_t>> running;
  std::map<WorkKey, std::vector<ProcessEnded>> ended;
};

Pushes take_pushes(keeper::ProcessList& list) {
  Pushes pushes;
  std::erase_if(list.running, [&](const keeper::RunningProcess& one) {
    const auto* run = std::get_if<PushRun>(&one.started.key);
    if (run) pushes.running[work_of(*run)].insert(one.started.rank);
    return run != nullptr;
  });
  std::erase_if(list.ended, [&](const ProcessEnded& one) {
    const auto* run = std::get_if<PushRun>(&one.key);
    if (run) pushes.ended[work_of(*run)].push_back(one);
    return run != nullptr;
  });
  return pushes;
}

}  // namespace

void Duties::add(const WorkKey& key, Duty duty, std::string content) {
  Work& work = works_[key];
  work.is_ours = true;
  work.has_run = work.was_lost = false;
  work.left.clear();
  for (const Duty::Process& process : duty.processes) work.left.insert(process.rank);
  work.duty = std::move(duty);
  work.content = std::move(content);
}

const Duty* Duties::find(const WorkKey& key) const {
  const auto found = works_.find(key);
  return found == works_.end() ? nullptr : &found->second.duty;
}

bool Duties::has_running(const WorkKey& key) const {
  const auto found = works_.find(key);
  return found != works_.end() && !found->second.left.empty();
}

// ── the keeper's list ──

// Takes over what earlier agents left; gives the works that the keeper has a record of.
std::set<WorkKey> Duties::restore(const keeper::ProcessList& list) {
  std::set<WorkKey> recorded;
  for (const keeper::DutyRecord& record : list.duties) {
    Work& work = works_[record.key];
    if (record.part > 0) {
      if (!work.outcome) work.outcome = Outcome{record.part - 1, record.content};
      continue;
    }
    recorded.insert(record.key);
    if (work.is_ours || !work.content.empty()) continue;
    Result<Duty> duty = parse_(record.content);
    if (duty)
      work.duty = std::move(*duty);
    else
      work.unreadable = "what was to be done after it is not known: " + duty.error().what;
    work.content = record.content;
  }
  return recorded;
}

void Duties::keeper_connected(keeper::ProcessList& list, TimePoint now) {
  knows_pushes_ = true;
  Pushes pushed = take_pushes(list);
  const std::set<WorkKey> recorded = restore(list);
  std::map<WorkKey, std::set<std::uint32_t>> left;
  std::map<WorkKey, std::vector<ProcessEnded*>> ends;
  for (const auto& one : list.running) left[one.started.key].insert(one.started.rank);
  for (const auto& one : list.waiting) left[one.key].insert(one.ranks.begin(), one.ranks.end());
  for (ProcessEnded& end : list.ended) ends[end.key].push_back(&end);

  std::vector<WorkKey> never_started;
  std::set<std::pair<WorkKey, std::uint32_t>> held;
  for (auto& [key, work] : works_) {
    if (!recorded.contains(key) && !work.content.empty() && list.keeps_duties)  // a new keeper never got it
      effects_.emplace_back(duty::Record{{key, 0, work.content}});
    const auto running = left.find(key);
    if (running != left.end()) work.left = running->second;
    const auto ended = ends.find(key);
    if (ended == ends.end()) {
      if (running == left.end() && !work.is_ours) never_started.push_back(key);
      continue;
    }
    ProcessEnded* last = nullptr;
    for (ProcessEnded* end : ended->second) {
      note_end(work, *end);
      if (!work.unreadable.empty() && ran(*end)) end->outputs_problem = work.unreadable;
      if (work.outcome && work.outcome->rank == end->rank) end->outputs_problem = work.outcome->problem;
      if (!last || end->ended_at >= last->ended_at) last = end;
    }
    if (work.outcome)
      effects_.emplace_back(duty::Record{{key, work.outcome->rank + 1, work.outcome->problem}});
    if (work.outcome || !work.left.empty() || !work.has_output() || !pushes(key, work.duty)) continue;
    held.emplace(key, last->rank);
    work.held = *last;
    work.pushing = pushed.running[key];
    work.push_problem.clear();
    const std::vector<ProcessEnded>& done = pushed.ended[key];
    if (done.empty() && work.pushing.empty() && !again_.contains(key)) push_or_give_up(key, work, now);
    for (const ProcessEnded& end : done) work.pushing.insert(end.rank);
    for (const ProcessEnded& end : done)
      if (work.held) push_ended(key, work, end, now);
  }
  std::erase_if(list.ended, [&](const ProcessEnded& end) {
    if (!held.contains({end.key, end.rank})) return false;
    list.running.push_back({{end.key, end.rank, 0, end.started_at}, {}});
    return true;
  });
  // Unless it is ordered again, nothing of it starts here, and what it had mounted is in nobody's way.
  for (const WorkKey& key : never_started) {
    forget(key);
    effects_.emplace_back(duty::Forget{key});
  }
  list.duties.clear();
}

// ── ends ──

void Duties::ended(ProcessEnded end, TimePoint now) {
  const auto* run = std::get_if<PushRun>(&end.key);
  const auto found = works_.find(run ? work_of(*run) : end.key);
  if (run) {
    if (found != works_.end() && found->second.held) push_ended(found->first, found->second, end, now);
    return;
  }
  if (found != works_.end()) {
    Work& work = found->second;
    note_end(work, end);
    if (!work.unreadable.empty() && ran(end)) end.outputs_problem = work.unreadable;
    if (work.left.empty()) over_.erase(end.key);
    if (work.left.empty() && work.has_output() && pushes(found->first, work.duty)) {
      work.held = std::move(end);
      return push_or_give_up(found->first, work, now);
    }
  }
  effects_.emplace_back(duty::Report{std::move(end)});
}

void Duties::note_end(Work& work, const ProcessEnded& end) {
  work.left.erase(end.rank);
  work.has_run = work.has_run || ran(end);
  work.was_lost = work.was_lost || end.kind == ProcessEndKind::lost;
}

void Duties::push_or_give_up(const WorkKey& key, Work& work, TimePoint now) {
  if (work.push_until && *work.push_until <= now) return finish(key, work, out_of_time);
  push(key, work);
}

void Duties::push(const WorkKey& key, Work& work) {
  again_.erase(key);
  work.push_problem.clear();
  work.push_was_lost = false;
  const auto mounts = static_cast<std::uint32_t>(pushed_mounts(work.duty).size());
  for (std::uint32_t mount = 0; mount < mounts; ++mount) work.pushing.insert(mount);
  if (work.push_until) push_over_[key] = *work.push_until;
  effects_.emplace_back(duty::Push{push_of(key)});
}

void Duties::push_ended(const WorkKey& key, Work& work, const ProcessEnded& end, TimePoint now) {
  if (work.pushing.erase(end.rank) == 0) return;  // of one that is not under way any more
  if (!is_good(end) && work.push_problem.empty())
    work.push_problem = work.push_is_stopped ? out_of_time
                        : end.detail.empty() ? "the program that sends them failed"
                                             : end.detail;
  work.push_was_lost = work.push_was_lost || end.kind == ProcessEndKind::lost;
  if (!work.pushing.empty()) return;
  if (work.push_problem.empty()) return finish(key, work, {});
  // Lost with its keeper or its lease: worth another try for as long as nobody gives the attempt up.
  const bool is_last_try = work.tries >= std::size(again_after) && !work.push_was_lost;
  if (is_last_try || work.is_stopping) return finish(key, work, work.push_problem);
  again_[key] = now + again_after[std::min(work.tries, std::size(again_after) - 1)];
  if (!work.push_was_lost) ++work.tries;
}

void Duties::finish(const WorkKey& key, Work& work, std::string problem) {
  ProcessEnded end = *std::exchange(work.held, std::nullopt);
  again_.erase(key);
  push_over_.erase(key);
  work.outcome = Outcome{end.rank, problem};
  effects_.emplace_back(duty::Record{{key, end.rank + 1, problem}});
  end.outputs_problem = std::move(problem);
  effects_.emplace_back(duty::Report{std::move(end)});
}

void Duties::stop(const WorkKey& key, std::optional<TimePoint> push_until) {
  const auto found = works_.find(key);
  if (found == works_.end()) return;
  Work& work = found->second;
  work.is_stopping = true;
  if (push_until) work.push_until = std::min(work.push_until.value_or(*push_until), *push_until);
  if (again_.contains(key)) return finish(key, work, work.push_problem);
  if (work.push_until && work.held) push_over_[key] = *work.push_until;
}

// What has run longest sets the time of all: the processes of an attempt start together.
void Duties::began(const WorkKey& key, TimePoint since) {
  const auto found = works_.find(key);
  if (found == works_.end() || found->second.duty.wall_time_max.count() == 0) return;
  const TimePoint at = since + found->second.duty.wall_time_max + wall_time_margin;
  const auto [known, is_new] = over_.emplace(key, at);
  if (!is_new) known->second = std::min(known->second, at);
}

void Duties::forget(const WorkKey& key) {
  const auto found = works_.extract(key);
  if (!found) return;
  again_.erase(key);
  over_.erase(key);
  push_over_.erase(key);
  const Duty& duty = found.mapped().duty;
  if (pushes(key, duty)) effects_.emplace_back(duty::Forget{push_of(key)});
  if (!has_mount_commands(duty)) return;
  // Attempts of one job share their mounts on a node.
  if (std::none_of(works_.begin(), works_.end(), [&](const auto& one) {
        return has_mount_commands(one.second.duty) && one.second.duty.view.tree == duty.view.tree;
      }))
    effects_.emplace_back(duty::Unmount{duty});
}

void Duties::tick(TimePoint now) {
  const auto take_due = [&](std::map<WorkKey, TimePoint>& times) {
    std::vector<WorkKey> due;
    std::erase_if(times, [&](const auto& one) {
      if (one.second > now) return false;
      due.push_back(one.first);
      return true;
    });
    return due;
  };
  for (const WorkKey& key : take_due(over_))
    effects_.emplace_back(duty::Stop{key, works_.at(key).duty.stop_grace});
  for (const WorkKey& key : take_due(push_over_)) {
    works_.at(key).push_is_stopped = true;
    effects_.emplace_back(duty::StopPush{push_of(key)});
  }
  if (!knows_pushes_) return;
  for (const WorkKey& key : take_due(again_)) push_or_give_up(key, works_.at(key), now);
}

std::optional<TimePoint> Duties::wake_at() const {
  std::optional<TimePoint> next;
  for (const auto* times : {&again_, &over_, &push_over_}) {
    if (times == &again_ && !knows_pushes_) continue;
    for (const auto& [key, at] : *times) next = std::min(next.value_or(at), at);
  }
  return next;
}

}  // namespace slipway::agent
