// Why something waits, in plain words, from the same state that decided it.
#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "control/explain.h"
#include "control/start_tasks.h"

namespace slipway::control {
namespace {

constexpr std::size_t groups_shown_max = 100;

std::string needs(const sched::Shape& shape) {
  if (shape.nodes == 1) return fmt::format("one node with {} free", describe(shape.per_node));
  return fmt::format("{} nodes with {} free each", shape.nodes, describe(shape.per_node));
}

}  // namespace

static std::string why_no_more_nodes(const Pool& pool);

static std::string why_waiting(const Job& job, std::uint32_t g) {
  std::vector<std::string> open;
  for (const auto& [from, to] : job.edges) {
    if (to != g || job.groups[from].counts.succeeded == job.groups[from].tasks) continue;
    const Group& group = job.groups[from];
    open.push_back(group.is_array
                       ? fmt::format("{} ({} of {} done)", group.name, group.counts.succeeded, group.tasks)
                       : fmt::format("{} ({})", group.name,
                                     group.counts.active   ? "active"
                                     : group.counts.queued ? "queued"
                                                           : "waiting"));
  }
  return fmt::format("task {} waits for {}", job.groups[g].name, fmt::join(open, ", "));
}

static std::string why_queued(const Turn& turn, const Job& job, const Group& group,
                              const std::string& task_name) {
  const sched::Shape& shape = job.shapes[group.shape].need;
  return fmt::format("task {} needs {}; {}", task_name, needs(shape), why_waits(turn, job, shape));
}

Survey survey(const Turn& turn, const Pool& pool, const sched::Shape& shape, const Job& job) {
  const bool is_its_own = pool.reservation && pool.reservation->key.job == job.record.id;
  const std::uint32_t slots = pool.record.slots_per_node;
  std::string text;
  std::uint32_t total = 0, able = 0, free = 0, away = 0, drained = 0, kept = 0, starting = 0, failed = 0;
  std::vector<std::string> busy;
  for (const auto& [id, node] : turn.state.nodes) {
    if (node.record.pool != pool.record.name || node.record.workspace != pool.record.workspace) continue;
    ++total;
    if (!fits(shape.per_node, node.record.total)) continue;
    ++able;
    if (node.record.drained || node.record.leaving)
      ++drained;
    else if (!node.session || !node.cleaning.empty())
      ++away;
    else if (!is_prepared(turn.state, node))
      ++(node.record.start.state == NodeStart::State::failed ? failed : starting);
    else if (const Resources used = node.used + shape.per_node;
             fits(used, node.record.total) && (slots == 0 || node.attempts.size() < slots)) {
      const bool reserved = !is_its_own && pool.capacity.is_reserved(id);
      ++(reserved && !fits(used + pool.reservation->shape.per_node, node.record.total) ? kept : free);
    } else
      for (const AttemptKey& key : node.attempts) {
        const Attempt* attempt = turn.state.find_attempt(key);
        if (!attempt || busy.size() >= 4) continue;
        const auto other = turn.state.jobs.find(key.task.job);
        busy.push_back(fmt::format(
            "{}/{} on {} ({})", to_string(key.task.job), name_of(other->second, key.task), node.record.name,
            attempt->record.started_at
                ? fmt::format("started {} ago", format_duration(turn.now - *attempt->record.started_at))
                : "starting"));
      }
  }
  text += fmt::format("pool {} has {} node{}", pool.record.name, total, total == 1 ? "" : "s");
  if (able < total) text += fmt::format(", {} of them large enough", able);
  const std::uint32_t in_use = able - free - away - drained - kept - starting - failed;
  if (in_use > 0)
    text += fmt::format(", {} {} busy{}{}", in_use, in_use == 1 ? "is" : "are", busy.empty() ? "" : " with ",
                        fmt::join(busy, ", "));
  if (away > 0) text += fmt::format(", {} {} not connected", away, away == 1 ? "is" : "are");
  if (drained > 0) text += fmt::format(", {} {} draining", drained, drained == 1 ? "is" : "are");
  if (starting > 0) text += fmt::format(", {} {} its start task", starting, starting == 1 ? "runs" : "run");
  if (failed > 0)
    text += fmt::format(", {} cannot take work as the start task failed (slipway node list)", failed);
  if (const std::string scale = why_no_more_nodes(pool); !scale.empty() && free < shape.nodes)
    text += "; " + scale;
  if (kept > 0)
    text += fmt::format(", {} {} kept for {}, which has waited long: it needs {} and starts {}", kept,
                        kept == 1 ? "is" : "are", to_string(pool.reservation->key.job),
                        needs(pool.reservation->shape), describe_start(turn, *pool.reservation));
  return {text, able, free};
}

std::string why_waits(const Turn& turn, const Job& job, const sched::Shape& shape) {
  return why_waits(turn, job, shape, survey(turn, turn.state.pool_of(job), shape, job));
}

std::string why_waits(const Turn& turn, const Job& job, const sched::Shape& shape, const Survey& room) {
  Pool& pool = turn.state.pool_of(job);
  if (turn.state.stopping) return "the service is stopping and starts nothing";
  const sched::Share share = pool.capacity.share(shape.per_node) * shape.nodes;
  auto block = pool.sharing.block_of_user(job.priority_key.user, share);
  if (!block) block = pool.sharing.block_of_job(job.record.id, share);
  if (block) return describe_block(pool, job, shape, *block);
  std::string text = room.text;
  if (room.able < shape.nodes) text += "; it can start only when the pool has grown";
  if (pool.reservation && pool.reservation->key == job.priority_key && pool.reservation->shape == shape)
    text += fmt::format("; room is kept for it, and it starts {}", describe_start(turn, *pool.reservation));
  if (room.free >= shape.nodes) {
    // There is room, so something else goes first.
    const auto head = sched::first(pool.queue, pool.capacity, pool.sharing, turn.now);
    if (head && head->key.job != job.record.id)
      text += "; " + describe_turn(turn, pool, job, head->key);
    else
      text += "; it starts as soon as the room is confirmed";
  }
  return text;
}

// Where a pool sizes itself, or is being sized: why it does not have more.
static std::string why_no_more_nodes(const Pool& pool) {
  const PoolRecord& record = pool.record;
  const std::uint32_t target = record.target.total();
  if (pool.present.total() < target || pool.coming > 0)
    return fmt::format("{} of {} nodes are still to come{}{}",
                       target - std::min(target, pool.present.total()) + pool.coming, target,
                       record.resize.errors.empty() ? "" : ": ",
                       record.resize.errors.empty() ? "" : record.resize.errors.back().text);
  if (record.autoscale.by == ScaleBy::demand && target >= record.autoscale.max)
    return fmt::format("the pool has its {} nodes and may not grow further", record.autoscale.max);
  if (record.autoscale.by == ScaleBy::formula || record.autoscale.by == ScaleBy::scenario)
    return record.last_run.error.empty()
               ? fmt::format("the pool's {} asks for {} nodes", to_string(record.autoscale.by), target)
               : fmt::format("the pool's {} fails: {}", to_string(record.autoscale.by),
                             record.last_run.error);
  return {};
}

Why explain(const Turn& turn, const Job& job) {
  Why why;
  for (std::uint32_t g = 0; g < job.groups.size() && why.tasks.size() < groups_shown_max; ++g) {
    const Group& group = job.groups[g];
    if (group.live)
      for (const auto& [index, task] : *group.live) {
        if (why.tasks.size() >= groups_shown_max) break;
        if (task.record.state == TaskState::running) {
          why.tasks.emplace_back(task.record.name, task.record.state,
                                 fmt::format("runs on {}", fmt::join(task.attempt->record.node_names, ", ")));
        } else if (task.attempt && task.attempt->is_stopping()) {
          why.tasks.emplace_back(task.record.name, task.record.state,
                                 fmt::format("is being stopped: {}", task.attempt->record.detail));
        } else if (task.attempt) {
          why.tasks.emplace_back(
              task.record.name, task.record.state,
              fmt::format("is being started on {}", fmt::join(task.attempt->record.node_names, ", ")));
        } else if (task.record.not_before) {
          why.tasks.emplace_back(task.record.name, task.record.state,
                                 fmt::format("waits {} before attempt {}: {}",
                                             format_duration(*task.record.not_before - turn.now),
                                             task.record.attempts + 1, task.record.reason));
        } else {
          why.tasks.emplace_back(task.record.name, task.record.state,
                                 why_queued(turn, job, group, task.record.name) + "; " + task.record.reason);
        }
      }
    if (group.next >= group.tasks || is_terminal(group.rest)) continue;
    const std::string name =
        group.is_array
            ? fmt::format("{}[{}]", group.name,
                          group.tasks - group.next == 1 ? fmt::format("{}", group.next)
                                                        : fmt::format("{}-{}", group.next, group.tasks - 1))
            : group.name;
    why.tasks.emplace_back(
        name, group.rest,
        group.rest == TaskState::waiting ? why_waiting(job, g) : why_queued(turn, job, group, name));
  }
  // The first thing that waits is the answer; a job in which nothing waits simply runs.
  const auto waiting = std::find_if(why.tasks.begin(), why.tasks.end(), [](const Why::Task& task) {
    return task.reason.starts_with("task ") || task.reason.starts_with("waits ");
  });
  if (waiting != why.tasks.end())
    why.answer = waiting->reason.starts_with("task ")
                     ? waiting->reason
                     : fmt::format("task {} {}", waiting->name, waiting->reason);
  else if (!why.tasks.empty())
    why.answer = fmt::format("task {} {}", why.tasks.front().name, why.tasks.front().reason);
  else
    why.answer = fmt::format("{} is {}", to_string(job.record.id), to_string(job.record.state));
  return why;
}

}  // namespace slipway::control
