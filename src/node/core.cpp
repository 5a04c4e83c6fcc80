#include "node/core.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/overloaded.h"

namespace slipway::node {
namespace {

// A service that is just loading a million tasks may take its time with the first answer.
constexpr Duration welcome_wait_max{10'000'000};
constexpr Duration report_hold_max{30'000};

ProcessEnded end_of(ProcessEndKind kind, std::string detail, TimePoint now) {
  ProcessEnded end;
  end.kind = kind;
  end.users_fault = false;
  end.detail = std::move(detail);
  end.ended_at = now;
  return end;
}

StartOrder preparation_order(const PrepareOrder& order) {
  StartOrder start;
  start.key = preparation_of(order.key);
  start.folder = order.folder;
  start.stop_grace = order.stop_grace;
  start.processes = order.preparation;
  start.view = order.view;
  return start;
}

// What is said of a preparation that did not end well. One that was lost with its keeper is not to blame.
void explain(const ProcessEnded& ended, Prepared& result) {
  result.last_lines = ended.last_lines;
  switch (ended.kind) {
    case ProcessEndKind::exited:
      result.exit_code = ended.code;
      result.problem = "ended with exit code " + std::to_string(ended.code);
      return;
    case ProcessEndKind::signalled:
      result.exit_code = 128 + ended.code;
      result.problem = "was killed by signal " + std::to_string(ended.code);
      return;
    case ProcessEndKind::start_failed:
      if (ended.users_fault) result.exit_code = 127;
      result.problem = "could not be started: " + ended.detail;
      return;
    case ProcessEndKind::lost:
    case ProcessEndKind::not_started: break;
  }
  result.problem = "its preparation was cut short: " + ended.detail;
}

}  // namespace

AgentCore::AgentCore(Options options) : options_(std::move(options)) {}

bool AgentCore::Attempt::is_over() const {
  return ordered &&
         std::all_of(processes.begin(), processes.end(), [](const Process& one) { return one.ended; });
}

// ── the connection ──

void AgentCore::connected(SessionId session, TimePoint now) {
  session_ = session;
  hello_said_ = false;
  welcome_.reset();
  last_heard_ = now;
  quitting_ = false;  // a service that still wants it says so again
  if (keeper_ready_) say_hello(now);
}

void AgentCore::disconnected(SessionId session) {
  if (session_ != session) return;
  session_.reset();
  hello_said_ = false;
  welcome_.reset();
}

void AgentCore::close(std::string why) {
  SLIPWAY_CHECK(session_.has_value());
  const SessionId session = *session_;
  disconnected(session);
  effects_.emplace_back(effect::CloseSession{session, std::move(why)});
}

void AgentCore::say_hello(TimePoint now) {
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
              .notes = options_.notes,
              .engines = options_.engines,
              .waiting = {},
              .running = {},
              .ended = {},
              .prepared = {}};
  hello.notes.insert(hello.notes.end(), keeper_notes_.begin(), keeper_notes_.end());
  std::vector<std::tuple<bool, std::uint64_t, AttemptKey>> waiting;
  for (const auto& [key, attempt] : attempts_) {
    if (!attempt.ordered) {  // one that is still being prepared is asked for again, and that changes nothing
      if (attempt.prepared) hello.prepared.push_back(*attempt.prepared);
      continue;
    }
    bool silent = true;
    for (const Process& process : attempt.processes) {
      if (process.ended)
        hello.ended.push_back(*process.ended);
      else if (process.started)
        hello.running.push_back(*process.started);
      silent = silent && !process.ended && !process.started;
    }
    if (silent) waiting.emplace_back(attempt.behind, attempt.number, key);
  }
  // In the order they will start: first those that need not wait for room.
  std::sort(waiting.begin(), waiting.end());
  for (const auto& [behind, number, key] : waiting) hello.waiting.push_back(key);
  hello_said_ = true;
  report_ = {};
  report_since_.reset();
  report_number_ = 0;
  orders_number_ = 0;
  last_sent_ = now;
  last_heard_ = std::max(last_heard_, now);
  heartbeat_due_ = false;
  ends_unsaid_ = false;
  effects_.emplace_back(effect::Send{*session_, std::move(hello)});
  for (const auto& [key, attempt] : attempts_)
    if (attempt.silent) report_.silent.emplace_back(key, true);
}

void AgentCore::received(SessionId session, ToAgent message, TimePoint now) {
  if (session_ != session) return;
  last_heard_ = now;
  std::visit(Overloaded{
                 [&](Welcome& welcome) {
                   if (!hello_said_) return close("the service said Welcome before Hello");
                   if (!welcome_) welcome_ = welcome;
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
                   obey(std::move(orders), now);
                 },
             },
             message);
}

void AgentCore::tick(TimePoint now) {
  if (!session_ || !hello_said_) return;
  if (now - last_heard_ > (welcome_ ? welcome_->silence_max : welcome_wait_max))
    close("the service was silent for too long");
  else if (welcome_ && now - last_sent_ >= welcome_->heartbeat)
    heartbeat_due_ = true;
}

std::optional<TimePoint> AgentCore::wake_at() const {
  if (!session_ || !hello_said_) return std::nullopt;
  if (!welcome_) return last_heard_ + welcome_wait_max + Duration(1);
  const TimePoint next =
      std::min(last_sent_ + welcome_->heartbeat, last_heard_ + welcome_->silence_max + Duration(1));
  return report_since_ ? std::min(next, *report_since_ + report_hold_max) : next;
}

bool AgentCore::may_hold_report(TimePoint now) const {
  return waiting_ > 0 && waiting_ >= report_.ended.size() && report_.prepared.empty() &&
         now < *report_since_ + report_hold_max;
}

std::vector<Effect> AgentCore::take_effects(TimePoint now) {
  settle_preparations();
  const bool has_news = !report_.started.empty() || !report_.ended.empty() || !report_.prepared.empty() ||
                        !report_.silent.empty();
  if (has_news && !report_since_) report_since_ = now;
  if (welcome_ && (heartbeat_due_ || (has_news && !may_hold_report(now)))) {
    report_.number = ++report_number_;
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

// Normally every end is forgotten, so written down, before the node goes. A service that is gone as well has
// at least been told of them all.
bool AgentCore::may_quit() const {
  if (attempts_.empty()) return true;
  const bool idle =
      std::all_of(attempts_.begin(), attempts_.end(), [](const auto& one) { return one.second.is_over(); });
  return idle && !session_ && !ends_unsaid_;
}

// ── orders ──

void AgentCore::obey(Orders orders, TimePoint now) {
  if (!orders.forget.empty()) forget(orders.forget);  // first: it may be asked to come back to one of them
  for (const PrepareOrder& order : orders.prepare) prepare(order);
  for (StartOrder& order : orders.start) accept(std::move(order));
  hand_over_what_may();
  for (FilesOrder& order : orders.files)
    if (const auto known = attempts_.find(order.key); known != attempts_.end() && !known->second.is_over())
      effects_.emplace_back(effect::WriteFiles{std::move(order)});
  for (const StopOrder& order : orders.stop) stop(order, now);
  if (orders.quit) quitting_ = true;
}

void AgentCore::prepare(const PrepareOrder& order) {
  const auto [found, is_new] = attempts_.try_emplace(order.key);
  Attempt& attempt = found->second;
  if (is_new) {
    attempt.files = order.files;
    if (!order.preparation.empty()) attempt.preparation = preparation_order(order);
    effects_.emplace_back(effect::Stage{order});
  } else if (!attempt.ordered && attempt.prepared) {  // it asks again: what we said was lost on the way
    report_.prepared.push_back(*attempt.prepared);
  }
}

void AgentCore::accept(StartOrder order) {
  const AttemptKey key = order.key;
  if (const auto known = attempts_.find(key);
      order.processes.empty() || (known != attempts_.end() && known->second.ordered))
    return;
  Attempt& attempt = attempts_[key];
  attempt.number = ++last_number_;
  attempt.behind = order.behind;
  attempt.ordered = true;
  // Prepared before, or by an agent that has died since: then its files are laid out a second time.
  const bool was_prepared = attempt.prepared.has_value();
  attempt.prepared.reset();
  // Files may tell of what was found meanwhile, and then differ.
  const bool has_files = order.files.empty() || (was_prepared && order.files == attempt.files);
  attempt.files.clear();
  attempt.staged =
      has_files &&
      (was_prepared || (order.view.root.empty() && (order.source.empty() || !order.workdir.empty())));
  for (const ProcessStart& process : order.processes) attempt.processes.push_back({process.rank, {}, {}});
  attempt.order = std::move(order);
  if (!attempt.staged) {  // also for one that waits, so that its turn finds it ready
    const StartOrder& ordered = attempt.order;
    PrepareOrder stage;
    stage.key = key;
    stage.folder = ordered.folder;
    stage.source = ordered.workdir.empty() && !was_prepared ? ordered.source : "";
    stage.files = ordered.files;
    stage.view = ordered.view;
    for (const ProcessStart& process : ordered.processes)
      stage.folders.push_back(ordered.folder + "/" + process.wd_name);
    effects_.emplace_back(effect::Stage{std::move(stage)});
  }
  unhanded_.push_back(key);
}

// The room of what came before a `behind` one must be taken before the keeper looks for room for it.
void AgentCore::hand_over_what_may() {
  if (!keeper_ready_) return;
  bool all_gone = true;
  for (auto at = unhanded_.begin(); at != unhanded_.end();) {
    Attempt& attempt = attempts_.at(*at);
    if (!attempt.staged || (attempt.behind && !all_gone)) {
      all_gone = false;
      ++at;
      continue;
    }
    at = unhanded_.erase(at);
    attempt.handed = true;
    attempt.waits = attempt.behind;
    waiting_ += attempt.waits;
    effects_.emplace_back(effect::Start{std::exchange(attempt.order, {})});
  }
}

void AgentCore::stop(const StopOrder& order, TimePoint now) {
  const auto found = attempts_.find(order.key);
  if (found == attempts_.end() || found->second.is_over()) return;
  Attempt& attempt = found->second;
  if (is_preparation(order.key)) {  // what it was for will not be started
    if (const auto main = attempts_.find(prepared_by(order.key));
        main != attempts_.end() && !main->second.ordered) {
      attempts_.erase(main);
      effects_.emplace_back(effect::Release{prepared_by(order.key)});
    }
  }
  if (!attempt.ordered) {  // nothing of it ran and nothing will, but what prepares it may
    attempts_.erase(found);
    effects_.emplace_back(effect::Release{order.key});
    StopOrder preparation = order;
    preparation.key = preparation_of(order.key);
    if (attempts_.contains(preparation.key)) stop(preparation, now);
  } else if (!attempt.handed) {
    end_rest(attempt, end_of(ProcessEndKind::not_started, "stopped before it was started", now));
    hand_over_what_may();
  } else if (keeper_ready_) {
    effects_.emplace_back(effect::Stop{order});
  } else if (!attempt.stop || order.grace < attempt.stop->grace) {
    attempt.stop = order;
  }
}

void AgentCore::forget(const std::vector<AttemptKey>& keys) {
  std::vector<AttemptKey> kept;  // those the keeper remembers too
  for (const AttemptKey& key : keys) {
    const auto found = attempts_.find(key);
    if (found == attempts_.end() || !found->second.is_over()) continue;
    if (found->second.handed) kept.push_back(key);
    attempts_.erase(found);
  }
  if (kept.empty()) return;
  if (keeper_ready_)
    effects_.emplace_back(effect::Forget{std::move(kept)});
  else
    forget_later_.insert(forget_later_.end(), kept.begin(), kept.end());
}

void AgentCore::staged(Prepared result, TimePoint now) {
  const auto found = attempts_.find(result.key);
  if (found == attempts_.end()) return effects_.emplace_back(effect::Release{result.key}), void();
  Attempt& attempt = found->second;
  if (attempt.staged || attempt.is_over()) return;
  if (!attempt.ordered && attempt.preparation && result.problem.empty()) {
    const AttemptKey key = result.key;
    attempt.found = std::move(result);
    return begin_preparation(key, attempt);
  }
  if (!attempt.ordered) {
    if (hello_said_) report_.prepared.push_back(result);
    attempt.prepared = std::move(result);
    return;
  }
  if (!result.problem.empty()) {
    end_rest(attempt, end_of(ProcessEndKind::start_failed, std::move(result.problem), now));
    return hand_over_what_may();
  }
  attempt.staged = true;
  hand_over_what_may();
}

// One that an agent before us began goes on; one that is over is not run again.
void AgentCore::begin_preparation(const AttemptKey& of, Attempt& attempt) {
  const AttemptKey key = preparation_of(of);
  const auto [found, is_new] = attempts_.try_emplace(key);
  if (!is_new) {
    if (found->second.is_over()) preparations_ended_.push_back(key);
    return;
  }
  Attempt& preparation = found->second;
  preparation.number = ++last_number_;
  preparation.ordered = true;
  preparation.staged = true;
  preparation.order = std::move(*attempt.preparation);
  for (const ProcessStart& process : preparation.order.processes)
    preparation.processes.push_back({process.rank, {}, {}});
  unhanded_.push_back(key);
  hand_over_what_may();
}

void AgentCore::settle_preparations() {
  for (const AttemptKey& key : std::exchange(preparations_ended_, {})) {
    const auto found = attempts_.find(prepared_by(key));
    const auto preparation = attempts_.find(key);
    if (found == attempts_.end() || preparation == attempts_.end() || !found->second.found) continue;
    Prepared result = *std::exchange(found->second.found, {});
    const ProcessEnded& ended = *preparation->second.processes.front().ended;
    if (ended.kind != ProcessEndKind::exited || ended.code != 0) explain(ended, result);
    if (hello_said_) report_.prepared.push_back(result);
    found->second.prepared = std::move(result);
  }
}

// ── the keeper ──

void AgentCore::keeper_connected(KeeperList list, TimePoint now) {
  keeper_notes_ = std::move(list.notes);
  if (!forget_later_.empty()) {
    const std::set<AttemptKey> forgotten(forget_later_.begin(), forget_later_.end());
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
  if (session_ && !hello_said_) say_hello(now);
}

void AgentCore::keeper_lost() { keeper_ready_ = false; }

// What a keeper was given and the list does not know had no intent on disk, so it never ran.
void AgentCore::correct_what_was_handed(const KeeperList& list, TimePoint now) {
  std::set<std::pair<AttemptKey, std::uint32_t>> listed;
  for (const KeptProcess& kept : list.running) listed.emplace(kept.started.key, kept.started.rank);
  for (const ProcessEnded& end : list.ended) listed.emplace(end.key, end.rank);
  for (const WaitingAttempt& waiting : list.waiting)
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

void AgentCore::adopt(const KeeperList& list) {
  for (const WaitingAttempt& waiting : list.waiting) {
    Attempt& attempt = attempt_of(waiting.key);
    for (const std::uint32_t rank : waiting.ranks) process_of(attempt, rank);
    attempt.behind = true;
    if (!std::exchange(attempt.waits, true)) ++waiting_;
  }
  for (const KeptProcess& kept : list.running)
    process_of(attempt_of(kept.started.key),
               kept.started.rank);  // before any end makes the attempt look over
  for (const KeptProcess& kept : list.running) started(kept.started);
  for (const ProcessEnded& end : list.ended) {
    Attempt& attempt = attempt_of(end.key);
    note_end(attempt, process_of(attempt, end.rank), end);
  }
}

void AgentCore::started(const ProcessStarted& start) {
  Attempt& attempt = attempt_of(start.key);
  note_start(attempt, process_of(attempt, start.rank), start);
}

void AgentCore::silent(const AttemptKey& key, bool is_silent) {
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return;
  found->second.silent = is_silent;
  if (hello_said_) report_.silent.emplace_back(key, is_silent);
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
  if (hello_said_) report_.started.push_back(start);
  process.started = start;
}

void AgentCore::note_end(Attempt& attempt, Process& process, ProcessEnded end) {
  if (process.ended) return;
  ends_unsaid_ = true;
  if (hello_said_) {  // a start that nobody was told of yet is said by its end
    if (end.kind == ProcessEndKind::exited || end.kind == ProcessEndKind::signalled)
      std::erase_if(report_.started, [&](const ProcessStarted& start) {
        return start.key == end.key && start.rank == end.rank;
      });
    report_.ended.push_back(end);
  }
  process.ended = std::move(end);
  note_begun(attempt);
  if (is_preparation(process.ended->key)) preparations_ended_.push_back(process.ended->key);
}

void AgentCore::end_rest(Attempt& attempt, ProcessEnded how) {
  how.key = attempt.order.key;
  std::erase(unhanded_, how.key);
  for (Process& process : attempt.processes) {
    how.rank = process.rank;
    note_end(attempt, process, how);
  }
}

AgentCore::Attempt& AgentCore::attempt_of(const AttemptKey& key) {
  const auto [at, is_new] = attempts_.try_emplace(key);
  if (is_new) {  // only the keeper speaks of attempts we do not know
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

}  // namespace slipway::node
