// What waits, in order, and what of the pool's rules holds it back.
#include <map>

#include "control/explain.h"
#include "control/wording.h"

namespace slipway::control {

Result<std::vector<QueueLine>> list_queue(const LiveView& view, const std::string& pool_name,
                                          std::uint32_t limit) {
  if (view.pools.empty() && !pool_name.empty()) return fail(no_pool(pool_name));
  std::vector<QueueLine> lines;
  for (const LivePool& pool : view.pools) {
    std::uint32_t position = 0;
    std::map<sched::Shape, Survey> surveys;  // looking at all nodes once for all that ask for the same
    for (const auto& [shape, key, since, tasks, block] :
         sched::order(pool.queue, pool.scale, pool.sharing, view.now)) {
      if (lines.size() >= limit) break;
      const sched::QueueKey task{shape, key};
      const bool is_its_own = pool.reservation && pool.reservation->key.job == key.job;
      if (!is_its_own && !surveys.contains(shape)) surveys.emplace(shape, survey(view, pool, task));
      lines.push_back(
          {++position, key.job, pool.names.at(key.job), pool.record.name, pool.sharing.name(key.user),
           key.priority, tasks, shape.nodes, shape.per_node, since,
           why_waits(view, pool, task, is_its_own ? survey(view, pool, task) : surveys.at(shape))});
    }
  }
  return lines;
}

}  // namespace slipway::control
