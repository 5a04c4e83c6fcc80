// Start tasks: what a node runs once per boot before it takes work.
#include <fmt/format.h>

#include <algorithm>

#include "control/nodes.h"
#include "control/permit.h"
#include "control/placing.h"
#include "control/pools.h"
#include "control/start_tasks.h"
#include "control/wording.h"

namespace slipway::control {
namespace {

std::string last_line(std::string_view lines) {
  while (!lines.empty() && lines.back() == '\n') lines.remove_suffix(1);
  const std::size_t end = lines.rfind('\n');
  return std::string(end == std::string_view::npos ? lines : lines.substr(end + 1));
}

}  // namespace

static void send_start_task(Turn& turn, Node& node);

static StartTaskRun run_of(const Node& node) { return {node.record.id, node.record.start.attempt}; }

bool is_prepared(const State& state, const Node& node) {
  const StartTask& task = state.pool_of(node).record.start_task;
  const NodeStart::State start = node.record.start.state;
  return task.empty() || !task.wait_for_success || start == NodeStart::State::none ||
         start == NodeStart::State::succeeded;
}

void settle_start_task(Turn& turn, Node& node, const Hello& hello) {
  const StartTask& task = turn.state.pool_of(node).record.start_task;
  NodeStart& start = node.record.start;
  const std::string boot_id = hello.boot + "/" + hello.instance;
  const WorkKey key = run_of(node);
  for (const ProcessEnded& ended : hello.ended)
    if (is_start_task(ended.key)) on_start_task_ended(turn, node, ended);
  for (const ProcessStarted& running : hello.running)  // of an earlier boot, or no longer wanted
    if (is_start_task(running.key) && (running.key != key || start.state != NodeStart::State::running))
      orders_to(turn, node).stop.push_back({running.key, Duration(0), {}, {}});
  if (start.boot_id != boot_id) {
    start.boot_id = boot_id;
    start.tries = 0;
    start.state = task.empty() ? NodeStart::State::none : NodeStart::State::waiting;
  }
  if (task.empty() || node.record.leaving) return;
  if (start.state == NodeStart::State::waiting) {
    begin_start_task(turn, node);
  } else if (start.state == NodeStart::State::running) {
    send_start_task(turn, node);  // the order may have been lost; one it knows changes nothing
  }
}

void begin_start_task(Turn& turn, Node& node) {
  const Pool& pool = turn.state.pool_of(node);
  NodeStart& start = node.record.start;
  if (pool.record.start_task.empty()) return;
  ++start.attempt;
  ++start.tries;
  start.state = NodeStart::State::running;
  start.exit_code.reset();
  start.detail.clear();
  start.last_lines.clear();
  start.began_at = turn.now;
  start.ended_at.reset();
  turn.effects.touch(node);
  record_event_in(turn, node.record.workspace, "node.starting",
                  fmt::format("{} runs its start task{}", node.record.name,
                              start.tries > 1 ? fmt::format(", try {}", start.tries) : ""),
                  node.record.name, node.record.pool);
  send_start_task(turn, node);
}

static void send_start_task(Turn& turn, Node& node) {
  const Pool& pool = turn.state.pool_of(node);
  turn.effects.timers.push_back(
      {node.record.start.began_at + pool.record.start_task.timeout, StartTaskTimeout{run_of(node)}});
  if (!node.session) return;
  StartOrder order = launch::start_task(pool.record, run_of(node), node.record,
                                        mounts_of(turn.state, pool.record, {}, std::nullopt));
  if (!pool.record.owner.empty())
    order.run_as = run_as_of(turn.settings, pool.record.workspace, pool.record.owner);
  orders_to(turn, node).start.push_back(std::move(order));
}

void on_start_task_timeout(Turn& turn, Node& node, const StartTaskRun& run) {
  NodeStart& start = node.record.start;
  if (run_of(node) != run || start.state != NodeStart::State::running || !start.detail.empty()) return;
  const Duration timeout = turn.state.pool_of(node).record.start_task.timeout;
  if (start.began_at + timeout > turn.now) return;
  start.detail = fmt::format("it ran longer than its time-out of {:g} s", seconds(timeout));
  turn.effects.touch(node);
  if (node.session) orders_to(turn, node).stop.push_back({run, Duration(5s), {}, {}});
}

// Something that makes every start task fail would bring up and take down nodes for ever: the pause grows
// with each failure in a row.
static Duration replacement_pause(const Turn& turn, const Pool& pool) {
  Duration pause = turn.settings.replace_after;
  for (std::uint32_t i = 1; i < pool.start_failures && pause < turn.settings.replace_after_max; ++i)
    pause *= 2;
  return std::min(pause, turn.settings.replace_after_max);
}

static bool replaces_nodes(const Pool& pool) {
  return pool.record.autoscale.by != ScaleBy::hand && pool.record.start_task.wait_for_success;
}

void on_start_task_ended(Turn& turn, Node& node, const ProcessEnded& ended) {
  NodeStart& start = node.record.start;
  if (node.session) orders_to(turn, node).forget.push_back(ended.key);
  if (ended.key != WorkKey(run_of(node)) || start.state != NodeStart::State::running) return;
  const StartTask& task = turn.state.pool_of(node).record.start_task;
  const bool timed_out = !start.detail.empty();
  start.ended_at = turn.now;
  start.last_lines = ended.last_lines;
  if (ended.kind == ProcessEndKind::exited) start.exit_code = ended.code;
  if (!timed_out) start.detail = describe_end(ended, {}, node.record.name);
  turn.effects.touch(node);
  if (ended.kind == ProcessEndKind::exited && ended.code == 0 && !timed_out) {
    start.state = NodeStart::State::succeeded;
    turn.state.pool_of(node).start_failures = 0;
    record_event_in(turn, node.record.workspace, "node.started",
                    fmt::format("the start task of {} succeeded after {:.1f} s", node.record.name,
                                seconds(turn.now - start.began_at)),
                    node.record.name, node.record.pool);
    return refresh_node(turn, node, "its start task succeeded");
  }
  start.state = NodeStart::State::failed;
  if (node.record.leaving) return;
  // A keeper that died and a service that stops are interruptions.
  if ((ended.kind == ProcessEndKind::lost || turn.state.stopping) && !timed_out) --start.tries;
  if (start.tries <= task.retries) {
    start.state = NodeStart::State::waiting;
    Duration wait = turn.settings.retry_wait_first;
    for (std::uint32_t i = 1; i < start.tries && wait < turn.settings.retry_wait_max; ++i) wait *= 2;
    turn.effects.timers.push_back(
        {turn.now + std::min(wait, turn.settings.retry_wait_max), StartTaskRetryDue{run_of(node)}});
    return refresh_node(turn, node, fmt::format("its start task is tried again: {}", start.detail));
  }
  Pool& pool = turn.state.pool_of(node);
  ++pool.start_failures;
  const Duration pause = replacement_pause(turn, pool);
  const std::string line = last_line(start.last_lines);
  const std::string why =
      fmt::format("its start task failed: {}{}{}", start.detail, line.empty() ? "" : ": " + line,
                  replaces_nodes(pool) ? fmt::format("; it is replaced in {:g} s", seconds(pause)) : "");
  record_event_in(turn, node.record.workspace, "node.start_failed",
                  fmt::format("{}: {}", node.record.name, why), node.record.name, node.record.pool);
  refresh_node(turn, node, why);
  remember(pool, fmt::format("{}: {}", node.record.name, why));
  if (replaces_nodes(pool)) turn.effects.timers.push_back({turn.now + pause, ReplacementDue{run_of(node)}});
}

void start_task_again(Turn& turn, Node& node, const StartTaskRun& run) {
  if (run_of(node) != run || node.record.start.state != NodeStart::State::waiting || node.record.leaving ||
      !node.session || turn.state.stopping)
    return;  // without a session its next hello begins it
  begin_start_task(turn, node);
  refresh_node(turn, node);
}

void replace_node(Turn& turn, Node& node, const StartTaskRun& run) {
  if (run_of(node) != run || node.record.start.state != NodeStart::State::failed || node.record.leaving)
    return;
  leave_pool(turn, node, Deallocation::requeue, "its start task failed; another takes its place");
}

void restore_start_task(Turn& turn, Node& node) {
  const NodeStart& start = node.record.start;
  Pool& pool = turn.state.pool_of(node);
  if (start.state == NodeStart::State::running)
    turn.effects.timers.push_back(
        {start.began_at + pool.record.start_task.timeout, StartTaskTimeout{run_of(node)}});
  if (start.state != NodeStart::State::failed) return;
  ++pool.start_failures;
  if (replaces_nodes(pool))
    turn.effects.timers.push_back({turn.now + replacement_pause(turn, pool), ReplacementDue{run_of(node)}});
}

void stop_start_task(Turn& turn, Node& node) {
  if (node.record.start.state == NodeStart::State::running && node.session)
    orders_to(turn, node).stop.push_back({run_of(node), Duration(0), {}, {}});
}

void stop_start_tasks(Turn& turn) {
  for (auto& [id, node] : turn.state.nodes) stop_start_task(turn, node);
}

}  // namespace slipway::control
