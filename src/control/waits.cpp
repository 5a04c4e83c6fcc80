// What a queued task waits for: limits of users and jobs, nodes, and tasks that go first.
#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "control/explain.h"
#include "control/quotas.h"
#include "control/wording.h"

namespace slipway::control {

std::string describe_need(const sched::Shape& shape) {
  if (shape.nodes == 1) return fmt::format("one node with {} free", describe(shape.per_node));
  return fmt::format("{} nodes with {} free each", shape.nodes, describe(shape.per_node));
}

namespace {

std::string nodes_text(sched::Share share) {
  const double nodes = static_cast<double>(share) / sched::whole_node;
  return fmt::format("{:.3g} node{}", nodes, nodes == 1 ? "" : "s");
}

std::string describe_block(const LivePool& pool, const sched::QueueKey& task, const sched::Block& block) {
  const auto& [shape, key] = task;
  const std::string& user = pool.sharing.name(key.user);
  const std::string id = to_string(key.job);
  const std::string has = plural(block.held.tasks, "task") + " placed";
  const std::string holds = fmt::format("holds {} and needs {} more", nodes_text(block.held.share),
                                        nodes_text(pool.scale.share(shape.per_node) * shape.nodes));
  const std::string& name = pool.record.name;
  const auto quota = [&](const QuotaKey& whose) {
    const sched::QuotaRoom& room = *block.room;
    const QuotaAmounts more =
        sched::held_amounts(pool.scale.share(shape.per_node) * shape.nodes, shape.per_node, shape.nodes);
    return describe_quota(whose, room.kind, room.max, room.used, more[room.kind]).what;
  };
  switch (block.limit) {
    case sched::Limit::user_quota: return quota({pool.record.workspace, user});
    case sched::Limit::workspace_quota: return quota({pool.record.workspace, {}});
    case sched::Limit::user_tasks:
      return fmt::format("{} has {}, and pool {} allows each user {}", user, has, name, block.max);
    case sched::Limit::user_nodes:
      return fmt::format("{} {}, and pool {} allows each user {}", user, holds, name,
                         plural(block.max, "node"));
    case sched::Limit::job_tasks:
      return fmt::format("{} has {}, and pool {} allows each job {}", id, has, name, block.max);
    case sched::Limit::job_nodes:
      return fmt::format("{} {}, and pool {} allows each job {}", id, holds, name, plural(block.max, "node"));
    case sched::Limit::job_own_tasks:
      return fmt::format("{} has {}, and its max_parallel_tasks is {}", id, has, block.max);
    case sched::Limit::job_own_nodes:
      return fmt::format("{} {}, and its max_nodes is {}", id, holds, block.max);
  }
  return {};
}

// " by 10:02:31 at the latest", where that can be known.
std::string describe_start(const LiveView& view, const sched::Reservation& reservation) {
  if (!reservation.starts_by) return "when what runs there has ended";
  return fmt::format("within {}, by the limits of what runs there",
                     format_duration(std::max(Duration(0), *reservation.starts_by - view.now)));
}

// Why another task goes first.
std::string describe_order(const LiveView& view, const LivePool& pool, const sched::PriorityKey& key,
                           const sched::PriorityKey& first) {
  if (first.priority != key.priority || first.user == key.user)
    return fmt::format("{} (priority {}) comes first", to_string(first.job), first.priority);
  const auto standing = [&](const sched::UserId user) {
    return fmt::format("{} holds {} and has used {} hours of a node lately", pool.sharing.name(user),
                       nodes_text(pool.sharing.held(user).share),
                       fmt::format("{:.2g}", pool.sharing.used(user, view.now) / 3600));
  };
  return fmt::format("{}, of {}, goes first: {}; {}", to_string(first.job), pool.sharing.name(first.user),
                     standing(key.user), standing(first.user));
}

// Where a pool sizes itself, or is being sized: why it does not have more.
std::string why_no_more_nodes(const LivePool& pool) {
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

}  // namespace

Survey survey(const LiveView& view, const LivePool& pool, const sched::QueueKey& task) {
  using enum LiveNode::Work;
  const sched::Shape& shape = task.shape;
  const bool is_its_own = pool.reservation && pool.reservation->key.job == task.key.job;
  const std::uint32_t slots = pool.record.slots_per_node;
  std::uint32_t able = 0, in_use = 0, free = 0, reserved = 0;
  std::map<LiveNode::Work, std::uint32_t> closed;
  std::vector<std::string> busy;
  for (const LiveNode& node : pool.nodes) {
    if (!fits(shape.per_node, node.total)) continue;
    ++able;
    if (node.work != open) {
      ++closed[node.work];
    } else if (const Resources used = node.used + shape.per_node;
               fits(used, node.total) && (slots == 0 || node.attempts < slots)) {
      const bool is_reserved =
          !is_its_own && node.reserved && !fits(used + pool.reservation->shape.per_node, node.total);
      ++(is_reserved ? reserved : free);
    } else {
      ++in_use;
      for (const LiveNode::Attempt& attempt : node.first_attempts)
        if (busy.size() < LiveNode::attempts_shown_max)
          busy.push_back(
              fmt::format("{}/{} on {} ({})", to_string(attempt.job), attempt.task, node.name,
                          attempt.started_at
                              ? fmt::format("started {} ago", format_duration(view.now - *attempt.started_at))
                              : "starting"));
    }
  }
  const auto total = static_cast<std::uint32_t>(pool.nodes.size());
  std::string text = fmt::format("pool {} has {} node{}", pool.record.name, total, total == 1 ? "" : "s");
  if (able < total) text += fmt::format(", {} of them large enough", able);
  if (in_use > 0)
    text += fmt::format(", {} {} busy{}{}", in_use, in_use == 1 ? "is" : "are", busy.empty() ? "" : " with ",
                        fmt::join(busy, ", "));
  const auto count = [&](LiveNode::Work work, const char* one, const char* many) {
    if (const std::uint32_t nodes = closed[work]; nodes > 0)
      text += fmt::format(", {} {}", nodes, nodes == 1 ? one : many);
  };
  count(away, "is not connected", "are not connected");
  count(draining, "is draining", "are draining");
  count(starting, "runs its start task", "run its start task");
  count(start_failed, "cannot take work as the start task failed (slipway node list)",
        "cannot take work as the start task failed (slipway node list)");
  if (const std::string scale = why_no_more_nodes(pool); !scale.empty() && free < shape.nodes)
    text += "; " + scale;
  if (reserved > 0)
    text += fmt::format(", {} {} reserved for {}, which has waited long: it needs {} and starts {}", reserved,
                        reserved == 1 ? "is" : "are", to_string(pool.reservation->key.job),
                        describe_need(pool.reservation->shape), describe_start(view, *pool.reservation));
  return {text, able, free};
}

std::string why_waits(const LiveView& view, const LivePool& pool, const sched::QueueKey& task,
                      const Survey& survey) {
  const auto& [shape, key] = task;
  if (view.stopping) return "the service is stopping and starts nothing";
  const sched::Share share = pool.scale.share(shape.per_node) * shape.nodes;
  auto block = pool.sharing.block_of_user(key.user, share);
  if (!block)
    block = pool.sharing.block_of_quota(key.user, sched::held_amounts(share, shape.per_node, shape.nodes), {},
                                        {});
  if (!block) block = pool.sharing.block_of_job(key.job, share);
  if (block) return describe_block(pool, task, *block);
  std::string text = survey.text;
  if (survey.able < shape.nodes) text += "; it can start only when the pool has grown";
  if (pool.reservation && pool.reservation->key == key && pool.reservation->shape == shape)
    text += fmt::format("; capacity is reserved for it, and it starts {}",
                        describe_start(view, *pool.reservation));
  if (survey.free >= shape.nodes) {
    // There is capacity, so something else goes first.
    const auto head = sched::first(pool.queue, pool.scale, pool.sharing, view.now);
    if (head && head->key.job != key.job)
      text += "; " + describe_order(view, pool, key, head->key);
    else
      text += "; it starts as soon as the capacity is confirmed";
  }
  return text;
}

}  // namespace slipway::control
