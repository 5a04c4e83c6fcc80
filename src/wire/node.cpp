// Nodes as JSON: as the API shows them, and what the store keeps of them beside its own columns.
#include <cstdlib>

#include "wire/json.h"
#include "wire/pool.h"
#include "wire/pool_fields.h"
#include "wire/records.h"
#include "wire/utf8.h"

namespace slipway::wire {
namespace {

Json maybe_time(const std::optional<TimePoint>& time) { return time ? Json(format_time(*time)) : Json(); }

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

}  // namespace

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

}  // namespace slipway::wire
