#include "wire/pool.h"

#include <fmt/format.h>

#include <cmath>

#include "wire/fields.h"
#include "wire/formula.h"
#include "wire/json.h"
#include "wire/mounts.h"
#include "wire/policy.h"
#include "wire/records.h"
#include "wire/scenario.h"
#include "wire/utf8.h"

namespace slipway::wire {
namespace {

constexpr std::int64_t nodes_max = 100'000;
constexpr Duration day = 24h;

Json maybe_time(const std::optional<TimePoint>& time) { return time ? Json(format_time(*time)) : Json(); }

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

std::string_view cpu_limit_word(bool limited) { return limited ? "on" : "off"; }

std::optional<bool> parse_cpu_limit(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return std::nullopt;
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

Json node_settings_json(const NodeRecord& node) {
  Json steps = Json::array();
  for (const NodeTransition& step : node.transitions)
    steps.push_back(
        {{"state", to_string(step.state)}, {"time", format_time(step.time)}, {"reason", step.reason}});
  Json json{{"low_priority", node.low_priority},
            {"leaving", node.leaving ? Json(to_string(*node.leaving)) : Json()},
            {"evict_by", maybe_time(node.evict_by)},
            {"start_task", nullptr},
            {"gpu_indices", node.gpu_indices},
            {"cpu_limit", node.cpu_limit},
            {"cpu_limit_reason", node.cpu_limit_reason},
            {"boot", node.boot},
            {"steps", std::move(steps)}};
  if (const NodeStart& start = node.start; start.state != NodeStart::State::none)
    json["start_task"] = {{"state", to_string(start.state)},
                          {"attempt", start.attempt},
                          {"tries", start.tries},
                          {"exit_code", start.exit_code ? Json(*start.exit_code) : Json()},
                          {"detail", to_utf8(start.detail)},
                          {"last_lines", to_utf8(start.last_lines)},
                          {"began_at", format_time(start.began_at)},
                          {"ended_at", maybe_time(start.ended_at)},
                          {"life", start.boot_id}};
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

// One of a few words; what is wrong is said with all of them.
template <class Enum>
Enum read_word(FieldReader& reader, std::string_view key, std::optional<Enum> (*parse)(std::string_view),
               Enum otherwise, std::string_view words) {
  const Value* value = reader.value(key);
  if (!value) return otherwise;
  if (const auto parsed = parse(value->text); parsed && value->kind == Value::Kind::string) return *parsed;
  reader.problem(*value, fmt::format("{} cannot be '{}'", key, value->text.substr(0, 100)),
                 fmt::format("it is one of {}", words));
  return otherwise;
}

constexpr std::string_view deallocation_words = "requeue, terminate, task_completion and retained_data";

Duration read_duration(FieldReader& reader, std::string_view key, Duration low, Duration high,
                       Duration otherwise) {
  const Duration read = reader.duration(key, otherwise);
  if (reader.value(key) && (read < low || read > high))
    reader.problem(*reader.value(key),
                   fmt::format("{} should be from {:g} s to {:g} s", key, seconds(low), seconds(high)),
                   fmt::format("{:g}s is the default", seconds(otherwise)));
  return read;
}

std::uint32_t read_count(FieldReader& reader, std::string_view key, std::int64_t high,
                         std::uint32_t otherwise) {
  return static_cast<std::uint32_t>(reader.integer(key, 0, high, otherwise));
}

TimePoint read_time(FieldReader& reader, std::string_view key) {
  const Value* value = reader.value(key);
  if (!value) return {};
  auto time = parse_time(value->text);
  if (time) return *time;
  reader.problem(*value, fmt::format("{} is not a time: {}", key, value->text.substr(0, 100)),
                 "write it like 2026-03-02T10:00:00Z");
  return {};
}

std::optional<TimePoint> read_maybe_time(FieldReader& reader, std::string_view key) {
  return reader.value(key) ? std::optional(read_time(reader, key)) : std::nullopt;
}

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

}  // namespace

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

namespace {

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

std::string format(const NodeView& view) {
  const NodeRecord& node = view.node;
  Json json{
      {"name", node.name},
      {"pool", node.pool},
      {"workspace", node.workspace},
      {"state", to_string(node.state)},
      {"reason", node.reason},
      {"address", node.address},
      {"host", node.host},
      {"local", node.local},
      {"shares_storage", node.shares_storage},
      {"cores", cores_json(node.total.cores)},
      {"memory", node.total.memory},
      {"gpus", node.total.gpus},
      {"gpus_granted", view.gpus_granted},
      {"used",
       {{"cores", cores_json(view.used.cores)}, {"memory", view.used.memory}, {"gpus", view.used.gpus}}},
      {"running", view.running},
      {"notes", node.notes}};
  json.update(node_settings_json(node));
  json["created_at"] = format_time(node.created_at);
  json["changed_at"] = format_time(node.changed_at);
  return dump(json);
}

std::string format_node_settings(const NodeRecord& node) { return dump(node_settings_json(node)); }

namespace {

// A record of before indices were kept: the GPUs of a node that joined count from 0, and a local node had
// none.
void read_gpu_indices(FieldReader& reader, NodeRecord& node) {
  const Value* indices = reader.value("gpu_indices");
  for (std::uint32_t gpu = 0; !indices && !node.local && gpu < node.total.gpus; ++gpu)
    node.gpu_indices.push_back(gpu);
  for (const std::string& text : reader.texts("gpu_indices"))
    node.gpu_indices.push_back(static_cast<std::uint32_t>(std::strtoul(text.c_str(), nullptr, 10)));
  node.total.gpus = static_cast<std::uint32_t>(node.gpu_indices.size());
}

}  // namespace

Result<void> parse_node_settings(std::string_view json, NodeRecord& node) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the stored node", "");
  node.low_priority = reader.boolean("low_priority", false);
  if (reader.value("leaving"))
    node.leaving =
        read_word(reader, "leaving", parse_deallocation, Deallocation::requeue, deallocation_words);
  node.evict_by = read_maybe_time(reader, "evict_by");
  read_gpu_indices(reader, node);
  node.cpu_limit = reader.text("cpu_limit");
  node.cpu_limit_reason = reader.text("cpu_limit_reason");
  node.boot = reader.text("boot");
  read_inside(reader, "start_task", [&](FieldReader& start) {
    node.start.state = read_word(start, "state", parse_start_state, NodeStart::State::none,
                                 "none, waiting, running, succeeded and failed");
    node.start.attempt = read_count(start, "attempt", UINT32_MAX, 0);
    node.start.tries = read_count(start, "tries", UINT32_MAX, 0);
    if (start.value("exit_code"))
      node.start.exit_code = static_cast<int>(start.integer("exit_code", INT32_MIN, INT32_MAX, 0));
    node.start.detail = start.text("detail");
    node.start.last_lines = start.text("last_lines");
    node.start.began_at = read_time(start, "began_at");
    node.start.ended_at = read_maybe_time(start, "ended_at");
    node.start.boot_id = start.text("life");
  });
  if (const Value* steps = reader.value("steps"))
    for (const Value& item : steps->items) {
      FieldReader step(item, "the stored node", "steps");
      node.transitions.push_back(
          {read_word(step, "state", parse_node_state, NodeState::joining, "the states of nodes"),
           read_time(step, "time"), step.text("reason")});
    }
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

Result<PoolRequest> parse_pool_request(std::string_view json) {
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
  if (reader.has("tags")) {
    request.tags.emplace();
    for (auto& [name, value] : reader.text_map("tags")) (*request.tags)[name] = value;
  }
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
