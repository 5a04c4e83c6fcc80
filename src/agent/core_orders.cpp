// Orders of the service: attempts are prepared, handed to the keeper, stopped and forgotten.
#include <algorithm>
#include <set>
#include <utility>

#include "agent/core.h"
#include "base/check.h"

namespace slipway::agent {
namespace {

StartOrder preparation_order(const PrepareOrder& order) {
  StartOrder start;
  start.key = PreparationRun{std::get<AttemptKey>(order.key)};
  start.folder = order.folder;
  start.stop_grace = order.stop_grace;
  start.processes = order.preparation;
  start.run_as = order.run_as;
  start.view = order.view;
  start.lease = order.lease;
  return start;
}

// What is reported of a preparation that did not end well. One that was lost with its keeper is not to blame.
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
      if (ended.counts_against_retries) result.exit_code = 127;
      result.problem = "could not be started: " + ended.detail;
      return;
    case ProcessEndKind::lost:
    case ProcessEndKind::not_started: break;
  }
  result.problem = "its preparation was cut short: " + ended.detail;
}

}  // namespace

void AgentCore::apply(Orders orders, TimePoint now) {
  if (!orders.forget.empty()) forget(orders.forget);  // first: it may be asked to come back to one of them
  if (orders.number == 1) drop_what_is_not_asked_for(orders.prepare);
  for (const PrepareOrder& order : orders.prepare) prepare(order);
  for (StartOrder& order : orders.start) accept(std::move(order));
  for (const StopOrder& order : orders.stop) stop(order, now);
  renew_lease(orders.received);
  hand_over_what_may();
  for (FilesOrder& order : orders.files)
    if (const auto known = attempts_.find(order.key); known != attempts_.end() && !known->second.is_over())
      effects_.emplace_back(effect::WriteFiles{std::move(order)});
  for (std::string& folder : orders.remove) effects_.emplace_back(effect::RemoveFolder{std::move(folder)});
  if (orders.quit) quitting_ = true;
}

// Hello does not list what is still being laid out: the service asks again for what it still wants.
void AgentCore::drop_what_is_not_asked_for(const std::vector<PrepareOrder>& asked) {
  std::set<WorkKey> wanted;
  for (const PrepareOrder& order : asked) wanted.insert(order.key);
  for (auto at = attempts_.begin(); at != attempts_.end();) {
    const bool is_laid_out = at->second.ordered || at->second.prepared || at->second.found;
    if (is_laid_out || wanted.contains(at->first)) {
      ++at;
      continue;
    }
    effects_.emplace_back(effect::Release{at->first});
    at = attempts_.erase(at);
  }
}

void AgentCore::prepare(const PrepareOrder& order) {
  const auto [found, is_new] = attempts_.try_emplace(order.key);
  Attempt& attempt = found->second;
  if (is_new) {
    attempt.files = order.files;
    if (!order.preparation.empty()) attempt.preparation = preparation_order(order);
    effects_.emplace_back(effect::Stage{order});
  } else if (!attempt.ordered && attempt.prepared) {  // it asks again: our report was lost on the way
    report_.prepared.push_back(*attempt.prepared);
  }
}

void AgentCore::accept(StartOrder order) {
  const WorkKey key = order.key;
  if (const auto known = attempts_.find(key);
      order.processes.empty() || (known != attempts_.end() && known->second.ordered))
    return;
  Attempt& attempt = attempts_[key];
  attempt.number = ++last_number_;
  attempt.prefetched = order.prefetched;
  attempt.ordered = true;
  // Prepared before, or by an agent that has died since: then its files are laid out a second time.
  const bool was_prepared = attempt.prepared.has_value();
  attempt.prepared.reset();
  // Files may hold what was found meanwhile, and then differ.
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
    stage.run_as = ordered.run_as;
    for (const ProcessStart& process : ordered.processes)
      stage.folders.push_back(ordered.folder + "/" + process.wd_name);
    effects_.emplace_back(effect::Stage{std::move(stage)});
  }
  unhanded_.push_back(key);
}

// The capacity of what came before a prefetched one must be taken before the keeper looks for some
// for it.
void AgentCore::hand_over_what_may() {
  if (!keeper_ready_) return;
  bool all_gone = true;
  for (auto at = unhanded_.begin(); at != unhanded_.end();) {
    Attempt& attempt = attempts_.at(*at);
    if (!attempt.staged || (attempt.prefetched && !all_gone)) {
      all_gone = false;
      ++at;
      continue;
    }
    at = unhanded_.erase(at);
    attempt.handed = true;
    attempt.waits = attempt.prefetched;
    waiting_ += attempt.waits;
    effects_.emplace_back(effect::Start{std::exchange(attempt.order, {})});
  }
}

void AgentCore::stop(const StopOrder& order, TimePoint now) {
  const auto found = attempts_.find(order.key);
  if (found == attempts_.end() || found->second.is_over()) return;
  Attempt& attempt = found->second;
  if (const auto* run = std::get_if<PreparationRun>(&order.key)) {  // what it was for will not be started
    if (const auto main = attempts_.find(run->of); main != attempts_.end() && !main->second.ordered) {
      attempts_.erase(main);
      effects_.emplace_back(effect::Release{run->of});
    }
  }
  if (!attempt.ordered) {  // nothing of it ran and nothing will, but what prepares it may
    attempts_.erase(found);
    effects_.emplace_back(effect::Release{order.key});
    StopOrder preparation = order;
    preparation.key = PreparationRun{std::get<AttemptKey>(order.key)};
    if (attempts_.contains(preparation.key)) stop(preparation, now);
  } else if (!attempt.handed) {
    end_rest(attempt, end_of(ProcessEndKind::not_started, "stopped before it was started", now));
  } else if (keeper_ready_) {
    effects_.emplace_back(effect::Stop{order});
  } else if (!attempt.stop || order.grace < attempt.stop->grace) {
    attempt.stop = order;
  }
}

void AgentCore::forget(const std::vector<WorkKey>& keys) {
  std::vector<WorkKey> kept;  // those the keeper remembers too
  for (const WorkKey& key : keys) {
    const auto found = attempts_.find(key);
    if (found == attempts_.end() || !found->second.is_over()) continue;
    if (found->second.handed)
      kept.push_back(key);
    else
      effects_.emplace_back(effect::Release{key});
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
    const AttemptKey key = std::get<AttemptKey>(result.key);
    attempt.found = std::move(result);
    return begin_preparation(key, attempt);
  }
  if (!attempt.ordered) {
    if (is_hello_sent_) report_.prepared.push_back(result);
    attempt.prepared = std::move(result);
    return;
  }
  if (!result.problem.empty()) {
    ProcessEnded end = end_of(ProcessEndKind::start_failed, std::move(result.problem), now);
    end.counts_against_retries = result.is_permanent;
    end_rest(attempt, std::move(end));
    return hand_over_what_may();
  }
  attempt.staged = true;
  hand_over_what_may();
}

// One that an agent before us began continues; one that is over is not run again.
void AgentCore::begin_preparation(const AttemptKey& of, Attempt& attempt) {
  const WorkKey key = PreparationRun{of};
  const auto [found, is_new] = attempts_.try_emplace(key);
  if (!is_new) {
    if (found->second.is_over()) preparations_ended_.push_back({of});
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
  for (const PreparationRun& run : std::exchange(preparations_ended_, {})) {
    const auto found = attempts_.find(run.of);
    const auto preparation = attempts_.find(run);
    if (found == attempts_.end() || preparation == attempts_.end() || !found->second.found) continue;
    Prepared result = *std::exchange(found->second.found, {});
    const ProcessEnded& ended = *preparation->second.processes.front().ended;
    if (ended.kind != ProcessEndKind::exited || ended.code != 0) explain(ended, result);
    if (is_hello_sent_) report_.prepared.push_back(result);
    found->second.prepared = std::move(result);
  }
}

}  // namespace slipway::agent
