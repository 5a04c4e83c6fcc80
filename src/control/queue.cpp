// What waits, in order, and what of the pool's rules holds it back, from the same state that decides.
#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "control/explain.h"
#include "control/wording.h"

namespace slipway::control {
namespace {

std::string nodes_text(sched::Share share) {
  const double nodes = static_cast<double>(share) / sched::whole_node;
  return fmt::format("{:.3g} node{}", nodes, nodes == 1 ? "" : "s");
}

}  // namespace

std::string describe_block(const Pool& pool, const Job& job, const sched::Shape& shape,
                           const sched::Block& block) {
  const std::string& user = job.record.submitted_by;
  const std::string id = to_string(job.record.id);
  const std::string has = plural(block.held.tasks, "task") + " placed";
  const std::string holds = fmt::format("holds {} and needs {} more", nodes_text(block.held.share),
                                        nodes_text(pool.capacity.share(shape.per_node) * shape.nodes));
  const std::string& name = pool.record.name;
  switch (block.limit) {
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

std::string describe_start(const Turn& turn, const sched::Reservation& reservation) {
  if (!reservation.starts_by) return "when what runs there has ended";
  return fmt::format("within {}, by the limits of what runs there",
                     format_duration(std::max(Duration(0), *reservation.starts_by - turn.now)));
}

std::string describe_turn(const Turn& turn, const Pool& pool, const Job& job,
                          const sched::PriorityKey& first) {
  const Job& other = turn.state.jobs.at(first.job);
  if (first.priority != job.priority_key.priority || first.user == job.priority_key.user)
    return fmt::format("{} (priority {}) comes first", to_string(first.job), first.priority);
  const auto standing = [&](const sched::UserId user) {
    return fmt::format("{} holds {} and has used {} hours of a node lately", pool.sharing.name(user),
                       nodes_text(pool.sharing.held(user).share),
                       fmt::format("{:.2g}", pool.sharing.used(user, turn.now) / 3600));
  };
  return fmt::format("it is the turn of {}, of {}: {}; {}", to_string(first.job), other.record.submitted_by,
                     standing(job.priority_key.user), standing(first.user));
}

Result<std::vector<QueueLine>> list_queue(Turn& turn, const Caller& caller, const std::string& pool_name,
                                          std::uint32_t limit) {
  std::vector<QueueLine> lines;
  bool known = pool_name.empty();
  for (auto& [key, pool] : turn.state.pools) {
    if (pool.record.workspace != caller.workspace || (!pool_name.empty() && pool.record.name != pool_name))
      continue;
    known = true;
    std::uint32_t place = 0;
    std::map<sched::Shape, Survey> surveys;  // looking at all nodes once for all that ask for the same
    for (const auto& [shape, priority_key, since, tasks, block] :
         sched::order(pool.queue, pool.capacity, pool.sharing, turn.now)) {
      if (lines.size() >= limit) break;
      const Job& job = turn.state.jobs.at(priority_key.job);
      const bool is_its_own = pool.reservation && pool.reservation->key.job == job.record.id;
      if (!is_its_own && !surveys.contains(shape)) surveys.emplace(shape, survey(turn, pool, shape, job));
      lines.push_back(
          {++place, job.record.id, job.record.name, pool.record.name, job.record.submitted_by,
           job.record.priority, tasks, shape.nodes, shape.per_node, since,
           is_its_own ? why_waits(turn, job, shape) : why_waits(turn, job, shape, surveys.at(shape))});
    }
  }
  if (!known) return fail(no_pool(pool_name));
  return lines;
}

}  // namespace slipway::control
