#include "control/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/check.h"
#include "control/attempts.h"
#include "control/elastic.h"
#include "control/nodes.h"
#include "control/pools.h"

namespace slipway::control {
namespace {

constexpr std::uint32_t gpus_max = 1024;  // that a node can say it has

bool has(const GpuIndices& indices, std::uint32_t gpu) {
  return std::find(indices.begin(), indices.end(), gpu) != indices.end();
}

// The most nodes a pool can come to have.
std::uint32_t nodes_max(const PoolRecord& pool) {
  return std::max(pool.target.total(), pool.autoscale.by == ScaleBy::demand ? pool.autoscale.max : 0);
}

std::uint64_t promised(const PoolRecord& pool) {
  return pool.provisioner == "local" ? std::uint64_t{pool.per_node.gpus} * nodes_max(pool) : 0;
}

void count_free_gpus(const State& state, Node& node) {
  node.gpus_free = {node.record.gpu_indices.begin(), node.record.gpu_indices.end()};
  for (const std::uint32_t gpu : gpus_held(state, node)) node.gpus_free.erase(gpu);
}

// What attempts on other local nodes hold, also of cards that those nodes have lost: until they have ended,
// nobody else may have them.
std::set<std::uint32_t> gpus_held_elsewhere(const State& state, NodeId id) {
  std::set<std::uint32_t> all;
  for (const auto& [other, node] : state.nodes) {
    if (!node.record.local || other == id) continue;
    const GpuIndices held = gpus_held(state, node);
    all.insert(held.begin(), held.end());
  }
  return all;
}

}  // namespace

// ── of this machine ──

std::uint32_t gpus_unpromised(const Turn& turn, const std::string& pool_key) {
  std::uint64_t taken = 0;
  for (const auto& [key, pool] : turn.state.pools)
    if (key != pool_key) taken += promised(pool.record);
  const std::uint32_t all = turn.settings.machine.total.gpus;
  return static_cast<std::uint32_t>(all - std::min<std::uint64_t>(all, taken));
}

// Only a new pool is checked. One that grows beyond the cards has nodes with fewer, and its notes say so: its
// share may be the default, which nobody asked for.
Result<void> check_gpus(const Turn& turn, const PoolRecord& pool) {
  const std::uint64_t need = promised(pool);
  const std::uint32_t free = gpus_unpromised(turn, pool.workspace + "/" + pool.name);
  if (need <= free) return {};
  const std::uint32_t all = turn.settings.machine.total.gpus;
  const std::uint32_t nodes = nodes_max(pool);
  return fail(ErrorCode::invalid,
              fmt::format("pool {} would need {} GPUs, {} for each of {} nodes; this machine has {}{}",
                          pool.name, need, pool.per_node.gpus, nodes, all,
                          free == all ? "" : fmt::format(", and other pools have {} of them", all - free)),
              nodes <= free ? fmt::format("ask for no more than --gpus-per-node {}", free / nodes)
                            : "ask for fewer nodes, or for --gpus-per-node 0");
}

void assign_gpus(Turn& turn, NodeRecord& node, std::uint32_t count) {
  State& state = turn.state;
  std::set<std::uint32_t> held;
  if (node.gpu_indices.size() < count) held = gpus_held_elsewhere(state, node.id);
  while (node.gpu_indices.size() < count && state.machine_gpu_hint < turn.settings.machine.total.gpus) {
    const std::uint32_t gpu = state.machine_gpu_hint++;
    if (!held.contains(gpu) && state.machine_gpus_taken.insert(gpu).second) node.gpu_indices.push_back(gpu);
  }
  std::sort(node.gpu_indices.begin(), node.gpu_indices.end());
  node.total.gpus = static_cast<std::uint32_t>(node.gpu_indices.size());
}

void take_machine_gpus(State& state, const NodeRecord& node) {
  if (node.local) state.machine_gpus_taken.insert(node.gpu_indices.begin(), node.gpu_indices.end());
}

void release_machine_gpus(State& state, const NodeRecord& node) {
  if (!node.local) return;
  for (const std::uint32_t gpu : node.gpu_indices) {
    state.machine_gpus_taken.erase(gpu);
    state.machine_gpu_hint = std::min(state.machine_gpu_hint, gpu);
  }
}

void complete_gpus(Turn& turn) {
  for (auto& [id, node] : turn.state.nodes) {
    const std::uint32_t wanted = turn.state.pool_of(node).record.per_node.gpus;
    if (!node.record.local || node.record.leaving || node.record.total.gpus >= wanted) continue;
    const std::uint32_t before = node.record.total.gpus;
    assign_gpus(turn, node.record, wanted);
    if (node.record.total.gpus == before) continue;
    count_free_gpus(turn.state, node);
    update_capacity(turn, node);
    turn.effects.touch(node);
  }
}

bool waits_for_gpus(const Turn& turn, const Pool& pool) {
  if (pool.record.per_node.gpus == 0) return false;
  const std::uint64_t all = turn.settings.machine.total.gpus;
  if (turn.state.machine_gpus_taken.size() + pool.record.per_node.gpus <= all) return false;
  return std::any_of(turn.state.nodes.begin(), turn.state.nodes.end(), [](const auto& entry) {
    const NodeRecord& record = entry.second.record;
    return record.local && record.leaving && record.total.gpus > 0;
  });
}

// ── of a node ──

GpuIndices grant_gpus(Node& node, std::uint32_t count) {
  SLIPWAY_CHECK(node.gpus_free.size() >= count);
  GpuIndices granted;
  for (; count > 0; --count) granted.push_back(node.gpus_free.extract(node.gpus_free.begin()).value());
  return granted;
}

void return_gpus(State& state, Node& node, const GpuIndices& gpus) {
  if (gpus.empty()) return;
  const GpuIndices held = gpus_held(state, node);
  for (const std::uint32_t gpu : gpus)
    if (!has(node.record.gpu_indices, gpu)) {
      if (node.record.local) state.machine_gpu_hint = std::min(state.machine_gpu_hint, gpu);
    } else if (!has(held, gpu)) {
      node.gpus_free.insert(gpu);
    }
}

GpuIndices gpus_held(const State& state, const Node& node) {
  GpuIndices held;
  const auto add = [&](const GpuIndices& gpus) { held.insert(held.end(), gpus.begin(), gpus.end()); };
  for (const AttemptKey& key : node.attempts)
    if (const Attempt* attempt = state.find_attempt(key))
      add(attempt->record.nodes[node_index_of(*attempt, node.record.id)].gpus);
  for (const AttemptKey& key : node.joining)
    if (const Attempt* attempt = state.find_attempt(key))
      if (const auto joining = attempt->joining.find(node.record.id); joining != attempt->joining.end())
        add(joining->second);
  std::sort(held.begin(), held.end());
  return held;
}

namespace {

// What an agent says is there: all of the machine that joins, or those of a local node's that were found.
GpuIndices gpus_in(const Hello& hello, const NodeRecord& record) {
  if (hello.gpu_indices) {
    const std::set<std::uint32_t> each(hello.gpu_indices->begin(), hello.gpu_indices->end());
    return {each.begin(), each.end()};
  }
  GpuIndices counted(std::min(hello.total.gpus, gpus_max));
  std::iota(counted.begin(), counted.end(), 0u);
  if (!record.local) return counted;
  counted = record.gpu_indices;
  counted.resize(std::min<std::size_t>(counted.size(), hello.total.gpus));
  return counted;
}

}  // namespace

void update_gpus(Turn& turn, Node& node, const Hello& hello) {
  NodeRecord& record = node.record;
  const GpuIndices before = record.gpu_indices;
  GpuIndices there = gpus_in(hello, record);
  if (record.local) {
    release_machine_gpus(turn.state, record);
    std::erase_if(there, [&](std::uint32_t gpu) {
      return gpu >= turn.settings.machine.total.gpus || !has(before, gpu);
    });
  }
  record.gpu_indices = std::move(there);
  record.total.gpus = static_cast<std::uint32_t>(record.gpu_indices.size());
  take_machine_gpus(turn.state, record);
  count_free_gpus(turn.state, node);
  GpuIndices gone;
  for (const std::uint32_t gpu : before)
    if (!has(record.gpu_indices, gpu)) gone.push_back(gpu);
  if (gone.empty()) return;
  const std::string text = fmt::format("{} lost GPU {}: it has {} instead of {}", record.name,
                                       fmt::join(gone, ", "), record.total.gpus, before.size());
  remember(turn.state.pool_of(node), text);
  record_event_in(turn, record.workspace, "node.gpus_lost", text, record.name, record.pool);
}

void interrupt_without_gpus(Turn& turn, Node& node, const std::vector<ProcessEnded>& ended) {
  const std::set<AttemptKey> keys = node.attempts;
  for (const AttemptKey& key : keys) {
    Attempt* attempt = turn.state.find_attempt(key);
    if (!attempt || !node.attempts.contains(key) ||
        std::any_of(ended.begin(), ended.end(),
                    [&](const ProcessEnded& end) { return end.key == WorkKey(key); }))
      continue;
    const std::uint32_t node_index = node_index_of(*attempt, node.record.id);
    const GpuIndices& held = attempt->record.nodes[node_index].gpus;
    const auto gone = std::find_if(held.begin(), held.end(),
                                   [&](std::uint32_t gpu) { return !has(node.record.gpu_indices, gpu); });
    if (gone != held.end())
      lose_part(turn, *attempt, node_index, EndReason::evicted,
                fmt::format("interrupted: GPU {} of node {} is gone", *gone, node.record.name));
  }
}

std::string broken_gpus(const State& state) {
  std::set<std::uint32_t> of_machine;
  for (const auto& [id, node] : state.nodes) {
    const NodeRecord& record = node.record;
    if (record.gpu_indices.size() != record.total.gpus)
      return fmt::format("node {}: its GPUs are not counted right", record.name);
    for (const std::uint32_t gpu : record.gpu_indices)
      if (record.local && !of_machine.insert(gpu).second)
        return fmt::format("GPU {} of this machine is assigned twice", gpu);
    const GpuIndices held = gpus_held(state, node);
    // After a restart a part of a gang that is over may count until the node has reported it.
    if (node.session && std::adjacent_find(held.begin(), held.end()) != held.end())
      return fmt::format("node {}: a GPU is granted twice", record.name);
    for (const std::uint32_t gpu : held)
      if (node.gpus_free.contains(gpu))
        return fmt::format("node {}: GPU {} is granted and free", record.name, gpu);
    for (const std::uint32_t gpu : node.gpus_free)
      if (!has(record.gpu_indices, gpu)) return fmt::format("node {} has no GPU {}", record.name, gpu);
  }
  return of_machine == state.machine_gpus_taken ? "" : "the machine's GPUs are not counted right";
}

}  // namespace slipway::control
