// Where the time of the nodes of a pool goes, and of each of its jobs.
//
// A node counts while its agent is connected, or something is believed to run there. A part of an attempt
// that has capacity there counts with its share of the node, as far as others have left of it.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "control/accounting.h"
#include "control/wording.h"

namespace slipway::control {

std::optional<Spent> doing(const Attempt& attempt, std::uint32_t node_index) {
  if (!attempt.members[node_index].holds_capacity()) return std::nullopt;
  const bool has_started =
      std::none_of(attempt.processes.begin(), attempt.processes.end(), [&](const Process& process) {
        return process.node == node_index && process.state == Process::State::sent;
      });
  if (!has_started) return Spent::staging;
  return attempt.record.started_at ? Spent::computing : Spent::waiting;
}

void meter(Turn& turn, Attempt& attempt, std::uint32_t node_index) {
  auto& metered = attempt.members[node_index].metered;
  const std::optional<Spent> now = doing(attempt, node_index);
  if (metered.as == now) return;
  Job& job = turn.state.jobs.at(attempt.record.key.task.job);
  Pool& pool = turn.state.pool_of(job);
  const auto node = turn.state.nodes.find(attempt.record.nodes[node_index].id);
  const auto change = [&](Spent kind, std::int64_t share) {
    for (UsageMeter* meter : {&pool.usage, &job.usage, &attempt.usage}) meter->change(kind, share, turn.now);
  };
  if (metered.as) change(*metered.as, -static_cast<std::int64_t>(metered.share));
  if (!metered.as) {  // its share is settled when it comes, and stays
    SLIPWAY_CHECK(node != turn.state.nodes.end());
    const sched::Share share =
        sched::share_of(attempt.members[node_index].granted, node->second.record.total);
    metered.share = std::min(share, sched::whole_node - node->second.metered);
    node->second.metered += metered.share;
  }
  if (now)
    change(*now, static_cast<std::int64_t>(metered.share));
  else if (node != turn.state.nodes.end())
    node->second.metered -= metered.share;
  metered.as = now;
  pool.usage_changed = true;
  turn.effects.usage_jobs.insert(job.record.id);
}

void meter_all(Turn& turn, Attempt& attempt) {
  for (std::uint32_t node_index = 0; node_index < attempt.record.nodes.size(); ++node_index)
    meter(turn, attempt, node_index);
}

void count_node(Turn& turn, Node& node) {
  const bool is_there = node.session || !node.attempts.empty();
  if (node.counted == is_there) return;
  node.counted = is_there;
  Pool& pool = turn.state.pool_of(node);
  pool.usage.change_wall(is_there ? node_whole : -std::int64_t{node_whole}, turn.now);
  pool.usage_changed = true;
}

void lose_work(Turn& turn, Job& job, const Attempt& attempt) {
  const AttemptRecord& record = attempt.record;
  NodeTime lost = attempt.usage.spent(Spent::computing);
  if (attempt.marked_at && record.started_at && *attempt.marked_at > *record.started_at &&
      *record.ended_at > *record.started_at) {
    const Duration since = std::max(Duration(0), *record.ended_at - *attempt.marked_at);
    lost = lost * since.count() / (*record.ended_at - *record.started_at).count();
  }
  Pool& pool = turn.state.pool_of(job);
  // After a restart what an attempt has computed is not known to the microsecond.
  lost = std::min({lost, job.usage.spent(Spent::computing), pool.usage.spent(Spent::computing)});
  job.usage.lose(lost);
  pool.usage.lose(lost);
}

void restore_usage(Turn& turn, Attempt& attempt) {
  if (!attempt.record.started_at || *attempt.record.started_at >= turn.now) return;
  UsageMeter so_far;
  for (std::uint32_t node_index = 0; node_index < attempt.record.nodes.size(); ++node_index)
    so_far.change(Spent::computing, static_cast<std::int64_t>(attempt.members[node_index].metered.share),
                  *attempt.record.started_at);
  attempt.usage = so_far;
  attempt.usage.stop_all(turn.now);
  for (const Member& member : attempt.members)
    if (member.metered.as)
      attempt.usage.change(*member.metered.as, static_cast<std::int64_t>(member.metered.share), turn.now);
}

void note_usage(Turn& turn) {
  for (auto& [key, pool] : turn.state.pools) {
    if (!std::exchange(pool.usage_changed, false)) continue;
    pool.usage.advance(turn.now);
    turn.effects.changes.pool_usage.push_back({pool.record.workspace, pool.record.name, pool.usage});
  }
  for (const JobId id : std::exchange(turn.effects.usage_jobs, {})) {
    UsageMeter& meter = turn.state.jobs.at(id).usage;
    meter.advance(turn.now);
    turn.effects.changes.job_usage.emplace_back(id, meter);
  }
}

}  // namespace slipway::control
