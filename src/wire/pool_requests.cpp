// What clients ask of pools: to be made, changed, resized, evicted from and evaluated.
#include <fmt/format.h>

#include <cmath>

#include "wire/fields.h"
#include "wire/formula.h"
#include "wire/json.h"
#include "wire/mounts.h"
#include "wire/policy.h"
#include "wire/pool.h"
#include "wire/pool_fields.h"
#include "wire/records.h"
#include "wire/scenario.h"

namespace slipway::wire {

StartTask read_start_task(FieldReader& outer) {
  StartTask task;
  read_inside(outer, "start_task", [&](FieldReader& reader) {
    task.script = reader.text("script");
    task.command = reader.text("command");
    for (auto& [name, value] : reader.text_map("environment")) task.environment[name] = value;
    task.wait_for_success = reader.boolean("wait_for_success", true);
    task.retries = read_count(reader, "retries", 100, 0);
    task.timeout = read_duration(reader, "timeout", 100ms, day, task.timeout);
    for (auto& [name, value] : reader.text_map("secrets")) task.secrets[name] = value;
    task.logs = reader.text("logs");
    const Value& here = *outer.value("start_task");
    if (!task.script.empty() && !task.command.empty())
      reader.problem(here, "a start task has either a script or a command", "leave one of them out");
    if (task.empty() && !here.fields.empty())
      reader.problem(here, "a start task needs a script or a command",
                     "write command: \"…\", or leave start_task out");
  });
  return task;
}

EvictionRule read_evictions(FieldReader& outer) {
  EvictionRule rule;
  read_inside(outer, "evictions", [&](FieldReader& reader) {
    rule.every = read_duration(reader, "every", Duration(0), 30 * day, rule.every);
    rule.spread = read_duration(reader, "spread", Duration(0), 30 * day, rule.spread);
    rule.seed = static_cast<std::uint64_t>(reader.integer("seed", 0, INT64_MAX, 1));
    if (rule.spread > rule.every)
      reader.problem(*outer.value("evictions"), "evictions cannot vary by more than their mean",
                     "write it like 20s±10s");
  });
  return rule;
}

Autoscale read_autoscale(FieldReader& outer) {
  Autoscale autoscale;
  read_inside(outer, "autoscale", [&](FieldReader& reader) {
    autoscale.by =
        read_word(reader, "by", parse_scale_by, ScaleBy::hand, "hand, demand, formula and scenario");
    autoscale.min = read_count(reader, "min", nodes_max, 0);
    autoscale.max = read_count(reader, "max", nodes_max, 0);
    autoscale.dedicated_max = read_count(reader, "dedicated_max", nodes_max, 0);
    autoscale.only_low_priority = reader.boolean("only_low_priority", false);
    autoscale.interval = read_duration(reader, "interval", 1s, 7 * day, autoscale.interval);
    autoscale.formula = reader.text("formula");
    if (const Value* scenario = reader.value("scenario")) {
      auto read = read_scenario(*scenario, reader.document(), reader.path() + ".scenario");
      if (read)
        autoscale.scenario = *read;
      else
        reader.problem(*scenario, read.error().what, read.error().hint);
    } else if (autoscale.by == ScaleBy::scenario) {
      reader.problem(*outer.value("autoscale"), "a pool that is sized by a scenario needs one",
                     "write scenario: {name: active_tasks, maximum_vm_count: {dedicated: 8}}");
    }
  });
  return autoscale;
}

Result<PoolRequest> parse_pool_request(std::string_view json, const std::vector<ReservedTags>& reserved) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  PoolRequest request;
  request.name = reader.text("name");
  request.provisioner = reader.text("provisioner");
  for (const char* key : {"nodes", "dedicated"})
    if (reader.has(key)) request.dedicated = read_count(reader, key, nodes_max, 0);
  if (reader.has("nodes") && reader.has("dedicated"))
    reader.problem(*reader.value("nodes"), "nodes and dedicated are the same thing", "leave one of them out");
  if (reader.has("low_priority")) request.low_priority = read_count(reader, "low_priority", nodes_max, 0);
  if (reader.has("cores_per_node"))
    request.cores_per_node =
        static_cast<Millicores>(std::llround(reader.number("cores_per_node", 0.001, 100'000, 1) * 1000));
  if (reader.has("memory_per_node")) request.memory_per_node = reader.bytes("memory_per_node", 0);
  if (reader.has("gpus_per_node")) request.gpus_per_node = read_count(reader, "gpus_per_node", 1024, 0);
  if (reader.has("cpu_limit"))
    request.cpu_limit = read_word(reader, "cpu_limit", parse_cpu_limit, true, "on and off");
  if (reader.has("overcommit")) request.overcommit = reader.boolean("overcommit", false);
  if (reader.has("lease")) request.lease = read_duration(reader, "lease", 500ms, day, 5s);
  if (reader.has("on_lease_loss"))
    request.on_lease_loss =
        read_word(reader, "on_lease_loss", parse_on_lease_loss, OnLeaseLoss::stop, "stop and keep");
  if (reader.has("default")) request.is_default = reader.boolean("default", false);
  if (reader.has("lost_after")) request.lost_after = read_duration(reader, "lost_after", 200ms, day, 60s);
  if (reader.has("min")) request.min = read_count(reader, "min", nodes_max, 0);
  if (reader.has("max")) request.max = read_count(reader, "max", nodes_max, 0);
  if (reader.has("fill")) request.fill = read_word(reader, "fill", parse_fill, Fill::pack, "pack and spread");
  if (reader.has("slots_per_node")) request.slots_per_node = read_count(reader, "slots_per_node", 10'000, 0);
  if (reader.has("idle_timeout"))
    request.idle_timeout = read_duration(reader, "idle_timeout", Duration(0), 30 * day, 5min);
  if (reader.has("notice")) request.notice = read_duration(reader, "notice", Duration(0), day, 30s);
  if (reader.has("deallocation"))
    request.deallocation =
        read_word(reader, "deallocation", parse_deallocation, Deallocation::requeue, deallocation_words);
  if (reader.has("resize_timeout"))
    request.resize_timeout = read_duration(reader, "resize_timeout", 1s, 7 * day, 15min);
  if (reader.has("start_task")) request.start_task = read_start_task(reader);
  if (reader.has("evictions")) request.evictions = read_evictions(reader);
  if (reader.has("autoscale")) request.autoscale = read_autoscale(reader);
  if (reader.has("policy")) request.policy = read_policy(reader);
  if (reader.has("tags")) request.tags = read_tags(reader, reserved);
  if (reader.has("mount_root")) request.mount_root = reader.text("mount_root");
  if (reader.has("mounts")) request.mounts = read_mounts(reader);
  if (request.mounts && !request.mounts->empty() && !request.mount_root)
    request.mount_root = std::string(usual_mount_root);
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return request;
}

Result<EvictRequest> parse_evict_request(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  EvictRequest request;
  if (reader.has("notice")) request.notice = read_duration(reader, "notice", Duration(0), day, 30s);
  request.reason = reader.text("reason");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return request;
}

Result<Deallocation> parse_deallocation_request(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  const Deallocation rule =
      read_word(reader, "deallocation", parse_deallocation, Deallocation::requeue, deallocation_words);
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return rule;
}

Result<std::optional<std::string>> parse_evaluate_request(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  const std::string text = reader.text("formula");
  const bool given = reader.has("formula");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return given ? std::optional(text) : std::nullopt;
}

std::string format_evaluation(const formula::Outcome& outcome, const AutoscaleRun& run) {
  Json json = Json::parse(format(outcome));
  json["time"] = format_time(run.time);
  json["results"] = run.results;
  if (!run.error_code.empty()) json["error"]["code"] = run.error_code;
  return dump(json);
}

}  // namespace slipway::wire
