#include "wire/pool.h"

#include <cstdlib>

#include "wire/json.h"
#include "wire/mounts.h"
#include "wire/policy.h"
#include "wire/pool_fields.h"
#include "wire/records.h"
#include "wire/scenario.h"
#include "wire/utf8.h"

namespace slipway::wire {
namespace {

// ── writing ──

Json start_task_json(const StartTask& task) {
  if (task.empty()) return nullptr;
  Json json = Json::object();
  if (!task.script.empty()) json["script"] = to_utf8(task.script);
  if (!task.command.empty()) json["command"] = to_utf8(task.command);
  json["environment"] = task.environment;
  json["wait_for_success"] = task.wait_for_success;
  json["retries"] = task.retries;
  json["timeout"] = seconds(task.timeout);
  if (!task.secrets.empty()) json["secrets"] = task.secrets;
  if (!task.logs.empty()) json["logs"] = task.logs;
  return json;
}

Json autoscale_json(const Autoscale& autoscale) {
  Json json{{"by", to_string(autoscale.by)}};
  if (autoscale.by == ScaleBy::demand)
    json.update({{"min", autoscale.min}, {"max", autoscale.max}, {"dedicated_max", autoscale.dedicated_max}});
  if (autoscale.only_low_priority) json["only_low_priority"] = true;
  if (autoscale.by == ScaleBy::formula || autoscale.by == ScaleBy::scenario)
    json["interval"] = seconds(autoscale.interval);
  if (autoscale.by == ScaleBy::formula) json["formula"] = autoscale.formula;
  if (autoscale.by == ScaleBy::scenario) json["scenario"] = Json::parse(format(autoscale.scenario));
  return json;
}

Json last_run_json(const AutoscaleRun& run) {
  if (run.time == TimePoint{}) return nullptr;
  Json json{{"time", format_time(run.time)}, {"results", run.results}, {"error", nullptr}};
  if (!run.error_code.empty()) json["error"] = {{"code", run.error_code}, {"message", run.error}};
  return json;
}

Json resize_json(const Resize& resize) {
  Json errors = Json::array();
  for (const ResizeError& error : resize.errors)
    errors.push_back({{"code", error.code}, {"message", error.text}});
  return {{"state", to_string(resize.state)},   {"since", format_time(resize.since)},
          {"timeout", seconds(resize.timeout)}, {"deallocation", to_string(resize.deallocation)},
          {"asked_by", resize.asked_by},        {"errors", std::move(errors)}};
}

Json settings_json(const PoolRecord& pool) {
  Json json{{"owner", pool.owner},
            {"fill", to_string(pool.fill)},
            {"slots_per_node", pool.slots_per_node},
            {"cpu_limit", cpu_limit_word(pool.cpu_limit)},
            {"lease", seconds(pool.lease)},
            {"on_lease_loss", to_string(pool.on_lease_loss)},
            {"idle_timeout", seconds(pool.idle_timeout)},
            {"notice", seconds(pool.notice)},
            {"deallocation", to_string(pool.deallocation)},
            {"start_task", start_task_json(pool.start_task)},
            {"evictions", nullptr},
            {"autoscale", autoscale_json(pool.autoscale)},
            {"last_run", last_run_json(pool.last_run)},
            {"resize", resize_json(pool.resize)},
            {"policy", policy_json(pool.policy)}};
  if (pool.evictions.every.count() > 0)
    json["evictions"] = {{"every", seconds(pool.evictions.every)},
                         {"spread", seconds(pool.evictions.spread)},
                         {"seed", pool.evictions.seed}};
  if (!pool.tags.empty()) json["tags"] = pool.tags;
  if (!pool.mount_root.empty()) json["mount_root"] = pool.mount_root;
  if (!pool.mounts.empty()) json["mounts"] = mounts_json(pool.mounts);
  return json;
}

Json counts_json(const NodeCounts& counts) {
  return {{"dedicated", counts.dedicated}, {"low_priority", counts.low_priority}};
}

Json states_json(const std::map<NodeState, std::uint32_t>& nodes) {
  Json json = Json::object();
  for (const NodeState state :
       {NodeState::joining, NodeState::starting, NodeState::idle, NodeState::busy, NodeState::draining,
        NodeState::evicted, NodeState::lost, NodeState::start_failed}) {
    const auto found = nodes.find(state);
    json[std::string(to_string(state))] = found == nodes.end() ? 0 : found->second;
  }
  return json;
}

// ── reading ──

AutoscaleRun read_last_run(FieldReader& outer) {
  AutoscaleRun run;
  read_inside(outer, "last_run", [&](FieldReader& reader) {
    run.time = read_time(reader, "time");
    run.results = reader.text("results");
    read_inside(reader, "error", [&](FieldReader& error) {
      run.error_code = error.text("code");
      run.error = error.text("message");
    });
  });
  return run;
}

Resize read_resize(FieldReader& outer) {
  Resize resize;
  read_inside(outer, "resize", [&](FieldReader& reader) {
    resize.state = read_word(reader, "state", parse_resize_state, ResizeState::steady, "steady and resizing");
    resize.since = read_time(reader, "since");
    resize.timeout = reader.duration("timeout", resize.timeout);
    resize.deallocation =
        read_word(reader, "deallocation", parse_deallocation, Deallocation::requeue, deallocation_words);
    resize.asked_by = reader.text("asked_by");
    const Value* errors = reader.value("errors");
    if (!errors) return;
    for (const Value& item : errors->items) {
      FieldReader error(item, reader.document(), "resize.errors");
      resize.errors.push_back({error.text("code"), error.text("message")});
    }
  });
  return resize;
}

}  // namespace

std::string format(const PoolView& view) {
  const PoolRecord& pool = view.pool;
  Json nodes{{"target", pool.target.total()},
             {"target_dedicated", pool.target.dedicated},
             {"target_low_priority", pool.target.low_priority},
             {"dedicated", view.present.dedicated},
             {"low_priority", view.present.low_priority}};
  nodes.update(states_json(view.nodes));
  Json json{{"name", pool.name},
            {"workspace", pool.workspace},
            {"provisioner", pool.provisioner},
            {"state", view.is_deleted ? "deleted"
                      : pool.deleting ? "deleting"
                                      : to_string(pool.resize.state)},
            {"nodes", std::move(nodes)},
            {"cores_per_node", cores_json(pool.per_node.cores)},
            {"memory_per_node", pool.per_node.memory},
            {"gpus_per_node", pool.per_node.gpus},
            {"overcommit", pool.overcommit},
            {"lost_after", seconds(pool.lost_after)}};
  json.update(settings_json(pool));
  if (!pool.start_task.secrets.empty())
    for (auto& [name, value] : json["start_task"]["secrets"].items()) value = "";  // only their names
  json["default"] = view.is_default;
  json["created_at"] = format_time(pool.created_at);
  json["notes"] = view.notes;
  return dump(json);
}

std::string format_pool_settings(const PoolRecord& pool) {
  Json json = settings_json(pool);
  json["low_priority"] = pool.target.low_priority;
  json["deleting"] = pool.deleting;
  json["default"] = pool.is_default;
  return dump(json);
}

Result<void> parse_pool_settings(std::string_view json, PoolRecord& pool) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the stored pool", "");
  pool.owner = reader.text("owner");
  pool.fill = read_word(reader, "fill", parse_fill, Fill::pack, "pack and spread");
  pool.slots_per_node = read_count(reader, "slots_per_node", nodes_max, 0);
  pool.cpu_limit = read_word(reader, "cpu_limit", parse_cpu_limit, true, "on and off");
  pool.lease = reader.duration("lease", pool.lease);
  pool.on_lease_loss =
      read_word(reader, "on_lease_loss", parse_on_lease_loss, OnLeaseLoss::stop, "stop and keep");
  pool.idle_timeout = reader.duration("idle_timeout", pool.idle_timeout);
  pool.notice = reader.duration("notice", pool.notice);
  pool.deallocation =
      read_word(reader, "deallocation", parse_deallocation, Deallocation::requeue, deallocation_words);
  pool.start_task = read_start_task(reader);
  pool.evictions = read_evictions(reader);
  pool.autoscale = read_autoscale(reader);
  pool.last_run = read_last_run(reader);
  pool.resize = read_resize(reader);
  if (auto policy = changed({}, read_policy(reader)))
    pool.policy = *policy;
  else
    return fail(policy.error());
  pool.target.low_priority = read_count(reader, "low_priority", nodes_max, 0);
  pool.deleting = reader.boolean("deleting", false);
  pool.is_default = reader.boolean("default", false);
  for (auto& [name, value] : reader.text_map("tags")) pool.tags[name] = value;
  pool.mount_root = reader.text("mount_root");
  pool.mounts = read_mounts(reader);
  return reader.finish();
}

std::string format(const PoolHistoryEntry& entry) {
  return dump({{"time", format_time(entry.time)},
               {"target", counts_json(entry.target)},
               {"present", counts_json(entry.present)},
               {"nodes", states_json(entry.nodes)},
               {"reason", entry.reason}});
}

Result<PoolHistoryEntry> parse_pool_history_entry(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the stored history", "");
  PoolHistoryEntry entry;
  entry.time = read_time(reader, "time");
  const auto counts = [&](std::string_view key, NodeCounts& into) {
    read_inside(reader, key, [&](FieldReader& inside) {
      into.dedicated = read_count(inside, "dedicated", UINT32_MAX, 0);
      into.low_priority = read_count(inside, "low_priority", UINT32_MAX, 0);
    });
  };
  counts("target", entry.target);
  counts("present", entry.present);
  for (const auto& [name, count] : reader.text_map("nodes"))
    if (const auto state = parse_node_state(name); state && count != "0")
      entry.nodes[*state] = static_cast<std::uint32_t>(std::strtoul(count.c_str(), nullptr, 10));
  entry.reason = reader.text("reason");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return entry;
}

std::string format_sample_values(const PoolSample& sample) {
  Json json = Json::object();
  for (const auto& [name, value] : sample.values)
    if (value != 0) json[name] = value;  // most are
  return dump(json);
}

Result<void> parse_sample_values(std::string_view json, PoolSample& sample) {
  const Json parsed = Json::parse(json, nullptr, false);
  if (!parsed.is_object()) return fail(ErrorCode::conflict, "a stored sample is not what it should be");
  for (const auto& [name, value] : parsed.items())
    if (value.is_number()) sample.values[name] = value.get<double>();
  return {};
}

}  // namespace slipway::wire
