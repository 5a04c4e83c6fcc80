// What waits, in order, and what of the pool's rules holds it back, from the same state that decides.
#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "control/controller.h"
#include "control/wording.h"

namespace slipway::control {
namespace {

std::string nodes_text(sched::Share share) {
  const double nodes = static_cast<double>(share) / sched::whole_node;
  return fmt::format("{:.3g} node{}", nodes, nodes == 1 ? "" : "s");
}

}  // namespace

std::string Controller::describe_block(const Pool& pool, const Job& job, const sched::Shape& shape,
                                       const sched::Block& block) const {
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

// " by 10:02:31 at the latest", where that can be known.
std::string Controller::describe_start(const sched::Reservation& reservation) const {
  if (!reservation.starts_by) return "when what runs there has ended";
  return fmt::format("within {}, by the limits of what runs there",
                     format_duration(std::max(Duration(0), *reservation.starts_by - now_)));
}

std::string Controller::describe_turn(const Pool& pool, const Job& job, const sched::Turn& first) const {
  const Job& other = jobs_.at(first.job);
  if (first.priority != job.turn.priority || first.user == job.turn.user)
    return fmt::format("{} (priority {}) comes first", to_string(first.job), first.priority);
  const auto standing = [&](const sched::UserId user) {
    return fmt::format("{} holds {} and has used {} hours of a node lately", pool.sharing.name(user),
                       nodes_text(pool.sharing.held(user).share),
                       fmt::format("{:.2g}", pool.sharing.used(user, now_) / 3600));
  };
  return fmt::format("it is the turn of {}, of {}: {}; {}", to_string(first.job), other.record.submitted_by,
                     standing(job.turn.user), standing(first.user));
}

Result<std::vector<QueueLine>> Controller::queue(const Caller& caller, const std::string& pool_name,
                                                 std::uint32_t limit) {
  std::vector<QueueLine> lines;
  bool known = pool_name.empty();
  for (auto& [key, pool] : pools_) {
    if (pool.record.workspace != caller.workspace || (!pool_name.empty() && pool.record.name != pool_name))
      continue;
    known = true;
    std::uint32_t place = 0;
    std::map<sched::Shape, Survey> surveys;  // looking at all nodes once for all that ask for the same
    for (const sched::Line& line : sched::order(pool, now_)) {
      if (lines.size() >= limit) break;
      const Job& job = jobs_.at(line.turn.job);
      const auto shape = std::find_if(job.shapes.begin(), job.shapes.end(),
                                      [&](const Shape& one) { return one.need == line.shape; });
      const bool is_its_own = pool.reservation && pool.reservation->turn.job == job.record.id;
      if (!is_its_own && !surveys.contains(line.shape))
        surveys.emplace(line.shape, survey(pool, line.shape, job));
      lines.push_back(
          {++place, job.record.id, job.record.name, pool.record.name, job.record.submitted_by,
           job.record.priority, tasks_ready(job, *shape), line.shape.nodes, line.shape.per_node, line.since,
           is_its_own ? why_waits(job, line.shape) : why_waits(job, line.shape, surveys.at(line.shape))});
    }
  }
  if (!known) return fail(no_pool(pool_name));
  return lines;
}

}  // namespace slipway::control
