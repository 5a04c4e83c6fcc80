// What can be done here, and how much of it is in use.
#include <fmt/format.h>

#include <map>

#include "compat/batchai/render.h"
#include "compat/batchai/translate.h"

namespace slipway::batchai {
namespace {

Value usage(const std::string& name, const std::string& shown, std::int64_t now) {
  return object_value(
      {{"unit", text_value("Count")},
       {"currentValue", number_value(now)},
       {"limit", number_value(-1)},
       {"name", object_value({{"value", text_value(name)}, {"localizedValue", text_value(shown)}})}});
}

}  // namespace

Value render_operations() {
  struct Row {
    const char* resource;
    const char* action;
    const char* shown;
    const char* operation;
  };
  static constexpr Row rows[] = {
      {"workspaces", "read", "Workspace", "Gets or lists workspaces"},
      {"workspaces", "write", "Workspace", "Creates or updates a workspace"},
      {"workspaces", "delete", "Workspace", "Deletes a workspace and all in it"},
      {"workspaces/clusters", "read", "Cluster", "Gets or lists clusters"},
      {"workspaces/clusters", "write", "Cluster", "Creates or updates a cluster"},
      {"workspaces/clusters", "delete", "Cluster", "Deletes a cluster"},
      {"workspaces/clusters", "listRemoteLoginInformation/action", "Cluster",
       "Lists how to log in to the nodes of a cluster"},
      {"workspaces/experiments", "read", "Experiment", "Gets or lists experiments"},
      {"workspaces/experiments", "write", "Experiment", "Creates an experiment"},
      {"workspaces/experiments", "delete", "Experiment", "Deletes an experiment and its jobs"},
      {"workspaces/experiments/jobs", "read", "Job", "Gets or lists jobs"},
      {"workspaces/experiments/jobs", "write", "Job", "Creates a job"},
      {"workspaces/experiments/jobs", "delete", "Job", "Deletes a job"},
      {"workspaces/experiments/jobs", "terminate/action", "Job", "Terminates a job"},
      {"workspaces/experiments/jobs", "listOutputFiles/action", "Job", "Lists the output files of a job"},
      {"workspaces/experiments/jobs", "listRemoteLoginInformation/action", "Job",
       "Lists how to log in to the nodes of a job"},
      {"workspaces/fileservers", "read", "File server", "Gets or lists file servers"},
      {"workspaces/fileservers", "write", "File server", "Creates a file server"},
      {"workspaces/fileservers", "delete", "File server", "Deletes a file server"},
      {"locations/usages", "read", "Usage", "Lists what is in use"},
      {"locations/operationresults", "read", "Operation", "Gets the result of an operation"},
      {"locations/operationstatuses", "read", "Operation", "Gets the status of an operation"},
      {"operations", "read", "Operation", "Lists what can be done"}};
  Value list = list_value();
  for (const Row& row : rows)
    list.items.push_back(
        object_value({{"name", text_value(fmt::format("Microsoft.BatchAI/{}/{}", row.resource, row.action))},
                      {"display", object_value({{"provider", text_value("Microsoft Batch AI")},
                                                {"resource", text_value(row.shown)},
                                                {"operation", text_value(row.operation)},
                                                {"description", text_value(row.operation)}})},
                      {"origin", text_value("user,system")}}));
  return object_value({{"value", std::move(list)}});
}

Value render_usages(const std::vector<PoolView>& pools) {
  struct Sum {
    std::int64_t dedicated = 0, low_priority = 0;
  };
  Sum cores, gpus;
  std::map<std::string, Sum> families, classes;
  for (const char* family : {"D", "Dv2", "NC", "NCv2", "NCv3", "ND", "NV"}) families[family];
  std::int64_t clusters = 0;
  for (const PoolView& view : pools) {
    const auto body = view.pool.tags.find(tag::body);
    if (body == view.pool.tags.end()) continue;
    ++clusters;
    const std::string size = text_at(parse_stored(body->second), "properties.vmSize");
    const std::string family = family_of_class(size);
    const std::int64_t each = std::max<std::int64_t>(1, view.pool.per_node.cores / 1000);
    Sum& sum = family.empty() ? classes[size] : families[family];
    sum.dedicated += each * view.present.dedicated;
    sum.low_priority += each * view.present.low_priority;
    cores.dedicated += each * view.present.dedicated;
    cores.low_priority += each * view.present.low_priority;
    gpus.dedicated += std::int64_t{view.pool.per_node.gpus} * view.present.dedicated;
    gpus.low_priority += std::int64_t{view.pool.per_node.gpus} * view.present.low_priority;
  }
  Value list = list_value({usage("Clusters", "Clusters", clusters)});
  const auto pair = [&](const std::string& before, const std::string& after, const Sum& sum) {
    list.items.push_back(usage(before + "Dedicated" + after, before + "Dedicated" + after, sum.dedicated));
    list.items.push_back(
        usage(before + "LowPriority" + after, before + "Low Priority" + after, sum.low_priority));
  };
  pair("Total Cluster ", " Regional vCPUs", cores);
  for (const auto& [family, sum] : families)
    pair(fmt::format("Standard {} Family Cluster ", family), " vCPUs", sum);
  pair("Total Cluster ", " GPUs", gpus);
  for (const auto& [name, sum] : classes) pair(fmt::format("{} Cluster ", name), " vCPUs", sum);
  return object_value({{"value", std::move(list)}});
}

}  // namespace slipway::batchai
