#include "compat/batchai/adopt.h"

#include <fmt/format.h>

#include "compat/batchai/translate.h"

namespace slipway::batchai {
namespace {

constexpr const char* adopted = "batchai.adopted";
constexpr const char* size_tag = "size";
constexpr std::uint32_t page = 200;

bool joins_by_itself(const PoolRecord& pool) { return pool.provisioner == "none"; }

}  // namespace

std::optional<PoolView> pool_of_size(const std::vector<PoolView>& pools, const std::string& vm_size) {
  const auto means = [&](const PoolRecord& pool) {
    return same_word(pool.name, vm_size) || same_word(tag_of(pool.tags, size_tag), vm_size);
  };
  std::optional<PoolView> found;
  for (const PoolView& view : pools) {
    if (view.pool.provisioner == "local" || view.pool.deleting || !means(view.pool)) continue;
    // One that no cluster has comes before one that is in use.
    if (!found || (found->pool.tags.contains(tag::id) && !view.pool.tags.contains(tag::id))) found = view;
  }
  return found;
}

bool is_adopted(const PoolRecord& pool) { return pool.tags.contains(adopted); }

Answer<PoolView> adopt(Registry& registry, const PoolView& pool, const PoolRequest& cluster) {
  const std::string& name = pool.pool.name;
  if (const std::string other = tag_of(pool.pool.tags, tag::resource_id); !other.empty())
    return refuse(409, "ClusterPoolInUse",
                  fmt::format("the nodes of pool {} are those of the cluster {} already; delete it first, or "
                              "name another size",
                              name, other.substr(other.rfind('/') + 1)));
  const bool has_setup = cluster.start_task || (cluster.mounts && !cluster.mounts->empty());
  if (has_setup && (!pool.pool.start_task.command.empty() || !pool.pool.mounts.empty()))
    return refuse(409, "ClusterPoolHasSetup",
                  fmt::format("pool {} has a start task or mounts of its own; leave nodeSetup out", name));
  PoolRequest request;
  request.tags = pool.pool.tags;
  for (const auto& [key, value] : *cluster.tags) (*request.tags)[key] = value;
  request.tags->erase(tag::gpus);  // the nodes have what they have
  (*request.tags)[adopted] = has_setup ? "setup" : "nodes";
  if (has_setup) {
    request.start_task = cluster.start_task;
    request.mount_root = cluster.mount_root;
    request.mounts = cluster.mounts;
  }
  if (!joins_by_itself(pool.pool)) {
    request.dedicated = cluster.dedicated;
    request.low_priority = cluster.low_priority;
    request.autoscale = cluster.autoscale;
  }
  auto changed = registry.controller().resize_pool(registry.caller(), name, request);
  if (!changed) return refuse(to_cloud_error(changed.error()));
  return *changed;
}

PoolRequest adopted_change(const PoolRecord& pool, PoolRequest change) {
  if (!is_adopted(pool) || !joins_by_itself(pool)) return change;
  PoolRequest noted;
  noted.tags = std::move(change.tags);
  return noted;
}

Answer<bool> let_go(Registry& registry, const PoolView& pool) {
  auto& controller = registry.controller();
  const std::string key = tag_of(pool.pool.tags, tag::id);
  for (std::optional<JobId> after;;) {
    auto jobs = controller.jobs_by_tag(registry.caller(), tag::cluster, key, after, page);
    if (!jobs) return refuse(to_cloud_error(jobs.error()));
    for (const JobRecord& job : *jobs)
      if (!is_terminal(job.state))
        if (auto ended = controller.cancel(registry.caller(), job.id, "its cluster was deleted"); !ended)
          return refuse(to_cloud_error(ended.error()));
    if (jobs->empty()) break;
    after = jobs->back().id;
  }
  PoolRequest request;
  request.tags = pool.pool.tags;
  std::erase_if(*request.tags, [](const auto& one) { return one.first.starts_with(tag::prefix); });
  if (tag_of(pool.pool.tags, adopted) == "setup") {
    request.start_task = StartTask{};
    request.mounts.emplace();
  }
  auto changed = controller.resize_pool(registry.caller(), pool.pool.name, request);
  if (!changed) return refuse(to_cloud_error(changed.error()));
  return true;
}

}  // namespace slipway::batchai
