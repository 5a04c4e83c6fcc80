// How pools are shown: their state, notes on it, and the lines of their history.
#include <fmt/format.h>

#include <algorithm>

#include "control/pools.h"
#include "control/wording.h"

namespace slipway::control {

Result<PoolView> show_pool(const Turn& turn, const Caller& caller, const std::string& name) {
  const auto found = turn.state.pools.find(caller.workspace + "/" + name);
  if (found == turn.state.pools.end()) return fail(no_pool(name));
  return pool_view(turn, found->second);
}

std::vector<PoolView> list_pools(const Turn& turn, const Caller& caller) {
  std::vector<PoolView> views;
  for (const auto& [key, pool] : turn.state.pools)
    if (pool.record.workspace == caller.workspace) views.push_back(pool_view(turn, pool));
  return views;
}

std::map<NodeState, std::uint32_t> states_of(const Pool& pool) {
  std::map<NodeState, std::uint32_t> states = pool.states;
  std::erase_if(states, [](const auto& entry) { return entry.second == 0; });
  return states;
}

PoolView pool_view(const Turn& turn, const Pool& pool) {
  PoolView view{pool.record, states_of(pool), {}, pool.present};
  view.is_default = default_pool(turn.state, pool.record.workspace) == &pool;
  const std::uint64_t cores = std::uint64_t{pool.record.per_node.cores} * pool.record.target.total();
  if (pool.record.provisioner == "local" && pool.record.overcommit &&
      cores > turn.settings.machine.total.cores)
    view.notes.push_back(fmt::format("overcommitted: its nodes promise {:g} cores, the machine has {:g}",
                                     static_cast<double>(cores) / 1000,
                                     turn.settings.machine.total.cores / 1000.0));
  std::uint64_t all = 0;
  for (const auto& [key, other] : turn.state.pools)
    if (other.record.provisioner == "local")
      all += std::uint64_t{other.record.per_node.cores} * other.record.target.total();
  if (pool.record.provisioner == "local" && all > cores && all > turn.settings.machine.total.cores)
    view.notes.push_back(fmt::format(
        "shares this machine with other pools: together they promise {:g} cores, the machine has {:g}",
        static_cast<double>(all) / 1000, turn.settings.machine.total.cores / 1000.0));
  const auto lacking = std::count_if(pool.members.begin(), pool.members.end(), [&](NodeId id) {
    const NodeRecord& node = turn.state.nodes.at(id).record;
    return node.local && node.total.gpus < pool.record.per_node.gpus;
  });
  if (lacking > 0)
    view.notes.push_back(
        fmt::format("{} of its nodes have fewer than {} GPUs: this machine has {} for all pools", lacking,
                    pool.record.per_node.gpus, turn.settings.machine.total.gpus));
  if (pool.reservation)
    view.notes.push_back(fmt::format("{} nodes are reserved for {}, which has waited long",
                                     pool.reservation->nodes.size(), to_string(pool.reservation->key.job)));
  if (pool.record.deleting) view.notes.emplace_back("it is being deleted");
  return view;
}

void remember(Pool& pool, std::string reason) { pool.reasons.push_back(std::move(reason)); }

// One line a turn: what happens at once is one thing.
static void write_line(Turn& turn, Pool& pool) {
  constexpr std::size_t said_max = 4;
  PoolHistoryEntry entry;
  entry.time = recording_time(turn);
  entry.workspace = pool.record.workspace;
  entry.pool = pool.record.name;
  entry.target = pool.record.target;
  entry.present = pool.present;
  entry.nodes = states_of(pool);
  for (std::size_t i = 0; i < std::min(pool.reasons.size(), said_max); ++i)
    entry.reason += (i == 0 ? "" : "; ") + pool.reasons[i];
  if (pool.reasons.size() > said_max)
    entry.reason += fmt::format("; and {} more", pool.reasons.size() - said_max);
  pool.reasons.clear();
  turn.effects.changes.pool_history.push_back(std::move(entry));
}

void write_history(Turn& turn) {
  for (auto& [key, pool] : turn.state.pools)
    if (!pool.reasons.empty()) write_line(turn, pool);
}

std::vector<NodeRecord> local_nodes(const State& state) {
  std::vector<NodeRecord> records;
  for (const auto& [id, node] : state.nodes)
    if (node.record.local) records.push_back(node.record);
  return records;
}

}  // namespace slipway::control
