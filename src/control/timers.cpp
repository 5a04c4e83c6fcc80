#include "control/timers.h"

#include <fmt/format.h>

#include "control/attempts.h"
#include "control/catalog.h"
#include "control/evict.h"
#include "control/jobs.h"
#include "control/lease.h"
#include "control/nodes.h"
#include "control/pools.h"
#include "control/scale.h"
#include "control/start_tasks.h"

namespace slipway::control {
namespace {

// What a timer was set for may be gone by now; then nothing follows.
struct Due {
  Turn& turn;
  TimePoint at;

  void operator()(const RetryDue& due) const {
    // It may have been made ready before, as somebody asked.
    if (Task* task = turn.state.find_task(due.subject);
        task && !task->attempt && task->record.not_before && *task->record.not_before <= turn.now)
      make_ready(turn, turn.state.jobs.at(due.subject.job), *task);
  }
  void operator()(const WallTimeOver& due) const {
    if (Attempt* attempt = turn.state.find_attempt(due.subject); attempt && !attempt->is_stopping())
      on_wall_time_over(turn, *attempt);
  }
  void operator()(const StartTimeout& due) const {
    if (Attempt* attempt = turn.state.find_attempt(due.subject)) on_start_timeout(turn, *attempt);
  }
  void operator()(const EndGraceOver& due) const {
    if (Attempt* attempt = turn.state.find_attempt(due.subject); attempt && !attempt->is_stopping())
      stop_attempt(turn, *attempt, {EndReason::exited, "it exited with code 0"});
  }

  void operator()(const HeartbeatDue& due) const {
    if (Node* node = find(due.subject)) on_heartbeat_due(turn, *node);
  }
  void operator()(const StartTaskTimeout& due) const {
    if (Node* node = find(due.subject.node)) on_start_task_timeout(turn, *node, due.subject);
  }
  void operator()(const StartTaskRetryDue& due) const {
    if (Node* node = find(due.subject.node)) start_task_again(turn, *node, due.subject);
  }
  void operator()(const ReplacementDue& due) const {
    if (Node* node = find(due.subject.node)) replace_node(turn, *node, due.subject);
  }

  void operator()(const PlacingDue& due) const {
    if (Pool* pool = find(due.subject)) pool->changed = true;
  }
  void operator()(const ResizeTimeout& due) const {
    if (Pool* pool = find(due.subject)) on_resize_timeout(turn, *pool);
  }
  void operator()(const RefillDue& due) const { turn.effects.unsettled.insert(due.subject); }
  void operator()(const EvictionDue& due) const {
    if (Pool* pool = find(due.subject)) evict_at_random(turn, due.subject, *pool);
  }
  void operator()(const AutoscaleDue& due) const {
    if (Pool* pool = find(due.subject)) run_autoscale(turn, due.subject, *pool);
  }
  void operator()(const TokenExpiryDue& due) const { on_token_expiry(turn, due.subject); }
  void operator()(const RetentionDue&) const { turn.effects.is_retention_due = true; }
  void operator()(const SampleDue&) const { take_samples(turn, at); }

 private:
  Node* find(NodeId id) const {
    const auto found = turn.state.nodes.find(id);
    return found == turn.state.nodes.end() ? nullptr : &found->second;
  }
  Pool* find(const std::string& key) const {
    const auto found = turn.state.pools.find(key);
    return found == turn.state.pools.end() ? nullptr : &found->second;
  }
};

}  // namespace

void on_timer(Turn& turn, const Timer& timer) { std::visit(Due{turn, timer.at}, timer.what); }

}  // namespace slipway::control
