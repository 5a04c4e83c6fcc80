#include "wire/records.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sha256.h"
#include "domain/gang.h"
#include "wire/fields.h"
#include "wire/job_file.h"
#include "wire/json.h"
#include "wire/utf8.h"

namespace slipway::wire {
namespace {

Json time_json(const std::optional<TimePoint>& time) { return time ? Json(format_time(*time)) : Json(); }
template <class T>
Json maybe(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json task_json(const TaskView& view) {
  const TaskRecord& task = view.task;
  return {{"job", to_string(task.ref.job)},
          {"name", task.name},
          {"state", to_string(task.state)},
          {"attempts", task.attempts},
          {"retries_used", task.retries_used},
          {"evictions", task.evictions},
          {"exit_code", maybe(task.exit_code)},
          {"signal", maybe(task.signal)},
          {"reason", task.reason},
          {"not_before", time_json(task.not_before)},
          {"nodes", view.nodes}};
}

// How long a token is to be good for.
std::optional<Duration> read_expires_in(FieldReader& reader, const Value& root) {
  constexpr Duration years_100 = std::chrono::hours(24 * 365 * 100);
  if (!reader.has("expires_in")) return std::nullopt;
  const Duration expires_in = reader.duration("expires_in", Duration(0));
  if (expires_in < std::chrono::seconds(1) || expires_in > years_100)
    reader.problem(root, "expires_in should be from 1 second to 100 years", "give seconds, or text like 30d");
  return expires_in;
}

Json names_json(const std::vector<Member>& members) {
  Json names = Json::array();
  for (std::uint32_t rank = 0; rank < members.size(); ++rank)
    names.push_back(member_name(members[rank], rank));
  return names;
}

Json attempt_json(const AttemptRecord& attempt, const TaskSpec& spec) {
  const auto members = gang_of(spec, static_cast<std::uint32_t>(attempt.nodes.size()));
  const bool named = attempt.rank && *attempt.rank < members.size();
  Json left = Json::array();
  Json gpus = Json::array();
  for (std::size_t n = 0; n < attempt.nodes.size(); ++n) {
    gpus.push_back(attempt.nodes[n].gpus);
    if (attempt.nodes[n].has_left) left.push_back(n);
  }
  return {{"attempt", attempt.key.attempt},
          {"nodes", attempt.node_names()},
          {"gpus", gpus},
          {"left", left},
          {"placed_at", format_time(attempt.placed_at)},
          {"started_at", time_json(attempt.started_at)},
          {"ended_at", time_json(attempt.ended_at)},
          {"end", attempt.end ? Json(to_string(*attempt.end)) : Json()},
          {"exit_code", maybe(attempt.exit_code)},
          {"signal", maybe(attempt.signal)},
          {"rank", maybe(attempt.rank)},
          {"process", named ? Json(member_name(members[*attempt.rank], *attempt.rank)) : Json()},
          {"detail", attempt.detail},
          {"last_lines", wire::to_utf8(attempt.last_lines)},
          {"memory_peak", attempt.use.memory_peak},
          {"cpu_time", seconds(attempt.use.cpu_time)},
          {"processes", members.size()}};
}

}  // namespace

std::string format(const JobRecord& job, const std::vector<ReservedTags>& reserved, const std::string& spec,
                   const std::vector<std::string>& notes) {
  const TaskCounts& counts = job.counts;
  Json json{{"id", to_string(job.id)},
            {"name", job.name},
            {"workspace", job.workspace},
            {"pool", job.pool},
            {"priority", job.priority},
            {"max_parallel_tasks", job.max_parallel_tasks > 0 ? Json(job.max_parallel_tasks) : Json()},
            {"max_nodes", job.max_nodes > 0 ? Json(job.max_nodes) : Json()},
            {"state", to_string(job.state)},
            {"held_by", text_or_null(job.held_by)},
            {"retain", job.retain ? Json(seconds(*job.retain)) : Json()},
            {"pinned", job.is_pinned},
            {"reason", job.reason},
            {"end", job.end ? Json(to_string(*job.end)) : Json()},
            {"exit_code", maybe(job.exit_code)},
            {"submitted_by", job.submitted_by},
            {"source", text_or_null(job.source)},
            {"submitted_at", format_time(job.submitted_at)},
            {"started_at", time_json(job.started_at)},
            {"ended_at", time_json(job.ended_at)},
            {"tasks",
             {{"total", counts.total()},
              {"waiting", counts.waiting},
              {"queued", counts.queued},
              {"active", counts.active},
              {"succeeded", counts.succeeded},
              {"failed", counts.failed},
              {"cancelled", counts.cancelled},
              {"skipped", counts.skipped}}},
            {"evictions", job.evictions},
            {"nodes_lost", job.nodes_lost},
            {"tags", own_tags(job.tags, reserved)}};
  if (!spec.empty()) json["spec"] = Json::parse(spec);
  if (!notes.empty()) json["notes"] = notes;
  return dump(json);
}

std::string format(const TaskView& view) { return dump(task_json(view)); }

std::string format(const TaskView& view, const TaskSpec& spec, const std::vector<AttemptRecord>& attempts) {
  Json json = task_json(view);
  const auto nodes = view.nodes.empty() ? spec.nodes : static_cast<std::uint32_t>(view.nodes.size());
  const std::vector<Member> members = gang_of(spec, nodes);
  json["processes"] = members.size();
  json["process_names"] = names_json(members);
  json["last_lines"] = attempts.empty() ? "" : wire::to_utf8(attempts.back().last_lines);
  TaskSpec shown = spec;
  for (auto& [name, value] : shown.secrets) value.clear();  // only their names
  json["spec"] = Json::parse(format_task_spec(shown));
  json["history"] = Json::array();
  for (const AttemptRecord& attempt : attempts) json["history"].push_back(attempt_json(attempt, spec));
  return dump(json);
}

std::string format(const AttemptRecord& attempt, const TaskSpec& spec) {
  return dump(attempt_json(attempt, spec));
}

std::string format_of_job(const AttemptRecord& attempt, const TaskSpec& spec) {
  const auto index = spec.count ? std::optional(attempt.key.task.index) : std::nullopt;
  Json json{{"task", task_name(spec.name, index)}};
  json.update(attempt_json(attempt, spec));
  return dump(json);
}

std::string format(const EventRecord& event) {
  return dump({{"id", event.id},
               {"time", format_time(event.time)},
               {"kind", event.kind},
               {"workspace", event.workspace},
               {"job", event.job ? Json(to_string(*event.job)) : Json()},
               {"task", text_or_null(event.task)},
               {"attempt", maybe(event.attempt)},
               {"node", text_or_null(event.node)},
               {"pool", text_or_null(event.pool)},
               {"text", event.text}});
}

std::string format(const QueueLine& line) {
  return dump({{"place", line.place},
               {"job", to_string(line.job)},
               {"name", line.name},
               {"pool", line.pool},
               {"user", line.user},
               {"priority", line.priority},
               {"tasks", line.tasks},
               {"nodes", line.nodes},
               {"per_node",
                {{"cores", cores_json(line.per_node.cores)},
                 {"memory", line.per_node.memory},
                 {"gpus", line.per_node.gpus}}},
               {"since", format_time(line.since)},
               {"reason", line.reason}});
}

std::string format(const TokenRecord& token, const std::string& secret) {
  Json json{{"id", token.id},
            {"name", token.name},
            {"workspace", token.workspace},
            {"role", to_string(token.role)},
            {"scope", to_string(token.scope)},
            {"created_at", format_time(token.created_at)},
            {"expires_at", time_json(token.expires_at)},
            {"last_used_at", time_json(token.last_used_at)}};
  if (!token.user.empty()) json["user"] = token.user;
  if (!token.pool.empty()) json["pool"] = token.pool;
  if (!token.author.empty()) json["author"] = token.author;
  if (!token.node.empty()) json["node"] = token.node;
  if (token.uses_left) json["uses_left"] = *token.uses_left;
  if (!secret.empty()) json["token"] = secret;
  return dump(json);
}

std::string format_list(const std::vector<std::string>& items, const std::optional<std::string>& next) {
  std::string text = "{\"items\":[";
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += ',';
    text += items[i];
  }
  return text + "],\"next\":" + (next ? quote(*next) : "null") + "}";
}

std::string format_problem(int status, const Error& error) {
  static constexpr std::string_view codes[] = {"invalid",     "not_found", "conflict", "denied",
                                               "unavailable", "too_large", "internal"};
  Json json{
      {"status", status}, {"code", codes[static_cast<std::size_t>(error.code)]}, {"detail", error.what}};
  if (!error.hint.empty()) json["hint"] = error.hint;
  return dump(json);
}

std::string format_object(const std::vector<std::pair<std::string, std::string>>& fields) {
  std::string text = "{";
  for (const auto& [name, value] : fields) {
    if (text.size() > 1) text += ',';
    text += quote(name) + ":" + value;
  }
  return text + "}";
}

Result<TokenRequest> parse_token_request(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  TokenRequest request;
  request.name = reader.text("name");
  request.workspace = reader.text("workspace");
  const std::string role = reader.text("role", "member");
  if (const auto parsed = parse_role(role))
    request.role = *parsed;
  else
    reader.problem(*root, fmt::format("there is no role '{}'", role),
                   "the roles are admin, member, viewer and node");
  const std::string scope = reader.text("scope", "admin");
  if (const auto parsed = parse_token_scope(scope))
    request.scope = *parsed;
  else
    reader.problem(*root, fmt::format("there is no scope '{}'", scope),
                   "the scopes are read, submit and admin");
  request.pool = reader.text("pool");
  request.user = reader.text("user");
  request.expires_in = read_expires_in(reader, *root);
  if (request.role == Role::node &&
      (request.scope != TokenScope::admin || !request.pool.empty() || !request.user.empty()))
    reader.problem(*root, "a node token has no scope, no pool and no user", "leave them out");
  if (!request.pool.empty() && lowered(request.role, request.scope) == Role::admin)
    reader.problem(*root, "a token for one pool cannot be an admin's",
                   "lower it: \"scope\": \"submit\", or \"role\": \"member\"");
  constexpr std::uint32_t uses_max = 100'000;
  const bool counted = reader.has("uses");
  const auto uses = reader.integer("uses", 1, uses_max, 1);
  if (request.role == Role::node)
    request.uses = static_cast<std::uint32_t>(uses);
  else if (counted)
    reader.problem(*root, fmt::format("a {} token is not used up: only a node token has uses", role),
                   "leave uses out");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return request;
}

Result<std::optional<Duration>> parse_rotate_request(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  const std::optional<Duration> expires_in = read_expires_in(reader, *root);
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return expires_in;
}

Result<std::string> parse_certificate_request(std::string_view json) {
  constexpr std::size_t size_max = 16 * 1024;
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  std::string request = reader.text("request");
  if (request.empty() || request.size() > size_max)
    reader.problem(*root, "there is no certificate request of up to 16 KiB", "give it as PEM in request");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return request;
}

Result<bool> parse_stop_request(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  const bool keep_running = reader.boolean("keep_running", false);
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return keep_running;
}

Result<std::vector<std::string>> parse_hashes(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  std::vector<std::string> hashes = reader.texts("hashes");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  for (const std::string& hash : hashes)
    if (!is_sha256_hex(hash))
      return fail(ErrorCode::invalid,
                  fmt::format("'{}' is not a SHA-256 in hexadecimal", hash.substr(0, 100)));
  return hashes;
}

}  // namespace slipway::wire
