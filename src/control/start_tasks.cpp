// Start tasks: what a node runs once per boot before it takes work. To the agent it is an attempt like any
// other, of job 0, which is nobody's.
#include <fmt/format.h>

#include "control/controller.h"
#include "control/wording.h"

namespace slipway::control {
namespace {

std::string last_line(std::string_view lines) {
  while (!lines.empty() && lines.back() == '\n') lines.remove_suffix(1);
  const std::size_t end = lines.rfind('\n');
  return std::string(end == std::string_view::npos ? lines : lines.substr(end + 1));
}

}  // namespace

bool Controller::is_start_task(const AttemptKey& key) { return key.task.job == JobId{0}; }

AttemptKey Controller::start_key(const Node& node) {
  return {{JobId{0}, static_cast<std::uint32_t>(node.record.id.value()), 0}, node.record.start.attempt};
}

// Whether the node may take work as far as its start task is concerned.
bool Controller::is_prepared(const Node& node) const {
  const StartTask& task = pool_of(node).record.start_task;
  const NodeStart::State state = node.record.start.state;
  return task.empty() || !task.wait_for_success || state == NodeStart::State::none ||
         state == NodeStart::State::succeeded;
}

// Once per boot of the node: called when it says hello, with what it says it has of it.
void Controller::settle_start_task(Node& node, const Hello& hello) {
  const StartTask& task = pool_of(node).record.start_task;
  NodeStart& start = node.record.start;
  const std::string life = hello.boot + "/" + hello.instance;
  const AttemptKey key = start_key(node);
  for (const ProcessEnded& ended : hello.ended)
    if (is_start_task(ended.key)) start_task_ended(node, ended);
  for (const ProcessStarted& running : hello.running)  // of an earlier boot, or no longer wanted
    if (is_start_task(running.key) && (running.key != key || start.state != NodeStart::State::running))
      orders_to(node).stop.push_back({running.key, Duration(0), {}, {}});
  if (start.life != life) {
    start.life = life;
    start.tries = 0;
    start.state = task.empty() ? NodeStart::State::none : NodeStart::State::waiting;
  }
  if (task.empty() || node.record.leaving) return;
  if (start.state == NodeStart::State::waiting) {
    begin_start_task(node);
  } else if (start.state == NodeStart::State::running) {
    send_start_task(node);  // the order may have been lost; one it knows changes nothing
  }
}

void Controller::begin_start_task(Node& node) {
  const Pool& pool = pool_of(node);
  NodeStart& start = node.record.start;
  if (pool.record.start_task.empty()) return;
  ++start.attempt;
  ++start.tries;
  start.state = NodeStart::State::running;
  start.exit_code.reset();
  start.detail.clear();
  start.last_lines.clear();
  start.began_at = now_;
  start.ended_at.reset();
  touch(node);
  event_in(node.record.workspace, "node.starting",
           fmt::format("{} runs its start task{}", node.record.name,
                       start.tries > 1 ? fmt::format(", try {}", start.tries) : ""),
           node.record.name, node.record.pool);
  send_start_task(node);
}

void Controller::send_start_task(Node& node) {
  const Pool& pool = pool_of(node);
  const AttemptKey key = start_key(node);
  timers_.insert({node.record.start.began_at + pool.record.start_task.timeout,
                  TimerKind::start_task_timeout,
                  key,
                  node.record.id,
                  {}});
  if (!node.session) return;
  orders_to(node).start.push_back(
      launch::start_task(pool.record, key, node.record, places_of(pool.record, {}, std::nullopt)));
}

void Controller::start_task_timed_out(Node& node, const AttemptKey& key) {
  NodeStart& start = node.record.start;
  if (start_key(node) != key || start.state != NodeStart::State::running || !start.detail.empty()) return;
  const Duration timeout = pool_of(node).record.start_task.timeout;
  if (start.began_at + timeout > now_) return;
  start.detail = fmt::format("it ran longer than its time-out of {:g} s", seconds(timeout));
  touch(node);
  if (node.session) orders_to(node).stop.push_back({key, Duration(5'000'000), {}, {}});
}

void Controller::start_task_ended(Node& node, const ProcessEnded& ended) {
  NodeStart& start = node.record.start;
  if (node.session) orders_to(node).forget.push_back(ended.key);
  if (ended.key != start_key(node) || start.state != NodeStart::State::running) return;
  const StartTask& task = pool_of(node).record.start_task;
  const bool timed_out = !start.detail.empty();
  start.ended_at = now_;
  start.last_lines = ended.last_lines;
  if (ended.kind == ProcessEndKind::exited) start.exit_code = ended.code;
  if (!timed_out) start.detail = describe_end(ended, {}, node.record.name);
  touch(node);
  if (ended.kind == ProcessEndKind::exited && ended.code == 0 && !timed_out) {
    start.state = NodeStart::State::succeeded;
    event_in(node.record.workspace, "node.started",
             fmt::format("the start task of {} succeeded after {:.1f} s", node.record.name,
                         seconds(now_ - start.began_at)),
             node.record.name, node.record.pool);
    return refresh_node(node, "its start task succeeded");
  }
  start.state = NodeStart::State::failed;
  if (node.record.leaving) return;
  // A keeper that died is not the task's fault, nor is a service that stops.
  if ((ended.kind == ProcessEndKind::lost || stopping_) && !timed_out) --start.tries;
  if (start.tries <= task.retries) {
    start.state = NodeStart::State::waiting;
    Duration wait = settings_.retry_wait_first;
    for (std::uint32_t i = 1; i < start.tries && wait < settings_.retry_wait_max; ++i) wait *= 2;
    timers_.insert({now_ + std::min(wait, settings_.retry_wait_max),
                    TimerKind::start_task_again,
                    start_key(node),
                    node.record.id,
                    {}});
    return refresh_node(node, fmt::format("its start task is tried again: {}", start.detail));
  }
  const std::string line = last_line(start.last_lines);
  const std::string why =
      fmt::format("its start task failed: {}{}", start.detail, line.empty() ? "" : ": " + line);
  event_in(node.record.workspace, "node.start_failed", fmt::format("{}: {}", node.record.name, why),
           node.record.name, node.record.pool);
  refresh_node(node, why);
  Pool& pool = pool_of(node);
  remember(pool, fmt::format("{}: {}", node.record.name, why));
  if (pool.record.autoscale.by != ScaleBy::hand && task.wait_for_success)
    timers_.insert(
        {now_ + settings_.replace_after, TimerKind::replace_node, start_key(node), node.record.id, {}});
}

void Controller::start_task_again(Node& node, const AttemptKey& key) {
  if (start_key(node) != key || node.record.start.state != NodeStart::State::waiting || node.record.leaving ||
      !node.session || stopping_)
    return;  // without a session its next hello begins it
  begin_start_task(node);
  refresh_node(node);
}

// Autoscaling replaces a node whose start task failed: nobody may be there to reset it.
void Controller::replace_node(Node& node, const AttemptKey& key) {
  if (start_key(node) != key || node.record.start.state != NodeStart::State::failed || node.record.leaving)
    return;
  leave_pool(node, Deallocation::requeue, "its start task failed; another takes its place");
}

void Controller::restore_start_task(Node& node) {
  const NodeStart& start = node.record.start;
  const Pool& pool = pool_of(node);
  if (start.state == NodeStart::State::running)
    timers_.insert({start.began_at + pool.record.start_task.timeout,
                    TimerKind::start_task_timeout,
                    start_key(node),
                    node.record.id,
                    {}});
  if (start.state == NodeStart::State::failed && pool.record.autoscale.by != ScaleBy::hand)
    timers_.insert(
        {now_ + settings_.replace_after, TimerKind::replace_node, start_key(node), node.record.id, {}});
}

void Controller::stop_start_task(Node& node) {
  if (node.record.start.state == NodeStart::State::running && node.session)
    orders_to(node).stop.push_back({start_key(node), Duration(0), {}, {}});
}

void Controller::stop_start_tasks() {
  for (auto& [id, node] : nodes_) stop_start_task(node);
}

}  // namespace slipway::control
