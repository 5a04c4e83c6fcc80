// What agents send: Hello and Report.
#include <fmt/format.h>

#include <utility>

#include "wire/protocol.h"
#include "wire/protocol_fields.h"
#include "wire/value.h"

namespace slipway::wire {
namespace {

Json keys_json(const std::vector<WorkKey>& keys) {
  Json list = Json::array();
  for (const WorkKey& key : keys) list.push_back(to_string(key));
  return list;
}

Json to_json(const Resources& value) {
  return {{"cores", value.cores}, {"memory", value.memory}, {"gpus", value.gpus}};
}

Json to_json(const ProcessStarted& value) {
  Json json{
      {"key", to_string(value.key)}, {"rank", value.rank}, {"pid", value.pid}, {"time", micros(value.time)}};
  if (value.age) json["age"] = value.age->count();
  return json;
}
ProcessStarted started_from(const Json& json) {
  ProcessStarted value{key_at(json.at("key")), integer<std::uint32_t>(json.at("rank")),
                       integer<std::int64_t>(json.at("pid")), time_at(json, "time"), std::nullopt};
  if (json.contains("age")) value.age = duration_at(json, "age");
  return value;
}

Json to_json(const ProcessEnded& value) {
  Json json{{"key", to_string(value.key)},
            {"rank", value.rank},
            {"kind", to_string(value.kind)},
            {"code", value.code},
            {"users_fault", value.counts_against_retries},
            {"detail", to_utf8(value.detail)},
            {"last_lines", to_utf8(value.last_lines)},
            {"outputs_problem", to_utf8(value.outputs_problem)},
            {"memory_peak", value.use.memory_peak},
            {"cpu_time", value.use.cpu_time.count()},
            {"started_at", micros(value.started_at)},
            {"ended_at", micros(value.ended_at)}};
  if (value.marked_at) json["marked_at"] = micros(*value.marked_at);
  return json;
}
ProcessEnded ended_from(const Json& json) {
  ProcessEnded value;
  value.key = key_at(json.at("key"));
  value.rank = integer<std::uint32_t>(json.at("rank"));
  const auto kind = parse_process_end_kind(json.at("kind").get_ref<const std::string&>());
  if (!kind) throw std::invalid_argument("unknown kind of end");
  value.kind = *kind;
  value.code = integer<int>(json.at("code"));
  value.counts_against_retries = json.at("users_fault").get<bool>();
  value.detail = json.at("detail").get<std::string>();
  value.last_lines = json.value("last_lines", "");
  value.outputs_problem = json.value("outputs_problem", "");
  if (json.contains("marked_at")) value.marked_at = time_at(json, "marked_at");
  value.use.memory_peak = integer<Bytes>(json.at("memory_peak"));
  value.use.cpu_time = duration_at(json, "cpu_time");
  value.started_at = time_at(json, "started_at");
  value.ended_at = time_at(json, "ended_at");
  return value;
}

Json to_json(const Prepared& value) {
  Json json{{"key", to_string(value.key)},
            {"ports", value.ports},
            {"secret", value.secret},
            {"problem", to_utf8(value.problem)}};
  if (value.exit_code) json["exit_code"] = *value.exit_code;
  if (!value.last_lines.empty()) json["last_lines"] = to_utf8(value.last_lines);
  if (value.is_permanent) json["permanent"] = true;
  return json;
}
Prepared prepared_from(const Json& json) {
  Prepared value;
  value.key = key_at(json.at("key"));
  for (const Json& port : json.at("ports")) value.ports.push_back(integer<std::uint16_t>(port));
  value.secret = json.at("secret").get<std::string>();
  value.problem = json.at("problem").get<std::string>();
  if (json.contains("exit_code")) value.exit_code = integer<int>(json.at("exit_code"));
  value.last_lines = json.value("last_lines", "");
  value.is_permanent = json.value("permanent", false);
  return value;
}

template <class T>
Json list_json(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(to_json(value));
  return list;
}

std::string text_of(const Hello& value) {
  Json json{{"type", "hello"},
            {"name", value.name},
            {"pool", value.pool},
            {"instance", value.instance},
            {"address", value.address},
            {"host", value.host},
            {"version", value.version},
            {"local", value.local},
            {"shares_storage", value.shares_storage},
            {"total", to_json(value.total)},
            {"notes", value.notes},
            {"engines", value.engines},
            {"boot", value.boot},
            {"cpu_limit", value.cpu_limit},
            {"cpu_limit_reason", value.cpu_limit_reason},
            {"waiting", keys_json(value.waiting)},
            {"running", list_json(value.running)},
            {"ended", list_json(value.ended)},
            {"prepared", list_json(value.prepared)}};
  if (value.gpu_indices) json["gpu_indices"] = *value.gpu_indices;
  if (!value.seen.service.empty())
    json["seen"] = {{"service", value.seen.service},
                    {"turn", value.seen.number},
                    {"proof", value.seen.proof},
                    {"run", value.seen.run}};
  return dump(json);
}
Hello hello_from(const Json& json) {
  Hello value;
  value.name = json.at("name").get<std::string>();
  value.pool = json.at("pool").get<std::string>();
  value.instance = json.at("instance").get<std::string>();
  value.address = json.at("address").get<std::string>();
  value.host = json.at("host").get<std::string>();
  value.version = json.at("version").get<std::string>();
  value.local = json.at("local").get<bool>();
  value.shares_storage = json.at("shares_storage").get<bool>();
  value.total = resources_from(json.at("total"));
  value.notes = json.at("notes").get<std::vector<std::string>>();
  value.boot = json.value("boot", "");
  value.cpu_limit = json.value("cpu_limit", "");
  value.cpu_limit_reason = json.value("cpu_limit_reason", "");
  if (json.contains("gpu_indices")) {
    value.gpu_indices.emplace();
    for (const Json& gpu : json.at("gpu_indices")) value.gpu_indices->push_back(integer<std::uint32_t>(gpu));
  }
  if (json.contains("engines")) value.engines = json.at("engines").get<std::vector<std::string>>();
  value.waiting = keys_from(json.at("waiting"));
  for (const Json& item : json.at("running")) value.running.push_back(started_from(item));
  for (const Json& item : json.at("ended")) value.ended.push_back(ended_from(item));
  for (const Json& item : json.at("prepared")) value.prepared.push_back(prepared_from(item));
  if (json.contains("seen"))
    value.seen = {json.at("seen").at("service").get<std::string>(),
                  integer<std::uint64_t>(json.at("seen").at("turn")),
                  json.at("seen").at("proof").get<std::string>(), json.at("seen").value("run", "")};
  return value;
}

void put(std::string& out, const ProcessStarted& value) {
  fmt::format_to(Out(out), R"({{"key":"{}","rank":{},"pid":{},"time":{}}})", to_string(value.key), value.rank,
                 value.pid, micros(value.time));
}
void put(std::string& out, const ProcessEnded& value) {
  fmt::format_to(
      Out(out),
      R"({{"key":"{}","rank":{},"kind":"{}","code":{},"users_fault":{},"memory_peak":{},"cpu_time":{},"started_at":{},"ended_at":{})",
      to_string(value.key), value.rank, to_string(value.kind), value.code, value.counts_against_retries,
      value.use.memory_peak, value.use.cpu_time.count(), micros(value.started_at), micros(value.ended_at));
  put_field(out, "detail", value.detail);
  if (!value.last_lines.empty()) put_field(out, "last_lines", value.last_lines);
  if (value.marked_at) fmt::format_to(Out(out), R"(,"marked_at":{})", micros(*value.marked_at));
  if (!value.outputs_problem.empty()) put_field(out, "outputs_problem", value.outputs_problem);
  out += '}';
}

std::string text_of(const Report& value) {
  std::string out = fmt::format(R"({{"type":"report","number":{})", value.number);
  put_list(out, "started", value.started, [&](const ProcessStarted& started) { put(out, started); });
  put_list(out, "ended", value.ended, [&](const ProcessEnded& ended) { put(out, ended); });
  if (!value.prepared.empty()) out += ",\"prepared\":" + dump(list_json(value.prepared));
  if (value.use) {
    const MachineUse& use = *value.use;
    fmt::format_to(Out(out), R"(,"use":[{},{},{},{},{},{},{},{},{}])", use.cpu, use.memory, use.disk,
                   use.disk_read, use.disk_written, use.disk_reads, use.disk_writes, use.network_in,
                   use.network_out);
  }
  if (!value.stalled.empty())
    put_list(out, "silent", value.stalled, [&](const auto& one) {
      fmt::format_to(Out(out), R"(["{}",{}])", to_string(one.first), one.second);
    });
  if (!value.removed.empty())
    put_list(out, "removed", value.removed, [&](const std::string& one) { out += quote(one); });
  return out + "}";
}
Report report_from(const Json& json) {
  Report value;
  value.number = integer<std::uint64_t>(json.at("number"));
  for (const Json& item : json.at("started")) value.started.push_back(started_from(item));
  for (const Json& item : json.at("ended")) value.ended.push_back(ended_from(item));
  if (json.contains("prepared"))
    for (const Json& item : json.at("prepared")) value.prepared.push_back(prepared_from(item));
  if (json.contains("use")) {
    const Json& use = json.at("use");
    const auto number = [&](std::size_t index) { return use.at(index).get<double>(); };
    value.use = MachineUse{number(0), number(1), number(2), number(3), number(4),
                           number(5), number(6), number(7), number(8)};
  }
  if (json.contains("silent"))
    for (const Json& item : json.at("silent"))
      value.stalled.emplace_back(key_at(item.at(0)), item.at(1).get<bool>());
  if (json.contains("removed")) value.removed = json.at("removed").get<std::vector<std::string>>();
  return value;
}

}  // namespace

std::string format(const FromAgent& value) {
  return std::visit([](const auto& one) { return text_of(one); }, value);
}

Result<FromAgent> parse_from_agent(std::string_view text) {
  return guarded<FromAgent>("a message of a node", text, [](const Json& json) -> Result<FromAgent> {
    const auto& type = json.at("type").get_ref<const std::string&>();
    if (type == "hello") return hello_from(json);
    if (type == "report") return report_from(json);
    return fail(ErrorCode::invalid, fmt::format("a node sent a message of unknown type '{}'", type));
  });
}

}  // namespace slipway::wire
