#include "agent/core.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/overloaded.h"

namespace slipway::agent {
namespace {

// A service that is just loading a million tasks may take its time with the first answer.
constexpr Duration welcome_wait_max = 10s;
constexpr Duration report_hold_max = 30ms;

}  // namespace

AgentCore::AgentCore(Options options) : options_(std::move(options)) {}

bool AgentCore::Attempt::is_over() const {
  return ordered &&
         std::all_of(processes.begin(), processes.end(), [](const Process& one) { return one.ended; });
}

// ── the connection ──

void AgentCore::connected(SessionId session, TimePoint now) {
  session_ = session;
  is_hello_sent_ = false;
  welcome_.reset();
  last_received_ = now;
  quitting_ = false;  // a service that still wants it says so again
  if (keeper_ready_) send_hello(now);
}

void AgentCore::disconnected(SessionId session) {
  if (session_ != session) return;
  session_.reset();
  is_hello_sent_ = false;
  welcome_.reset();
}

void AgentCore::close(std::string why) {
  SLIPWAY_CHECK(session_.has_value());
  const SessionId session = *session_;
  disconnected(session);
  effects_.emplace_back(effect::CloseSession{session, std::move(why)});
}

void AgentCore::send_hello(TimePoint now) {
  Hello hello{.name = options_.name,
              .pool = options_.pool,
              .instance = options_.instance,
              .boot = options_.boot,
              .address = options_.address,
              .host = options_.host,
              .version = options_.version,
              .local = options_.local,
              .shares_storage = options_.shares_storage,
              .total = options_.total,
              .gpu_indices = options_.gpu_indices,
              .cpu_limit = keeper_cpu_limit_,
              .cpu_limit_reason = keeper_cpu_limit_reason_,
              .notes = options_.notes,
              .engines = options_.engines,
              .waiting = {},
              .running = {},
              .ended = {},
              .prepared = {}};
  hello.notes.insert(hello.notes.end(), keeper_notes_.begin(), keeper_notes_.end());
  std::vector<std::tuple<bool, std::uint64_t, WorkKey>> waiting;
  for (const auto& [key, attempt] : attempts_) {
    if (!attempt.ordered) {  // one that is still being prepared is asked for again, and that changes nothing
      if (attempt.prepared) hello.prepared.push_back(*attempt.prepared);
      continue;
    }
    bool is_waiting = true;
    for (const Process& process : attempt.processes) {
      if (process.ended)
        hello.ended.push_back(*process.ended);
      else if (process.started)
        hello.running.push_back(*process.started);
      is_waiting = is_waiting && !process.ended && !process.started;
    }
    if (is_waiting) waiting.emplace_back(attempt.prefetched, attempt.number, key);
  }
  // In the order they will start: first those that need not wait for capacity.
  std::sort(waiting.begin(), waiting.end());
  for (const auto& [prefetched, number, key] : waiting) hello.waiting.push_back(key);
  is_hello_sent_ = true;
  report_ = {};
  report_since_.reset();
  report_number_ = 0;
  orders_number_ = 0;
  unacknowledged_.clear();
  hello_sent_ = now;
  last_sent_ = now;
  last_received_ = std::max(last_received_, now);
  heartbeat_due_ = false;
  ends_unsaid_ = false;
  effects_.emplace_back(effect::Send{*session_, std::move(hello)});
  for (const auto& [key, attempt] : attempts_)
    if (attempt.stalled) report_.stalled.emplace_back(key, true);
}

void AgentCore::received(SessionId session, ToAgent message, TimePoint now) {
  if (session_ != session) return;
  last_received_ = now;
  std::visit(Overloaded{
                 [&](Welcome& welcome) {
                   if (!is_hello_sent_) return close("the service sent Welcome before Hello");
                   if (welcome_) return;
                   welcome_ = welcome;
                 },
                 [&](Refused& refused) {
                   close("the service refused: " + refused.reason);
                   if (!refused.final || std::exchange(quit_given_, true)) return;
                   effects_.emplace_back(effect::Quit{std::move(refused.reason)});
                 },
                 [&](Orders& orders) {
                   if (!welcome_) return close("the service gave orders before its Welcome");
                   if (orders.number <= orders_number_) return;  // repeated on the way
                   if (orders.number != orders_number_ + 1) return close("orders are missing");
                   orders_number_ = orders.number;
                   apply(std::move(orders), now);
                 },
             },
             message);
}

// The first orders of a session acknowledge Hello; its Welcome alone does not: until what is to stop is
// known, nothing may start that a lease that ended in between forbids.
void AgentCore::renew_lease(std::uint64_t received) {
  std::optional<TimePoint> sent;
  if (orders_number_ == 1) sent = hello_sent_;
  while (!unacknowledged_.empty() && unacknowledged_.front().first <= received) {
    sent = unacknowledged_.front().second;
    unacknowledged_.pop_front();
  }
  if (sent) effects_.emplace_back(effect::RenewLease{*sent});
}

void AgentCore::tick(TimePoint now) {
  if (!session_ || !is_hello_sent_) return;
  if (now - last_received_ > (welcome_ ? welcome_->heartbeat_timeout : welcome_wait_max))
    close("heartbeats of the service were missed for too long");
  else if (welcome_ && now - last_sent_ >= welcome_->heartbeat)
    heartbeat_due_ = true;
}

std::optional<TimePoint> AgentCore::wake_at() const {
  if (!session_ || !is_hello_sent_) return std::nullopt;
  if (!welcome_) return last_received_ + welcome_wait_max + Duration(1);
  const TimePoint next =
      std::min(last_sent_ + welcome_->heartbeat, last_received_ + welcome_->heartbeat_timeout + Duration(1));
  return report_since_ ? std::min(next, *report_since_ + report_hold_max) : next;
}

bool AgentCore::may_hold_report(TimePoint now) const {
  return waiting_ > 0 && waiting_ >= report_.ended.size() && report_.prepared.empty() &&
         now < *report_since_ + report_hold_max;
}

std::vector<Effect> AgentCore::take_effects(TimePoint now) {
  settle_preparations();
  const bool has_news = !report_.started.empty() || !report_.ended.empty() || !report_.prepared.empty() ||
                        !report_.stalled.empty();
  if (has_news && !report_since_) report_since_ = now;
  if (welcome_ && (heartbeat_due_ || (has_news && !may_hold_report(now)))) {
    report_.number = ++report_number_;
    unacknowledged_.emplace_back(report_number_, now);
    effects_.emplace_back(effect::Send{*session_, std::exchange(report_, {})});
    report_since_.reset();
    last_sent_ = now;
    heartbeat_due_ = false;
    ends_unsaid_ = false;
  }
  if (quitting_ && !quit_given_ && may_quit()) {
    quit_given_ = true;
    effects_.emplace_back(effect::Quit{});
  }
  return std::exchange(effects_, {});
}

// Normally every end is forgotten, so saved, before the node goes. A service that is gone as well has
// at least heard of them all.
bool AgentCore::may_quit() const {
  if (attempts_.empty()) return true;
  const bool idle =
      std::all_of(attempts_.begin(), attempts_.end(), [](const auto& one) { return one.second.is_over(); });
  return idle && !session_ && !ends_unsaid_;
}

// ── the keeper ──

void AgentCore::keeper_connected(keeper::ProcessList list, TimePoint now) {
  keeper_notes_ = std::move(list.notes);
  keeper_cpu_limit_ = std::move(list.cpu_limit);
  keeper_cpu_limit_reason_ = std::move(list.cpu_limit_reason);
  if (!forget_later_.empty()) {
    const std::set<WorkKey> forgotten(forget_later_.begin(), forget_later_.end());
    std::erase_if(list.ended, [&](const ProcessEnded& end) { return forgotten.contains(end.key); });
    effects_.emplace_back(effect::Forget{std::exchange(forget_later_, {})});
  }
  correct_what_was_handed(list, now);
  adopt(list);
  keeper_ready_ = true;
  for (auto& [key, attempt] : attempts_)
    if (attempt.handed && attempt.stop && !attempt.is_over())
      effects_.emplace_back(effect::Stop{*std::exchange(attempt.stop, {})});
  hand_over_what_may();
  if (session_ && !is_hello_sent_) send_hello(now);
}

void AgentCore::keeper_lost() { keeper_ready_ = false; }

// What a keeper was given and the list does not know had no intent on disk, so it never ran.
void AgentCore::correct_what_was_handed(const keeper::ProcessList& list, TimePoint now) {
  std::set<std::pair<WorkKey, std::uint32_t>> listed;
  for (const keeper::RunningProcess& kept : list.running) listed.emplace(kept.started.key, kept.started.rank);
  for (const ProcessEnded& end : list.ended) listed.emplace(end.key, end.rank);
  for (const keeper::WaitingAttempt& waiting : list.waiting)
    for (const std::uint32_t rank : waiting.ranks) listed.emplace(waiting.key, rank);
  for (auto& [key, attempt] : attempts_) {
    if (!attempt.handed) continue;
    for (Process& process : attempt.processes) {
      if (process.ended || listed.contains({key, process.rank})) continue;
      ProcessEnded end = end_of(ProcessEndKind::lost, "the node's keeper died before it started this", now);
      end.key = key;
      end.rank = process.rank;
      note_end(attempt, process, std::move(end));
    }
  }
}

void AgentCore::adopt(const keeper::ProcessList& list) {
  for (const keeper::WaitingAttempt& waiting : list.waiting) {
    Attempt& attempt = attempt_of(waiting.key);
    for (const std::uint32_t rank : waiting.ranks) process_of(attempt, rank);
    attempt.prefetched = true;
    if (!std::exchange(attempt.waits, true)) ++waiting_;
  }
  for (const keeper::RunningProcess& kept : list.running)
    process_of(attempt_of(kept.started.key),
               kept.started.rank);  // before any end makes the attempt look over
  for (const keeper::RunningProcess& kept : list.running) started(kept.started);
  for (const ProcessEnded& end : list.ended) {
    Attempt& attempt = attempt_of(end.key);
    note_end(attempt, process_of(attempt, end.rank), end);
  }
}

void AgentCore::started(const ProcessStarted& start) {
  Attempt& attempt = attempt_of(start.key);
  note_start(attempt, process_of(attempt, start.rank), start);
}

void AgentCore::stalled(const WorkKey& key, bool is_stalled) {
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return;
  found->second.stalled = is_stalled;
  if (is_hello_sent_) report_.stalled.emplace_back(key, is_stalled);
}

void AgentCore::ended(ProcessEnded end) {
  Attempt& attempt = attempt_of(end.key);
  Process& process = process_of(attempt, end.rank);
  note_end(attempt, process, std::move(end));
}

// ── what became of processes ──

void AgentCore::note_begun(Attempt& attempt) {
  if (std::exchange(attempt.waits, false)) --waiting_;
}

void AgentCore::note_start(Attempt& attempt, Process& process, const ProcessStarted& start) {
  if (process.started || process.ended) return;
  note_begun(attempt);
  if (is_hello_sent_) report_.started.push_back(start);
  process.started = start;
}

void AgentCore::note_end(Attempt& attempt, Process& process, ProcessEnded end) {
  if (process.ended) return;
  ends_unsaid_ = true;
  if (is_hello_sent_) {  // a start not yet reported is implied by its end
    if (end.kind == ProcessEndKind::exited || end.kind == ProcessEndKind::signalled)
      std::erase_if(report_.started, [&](const ProcessStarted& start) {
        return start.key == end.key && start.rank == end.rank;
      });
    report_.ended.push_back(end);
  }
  process.ended = std::move(end);
  note_begun(attempt);
  if (const auto* run = std::get_if<PreparationRun>(&process.ended->key)) preparations_ended_.push_back(*run);
}

void AgentCore::end_rest(Attempt& attempt, ProcessEnded how) {
  how.key = attempt.order.key;
  std::erase(unhanded_, how.key);
  for (Process& process : attempt.processes) {
    how.rank = process.rank;
    note_end(attempt, process, how);
  }
}

AgentCore::Attempt& AgentCore::attempt_of(const WorkKey& key) {
  const auto [at, is_new] = attempts_.try_emplace(key);
  if (is_new) {  // only the keeper reports attempts we do not know
    at->second.handed = true;
    at->second.ordered = true;
    at->second.number = ++last_number_;
  }
  return at->second;
}

AgentCore::Process& AgentCore::process_of(Attempt& attempt, std::uint32_t rank) {
  for (Process& process : attempt.processes)
    if (process.rank == rank) return process;
  return attempt.processes.emplace_back(Process{rank, {}, {}});
}

ProcessEnded AgentCore::end_of(ProcessEndKind kind, std::string detail, TimePoint now) {
  ProcessEnded end;
  end.kind = kind;
  end.counts_against_retries = false;
  end.detail = std::move(detail);
  end.ended_at = now;
  return end;
}

}  // namespace slipway::agent
