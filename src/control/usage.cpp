// Where the time of the nodes of a pool goes, and of each of its jobs.
//
// A node counts while its agent is connected, or something is believed to run there. A part of an attempt
// that has room there counts with its share of the node, as far as others have left of it.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "control/controller.h"
#include "control/wording.h"

namespace slipway::control {

// What the part on that node is doing, or nullopt where it holds no room.
std::optional<Spent> Controller::doing(const Attempt& attempt, std::uint32_t place) const {
  if (attempt.released[place] || !attempt.holds[place]) return std::nullopt;
  const bool has_started = std::none_of(
      attempt.processes.begin(), attempt.processes.end(),
      [&](const Process& process) { return process.node == place && process.state == Process::State::sent; });
  if (!has_started) return Spent::staging;
  return attempt.record.started_at ? Spent::computing : Spent::waiting;
}

// Brings the meters up to what the part is doing now.
void Controller::meter(Attempt& attempt, std::uint32_t place) {
  attempt.metered.resize(attempt.record.nodes.size());
  Attempt::Metered& metered = attempt.metered[place];
  const std::optional<Spent> now = doing(attempt, place);
  if (metered.as == now) return;
  Job& job = jobs_.at(attempt.record.key.task.job);
  Pool& pool = pool_of(job);
  const auto node = nodes_.find(attempt.record.nodes[place]);
  const auto change = [&](Spent kind, std::int64_t share) {
    for (UsageMeter* meter : {&pool.usage, &job.usage, &attempt.usage}) meter->change(kind, share, now_);
  };
  if (metered.as) change(*metered.as, -static_cast<std::int64_t>(metered.share));
  if (!metered.as) {  // its share is settled when it comes, and stays
    SLIPWAY_CHECK(node != nodes_.end());
    const sched::Share share = sched::share_of(attempt.needs[place], node->second.record.total);
    metered.share = std::min(share, sched::whole_node - node->second.metered);
    node->second.metered += metered.share;
  }
  if (now)
    change(*now, static_cast<std::int64_t>(metered.share));
  else if (node != nodes_.end())
    node->second.metered -= metered.share;
  metered.as = now;
  pool.usage_changed = true;
  usage_jobs_.insert(job.record.id);
}

void Controller::meter_all(Attempt& attempt) {
  for (std::uint32_t place = 0; place < attempt.record.nodes.size(); ++place) meter(attempt, place);
}

void Controller::count_node(Node& node) {
  const bool is_there = node.session || !node.attempts.empty();
  if (node.counted == is_there) return;
  node.counted = is_there;
  Pool& pool = pool_of(node);
  pool.usage.change_wall(is_there ? node_whole : -std::int64_t{node_whole}, now_);
  pool.usage_changed = true;
}

// Of an attempt that did not end well, what was computed since the last mark it left was in vain.
void Controller::lose_work(Job& job, const Attempt& attempt) {
  const AttemptRecord& record = attempt.record;
  NodeTime lost = attempt.usage.spent(Spent::computing);
  if (attempt.marked_at && record.started_at && *attempt.marked_at > *record.started_at &&
      *record.ended_at > *record.started_at) {
    const Duration since = std::max(Duration(0), *record.ended_at - *attempt.marked_at);
    lost = lost * since.count() / (*record.ended_at - *record.started_at).count();
  }
  Pool& pool = pool_of(job);
  // After a restart what an attempt has computed is not known to the microsecond.
  lost = std::min({lost, job.usage.spent(Spent::computing), pool.usage.spent(Spent::computing)});
  job.usage.lose(lost);
  pool.usage.lose(lost);
}

void Controller::restore_usage(Attempt& attempt) {
  if (!attempt.record.started_at || *attempt.record.started_at >= now_) return;
  UsageMeter so_far;
  for (std::uint32_t place = 0; place < attempt.record.nodes.size(); ++place)
    so_far.change(Spent::computing, static_cast<std::int64_t>(attempt.metered[place].share),
                  *attempt.record.started_at);
  attempt.usage = so_far;
  attempt.usage.stop_all(now_);
  for (const Attempt::Metered& metered : attempt.metered)
    if (metered.as) attempt.usage.change(*metered.as, static_cast<std::int64_t>(metered.share), now_);
}

void Controller::note_usage() {
  for (auto& [key, pool] : pools_) {
    if (!std::exchange(pool.usage_changed, false)) continue;
    pool.usage.advance(now_);
    changes_.pool_usage.push_back({pool.record.workspace, pool.record.name, pool.usage});
  }
  for (const JobId id : std::exchange(usage_jobs_, {})) {
    UsageMeter& meter = jobs_.at(id).usage;
    meter.advance(now_);
    changes_.job_usage.emplace_back(id, meter);
  }
}

Result<Usage> Controller::pool_usage(const Caller& caller, const std::string& name) const {
  const auto found = pools_.find(caller.workspace + "/" + name);
  if (found == pools_.end()) return fail(no_pool(name));
  UsageMeter meter = found->second.usage;
  meter.advance(now_);
  return usage_of_pool(meter);
}

Result<Usage> Controller::job_usage(const JobRecord& job) {
  if (const auto live = jobs_.find(job.id); live != jobs_.end()) {
    UsageMeter meter = live->second.usage;
    meter.advance(now_);
    return usage_of_job(meter);
  }
  const auto stored = store_.job_usage(job.id);
  if (!stored) return fail(stored.error());
  return usage_of_job(*stored);
}

std::string Controller::broken_usage(const Pool& pool) const {
  std::array<std::uint64_t, spent_kinds> rates{};
  std::uint64_t nodes = 0;
  for (const auto& [id, node] : nodes_) {
    if (node.record.workspace != pool.record.workspace || node.record.pool != pool.record.name) continue;
    nodes += node.counted;
    if (node.metered > (node.counted ? sched::whole_node : 0))
      return fmt::format("node {} is used for more than it is", node.record.name);
  }
  for (const auto& [id, job] : jobs_) {
    if (job.record.workspace != pool.record.workspace || job.record.pool != pool.record.name) continue;
    for (const Group& group : job.groups) {
      if (!group.live) continue;
      for (const auto& [index, task] : *group.live) {
        if (!task.attempt) continue;
        for (std::uint32_t place = 0; place < task.attempt->metered.size(); ++place) {
          const Attempt::Metered& metered = task.attempt->metered[place];
          if (metered.as != doing(*task.attempt, place))
            return fmt::format("{} is not metered as what it does", to_string(task.attempt->record.key));
          if (metered.as) rates[static_cast<std::size_t>(*metered.as)] += metered.share;
        }
      }
    }
  }
  for (std::size_t kind = 0; kind < spent_kinds; ++kind)
    if (rates[kind] != pool.usage.rate(static_cast<Spent>(kind)))
      return fmt::format("pool {}: what goes on does not add up to what is metered", pool.record.name);
  if (pool.usage.wall_rate() != nodes * node_whole)
    return fmt::format("pool {}: {} nodes are there and others are metered", pool.record.name, nodes);
  UsageMeter meter = pool.usage;
  meter.advance(now_);
  if (meter.spent() > meter.wall())
    return fmt::format("pool {}: more was used than was there", pool.record.name);
  return "";
}

}  // namespace slipway::control
