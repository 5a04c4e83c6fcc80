// Clusters as pools.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/shell.h"
#include "compat/batchai/script.h"
#include "compat/batchai/translate.h"

namespace slipway::batchai {
namespace {

constexpr Millicores cores_min = 100;
constexpr Duration setup_timeout = 6h;
constexpr std::uint32_t setup_retries = 2;  // then the node is unusable until it is reset

// The number after the letters: 24 of NC24R.
std::optional<std::uint32_t> size_of_class(std::string_view rest) {
  std::uint32_t size = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
  return error == std::errc{} ? std::optional(size) : std::nullopt;
}

void apply_scale(const Value& properties, PoolRequest& request, const NodeCounts* now) {
  const bool low = text_at(properties, "vmPriority") == "lowpriority";
  const Value* scale = properties.find("scaleSettings");
  const Value* by_itself = scale ? scale->find("autoScale") : nullptr;
  Autoscale rule;
  std::uint32_t target = 0;
  if (by_itself && count_at(*by_itself, "maximumNodeCount") > 0) {
    rule.by = ScaleBy::demand;
    rule.only_low_priority = low;
    rule.min = count_at(*by_itself, "minimumNodeCount");
    rule.max = count_at(*by_itself, "maximumNodeCount");
    target = now ? now->total() : count_at(*by_itself, "initialNodeCount");
    target = std::clamp(target, rule.min, rule.max);
  } else if (scale) {
    target = count_at(*scale, "manual.targetNodeCount");
    const std::string option = text_at(*scale, "manual.nodeDeallocationOption", "requeue");
    request.deallocation = option == "terminate"              ? Deallocation::terminate
                           : option == "waitforjobcompletion" ? Deallocation::task_completion
                                                              : Deallocation::requeue;
  }
  request.autoscale = rule;
  request.dedicated = low ? 0 : target;
  if (low) request.low_priority = target;
}

std::string setup_script(const Value& task, const Late& late) {
  return "export AZ_BATCHAI_NUM_GPUS=$(echo \"$CUDA_VISIBLE_DEVICES\" | tr , '\\n' | grep -c .)\n" +
         prologue(late, "") + text_at(task, "commandLine") + "\n";
}

}  // namespace

std::optional<std::uint32_t> gpus_of_class(std::string_view vm_size) {
  const std::string name = lower(vm_size);
  std::string_view rest = name;
  if (rest == "cpu") return 0;
  if (rest.starts_with("gpu")) return size_of_class(rest.substr(3));
  if (!rest.starts_with("standard_")) return std::nullopt;
  rest.remove_prefix(9);
  for (const std::string_view family : {"nc", "nd", "nv"})
    if (rest.starts_with(family)) {
      // Six cores to a card, in all of them.
      if (const auto size = size_of_class(rest.substr(2))) return std::max(1u, *size / 6);
      return std::nullopt;
    }
  if (!rest.empty() && std::string_view("dafhbelgm").find(rest.front()) != std::string_view::npos) return 0;
  return std::nullopt;
}

std::string family_of_class(std::string_view vm_size) {
  std::string name = upper(vm_size);
  if (!name.starts_with("STANDARD_")) return "";
  name = name.substr(9);
  const std::size_t digits = name.find_first_of("0123456789");
  const std::size_t version = name.find("_V");
  std::string family = name.substr(0, digits);
  if (family == "DS") family = "D";
  return version == std::string::npos ? family : family + lower(name.substr(version + 1));
}

void complete_cluster(Value& body) {
  Value& properties = *body.find("properties");
  set(properties, "vmSize", text_value(upper(text_at(properties, "vmSize"))));
  if (!properties.find("scaleSettings"))
    set(properties, "scaleSettings",
        object_value({{"manual", object_value({{"targetNodeCount", number_value(0)},
                                               {"nodeDeallocationOption", text_value("requeue")}})}}));
  if (!find(properties, "virtualMachineConfiguration.imageReference"))
    set(properties, "virtualMachineConfiguration",
        object_value({{"imageReference", object_value({{"publisher", text_value("Canonical")},
                                                       {"offer", text_value("UbuntuServer")},
                                                       {"sku", text_value("16.04-LTS")},
                                                       {"version", text_value("latest")}})}}));
}

Answer<PoolRequest> translate_cluster(const Value& body, const ClusterContext& context) {
  const Value& properties = *body.find("properties");
  Problems problems;
  PoolRequest request;
  request.name = context.pool;
  apply_scale(properties, request, nullptr);
  const std::uint32_t most =
      std::max({1u, request.autoscale->max, request.dedicated.value_or(0), request.low_priority.value_or(0)});
  // One job has a node to itself, whatever that is a share of: cores are shared evenly, memory is not shared.
  request.slots_per_node = 1;
  request.overcommit = true;
  request.cores_per_node = std::max(cores_min, context.machine.cores / most);
  request.memory_per_node = context.machine.memory / most;
  request.lost_after = 60s;
  request.idle_timeout = context.idle_timeout;
  request.mount_root = std::string(mount_root);
  request.mounts.emplace();
  if (const Value* volumes = find(properties, "nodeSetup.mountVolumes"))
    *request.mounts =
        mounts_of(*volumes, "mounts", "properties.nodeSetup.mountVolumes", context.servers, problems);

  if (const Value* task = find(properties, "nodeSetup.setupTask")) {
    const std::string where = "properties.nodeSetup.setupTask.stdOutErrPathPrefix";
    Environment known{{"AZ_BATCHAI_ROOT", std::string(mount_root)},
                      {"AZ_BATCHAI_MOUNT_ROOT", std::string(mount_root) + "/mounts"}};
    const Expanded prefix = expand(text_at(*task, "stdOutErrPathPrefix"), known);
    if (!prefix.unknown.empty() || !(prefix.text + "/").starts_with(std::string(mount_root) + "/") ||
        (prefix.text + "/").find("/../") != std::string::npos)
      problems.push_back({where, fmt::format("{} is '{}'; it must lie below $AZ_BATCHAI_MOUNT_ROOT", where,
                                             prefix.text.substr(0, 200))});
    StartTask start;
    start.logs = join_path(prefix.text, cluster_segment(context.resource, context.uuid));
    known["AZ_BATCHAI_STDOUTERR_DIR"] = start.logs;
    Environment environment = known;
    const Late late = settle_variables(*task, known, environment);
    start.environment = std::move(environment);
    start.command = "exec /bin/bash -c " + quote_for_shell(setup_script(*task, late));
    start.timeout = setup_timeout;
    start.retries = setup_retries;
    for (const Value& secret : items_at(*task, "secrets"))
      start.secrets[text_at(secret, "name")] =
          context.sealer.seal(text_at(secret, "value"), text_at(secret, "name"));
    request.start_task = std::move(start);
  }
  if (!problems.empty()) return refuse(to_cloud_error(problems, ""));

  const Value kept = without_secrets(Body::cluster, body);
  request.tags = Tags{{tag::id, key_of(Noun::cluster, context.resource)},
                      {tag::body, format(kept)},
                      {tag::print, context.sealer.sign("body:" + format(body))},
                      {tag::uuid, context.uuid},
                      {tag::resource_id, format_resource_id(Noun::cluster, context.resource)}};
  // No more cards than the class has; fewer where this machine has fewer.
  request.gpus_per_node_max = gpus_of_class(text_at(properties, "vmSize"));
  if (request.gpus_per_node_max) (*request.tags)[tag::gpus] = std::to_string(*request.gpus_per_node_max);
  return request;
}

PoolRequest translate_scale(const Value& body, const NodeCounts& target) {
  PoolRequest request;
  apply_scale(*body.find("properties"), request, &target);
  return request;
}

}  // namespace slipway::batchai
