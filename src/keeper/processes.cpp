#include "keeper/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "keeper/log.h"

namespace slipway::keeper {
namespace {

constexpr Duration guard_patience_least = 100ms;

}  // namespace

Processes::Processes(KeeperIdentity identity, CgroupPool cgroups, Journal journal, JournalHeader header,
                     Recovered left, CoreList cores, std::string empty_folders, int epoll, const Clock& clock,
                     std::vector<std::string> restart_command)
    : identity_(std::move(identity)),
      cgroups_(std::move(cgroups)),
      has_cores_(!cores.empty()),
      cores_(std::move(cores)),
      journal_(std::move(journal)),
      header_(std::move(header)),
      epoll_(epoll),
      clock_(clock),
      empty_folders_(std::move(empty_folders)),
      guard_(std::move(restart_command)) {
  for (ProcessEnded& end : left.ended) attempts_[end.key].ended.push_back(std::move(end));
  for (DutyRecord& record : left.duties) duties_[{record.key, record.part}] = std::move(record.content);
  if (!cgroups_.is_exact()) return;
  const int slot = cgroups_.take();
  const Result<void> tried = try_group(cgroups_.folder_fd(slot));
  cgroups_.give_back(slot);
  if (!tried) cgroups_.give_up(tried.error().what);
}
// ── what the agent asks ──

void Processes::start(StartRequest start) {
  if (start.processes.empty()) return;
  const auto [attempt, is_new] = attempts_.try_emplace(start.key);
  if (!is_new) return;
  attempt->second.left = start.processes.size();
  if (!start.duties.empty()) note({start.key, 0, std::exchange(start.duties, {})});
  if (refuse_without_lease(start)) return;
  Resources needs;
  for (const ProcessSpec& process : start.processes) needs = needs + process.resources;
  if (start.prefetched) {
    capacity_.wait(start.key, needs, start.total);
    waiting_.emplace(start.key, std::move(start));
  } else {
    capacity_.take(start.key, needs);
    intend(std::move(start));
  }
}

void Processes::note(const DutyRecord& record) {
  journal_.note(record);
  duties_[{record.key, record.part}] = record.content;
}

// A lease that has ended stays so: a keeper that did not run meanwhile has not ended what it must.
void Processes::renew(const RenewRequest& renew) {
  end_leases();
  leases_.renew(renew.from);
  set_guard();
}

// An order that was held up on its way: by now the service may have started it elsewhere.
bool Processes::refuse_without_lease(const StartRequest& start) {
  if (start.lease <= Duration(0)) return false;
  if (!leases_.is_over(start.lease, boot_time())) {
    leases_.add(start.key, start.lease);
    set_guard();
    return false;
  }
  for (const ProcessSpec& process : start.processes)
    did_not_start(start.key, process.rank, ProcessEndKind::lost,
                  "the lease of the node ended before it was started", false);
  return true;
}

// The guard lets the keeper be late by a twentieth of the lease, a quarter of a second of five, but not by
// less than a busy machine may make it.
void Processes::set_guard() {
  const std::optional<Duration> next = leases_.next();
  const Duration late_max = std::max(leases_.shortest() / 20, guard_patience_least);
  guard_.set_deadline(next ? std::optional(*next + late_max) : std::nullopt);
  if (guard_.pid() > 0) others_.insert(guard_.pid());
}

void Processes::end_leases() {
  const std::vector<WorkKey> over = leases_.take_over(boot_time());
  if (over.empty()) return;
  start_pending();
  for (const WorkKey& key : over) {
    if (const auto waiting = waiting_.extract(key))
      for (const ProcessSpec& process : waiting.mapped().processes)
        did_not_start(key, process.rank, ProcessEndKind::lost, "the lease of the node ended", false);
    for (const Serial serial : std::vector<Serial>(attempts_[key].running)) {
      running_.at(serial).lease_is_over = !running_.at(serial).end;
      stop_tree(serial, Duration(0));
    }
  }
  log_line(fmt::format("the lease of the node ended: {} attempts were stopped", over.size()));
  set_guard();
}

void Processes::intend(StartRequest start) {
  const TimePoint now = clock_.now();
  for (const ProcessSpec& process : start.processes) journal_.intend({start.key, process.rank, now});
  pending_.push_back(std::move(start));
}

void Processes::stop(const StopRequest& stop) {
  start_pending();
  const auto found = attempts_.find(stop.key);
  if (found == attempts_.end()) return;
  stop_waiting(stop.key);
  for (const Serial serial : std::vector<Serial>(found->second.running)) stop_tree(serial, stop.grace);
}

void Processes::stop_waiting(const WorkKey& key) {
  const auto waiting = waiting_.extract(key);
  if (!waiting) return;
  for (const ProcessSpec& process : waiting.mapped().processes)
    did_not_start(key, process.rank, ProcessEndKind::not_started, "stopped before it was started", false);
}

void Processes::stop_everything() {
  for (const WorkKey& key : capacity_.waiting_keys()) stop_waiting(key);
  start_pending();
  std::vector<Serial> serials;
  for (const auto& [serial, process] : running_) serials.push_back(serial);
  for (const Serial serial : serials) stop_tree(serial, Duration(0));
}

void Processes::forget(const ForgetRequest& forget) {
  start_pending();
  for (const WorkKey& key : forget.keys) {
    const auto found = attempts_.find(key);
    if (found != attempts_.end() && found->second.left > 0) continue;
    auto duty = duties_.lower_bound({key, 0});
    if (found == attempts_.end() && (duty == duties_.end() || duty->first.first != key)) continue;
    journal_.forget(key);
    if (found != attempts_.end()) attempts_.erase(found);
    while (duty != duties_.end() && duty->first.first == key) duty = duties_.erase(duty);
  }
}

ProcessList Processes::list() {
  start_pending();
  flush_journal();
  ProcessList list;
  list.notes = cgroups_.notes();
  list.cpu_limit = cgroups_.can_limit_cpu() ? "cgroup" : has_cores_ ? "affinity" : "off";
  list.cpu_limit_reason = cgroups_.cpu_limit_reason();
  if (!cgroups_.can_limit_cpu())
    list.cpu_limit_reason += has_cores_ ? "; a process that was granted less than one core is not limited"
                                        : "; the cores of this machine are not known";
  for (const auto& [serial, process] : running_)
    list.running.push_back(
        {{process.key, process.rank, process.end ? 0 : process.pid, process.started_at}, process.resources});
  for (const auto& [key, attempt] : attempts_)
    list.ended.insert(list.ended.end(), attempt.ended.begin(), attempt.ended.end());
  for (const WorkKey& key : capacity_.waiting_keys()) {
    WaitingAttempt& waiting = list.waiting.emplace_back(WaitingAttempt{key, {}});
    for (const ProcessSpec& process : waiting_.at(key).processes) waiting.ranks.push_back(process.rank);
  }
  list.keeps_duties = true;
  for (const auto& [name, content] : duties_) list.duties.push_back({name.first, name.second, content});
  events_.clear();  // the list says it all
  return list;
}
// ── writing down ──

std::vector<FromKeeper> Processes::take_events() {
  start_pending();
  empty_folders_.put_away();
  check_spawns();
  flush_journal();
  return std::exchange(events_, {});
}

void Processes::flush_journal() {
  Result<void> written = journal_.flush();
  if (journal_.is_long(!attempts_.empty() || !duties_.empty())) written = journal_.rewrite(content());
  // Ends stay in memory and in the buffer; the next turn tries again.
  if (!written && !journal_failed_) log_line(written.error().what);
  journal_failed_ = !written;
}

JournalContent Processes::content() const {
  JournalContent content{header_, {}, {}, {}};
  for (const auto& [name, text] : duties_) content.duties.push_back({name.first, name.second, text});
  for (const auto& [serial, process] : running_)
    content.open.push_back({process.key, process.rank, process.started_at});
  for (const auto& [key, attempt] : attempts_)
    content.ended.insert(content.ended.end(), attempt.ended.begin(), attempt.ended.end());
  return content;
}
}  // namespace slipway::keeper
