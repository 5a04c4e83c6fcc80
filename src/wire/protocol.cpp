#include "wire/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/encoding.h"
#include "wire/json_tree.h"
#include "wire/utf8.h"

// Messages are objects with one letter-short "type"; times are microseconds since 1970, durations
// microseconds. What a process or a user wrote (commands, environments, details) may be any bytes and is made
// UTF-8 before it is put in.
namespace slipway {

// Found by argument-dependent lookup from nlohmann's conversions, hence in the namespace of the types.
using wire::Json;

namespace {

std::int64_t micros(TimePoint time) { return time.time_since_epoch().count(); }
TimePoint time_at(const Json& json, const char* key) {
  return TimePoint(Duration(wire::integer<std::int64_t>(json.at(key))));
}
Duration duration_at(const Json& json, const char* key) {
  return Duration(wire::integer<std::int64_t>(json.at(key)));
}

WorkKey key_at(const Json& json) {
  const auto key = parse_work_key(json.get_ref<const std::string&>());
  if (!key) throw std::invalid_argument("an attempt key is malformed");
  return *key;
}

AttemptKey attempt_at(const Json& json) {
  const WorkKey key = key_at(json);
  const auto* attempt = std::get_if<AttemptKey>(&key);
  if (!attempt) throw std::invalid_argument("the key is not that of an attempt");
  return *attempt;
}

Json keys_json(const std::vector<WorkKey>& keys) {
  Json list = Json::array();
  for (const WorkKey& key : keys) list.push_back(to_string(key));
  return list;
}

std::vector<WorkKey> keys_from(const Json& list) {
  std::vector<WorkKey> keys;
  for (const Json& item : list) keys.push_back(key_at(item));
  return keys;
}

Json to_json(const Resources& value) {
  return {{"cores", value.cores}, {"memory", value.memory}, {"gpus", value.gpus}};
}
Resources resources_from(const Json& json) {
  return {wire::integer<Millicores>(json.at("cores")), wire::integer<Bytes>(json.at("memory")),
          wire::integer<std::uint32_t>(json.at("gpus"))};
}

Json to_json(const ProcessStarted& value) {
  Json json{
      {"key", to_string(value.key)}, {"rank", value.rank}, {"pid", value.pid}, {"time", micros(value.time)}};
  if (value.age) json["age"] = value.age->count();
  return json;
}
ProcessStarted started_from(const Json& json) {
  ProcessStarted value{key_at(json.at("key")), wire::integer<std::uint32_t>(json.at("rank")),
                       wire::integer<std::int64_t>(json.at("pid")), time_at(json, "time"), std::nullopt};
  if (json.contains("age")) value.age = duration_at(json, "age");
  return value;
}

Json to_json(const ProcessEnded& value) {
  Json json{{"key", to_string(value.key)},
            {"rank", value.rank},
            {"kind", to_string(value.kind)},
            {"code", value.code},
            {"users_fault", value.counts_against_retries},
            {"detail", wire::to_utf8(value.detail)},
            {"last_lines", wire::to_utf8(value.last_lines)},
            {"outputs_problem", wire::to_utf8(value.outputs_problem)},
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
  value.rank = wire::integer<std::uint32_t>(json.at("rank"));
  const auto kind = parse_process_end_kind(json.at("kind").get_ref<const std::string&>());
  if (!kind) throw std::invalid_argument("unknown kind of end");
  value.kind = *kind;
  value.code = wire::integer<int>(json.at("code"));
  value.counts_against_retries = json.at("users_fault").get<bool>();
  value.detail = json.at("detail").get<std::string>();
  value.last_lines = json.value("last_lines", "");
  value.outputs_problem = json.value("outputs_problem", "");
  if (json.contains("marked_at")) value.marked_at = time_at(json, "marked_at");
  value.use.memory_peak = wire::integer<Bytes>(json.at("memory_peak"));
  value.use.cpu_time = duration_at(json, "cpu_time");
  value.started_at = time_at(json, "started_at");
  value.ended_at = time_at(json, "ended_at");
  return value;
}

using Variables = std::vector<std::pair<std::string, std::string>>;

Variables variables_from(const Json& json) {
  Variables variables;
  for (const Json& item : json) {
    const auto& text = item.get_ref<const std::string&>();
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) throw std::invalid_argument("an environment variable has no value");
    variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

ProcessStart process_from(const Json& json) {
  ProcessStart value;
  value.rank = wire::integer<std::uint32_t>(json.at("rank"));
  value.argv = json.at("argv").get<std::vector<std::string>>();
  value.environment = variables_from(json.at("environment"));
  if (json.contains("secrets")) value.secrets = variables_from(json.at("secrets"));
  if (json.contains("secret_files"))
    for (const auto& [variable, content] : json.at("secret_files").items()) {
      auto bytes = parse_base64(content.get<std::string>());
      if (!bytes) throw std::invalid_argument("the content of a secret is not base64");
      value.secret_files.emplace_back(variable, std::move(*bytes));
    }
  value.problem = json.value("problem", "");
  value.log_out = json.value("log_out", "");
  value.log_err = json.value("log_err", "");
  value.stdout_name = json.at("stdout").get<std::string>();
  value.stderr_name = json.at("stderr").get<std::string>();
  value.wd_name = json.at("wd").get<std::string>();
  for (const Json& gpu : json.at("gpus")) value.gpus.push_back(wire::integer<std::uint32_t>(gpu));
  value.resources = resources_from(json.at("resources"));
  if (json.contains("listens"))
    for (const Json& port : json.at("listens")) value.listens.push_back(wire::integer<std::uint16_t>(port));
  return value;
}

using Files = std::vector<std::pair<std::string, std::string>>;

Files files_from(const Json& json) {
  Files files;
  for (const auto& [name, content] : json.items()) files.emplace_back(name, content.get<std::string>());
  return files;
}

Json to_json(const View& view) {
  Json mounts = Json::array();
  for (const View::Mount& mount : view.mounts) {
    Json& json = mounts.emplace_back(Json{{"at", mount.at},
                                          {"kind", to_string(mount.kind)},
                                          {"source", mount.source},
                                          {"read_only", mount.read_only}});
    if (!mount.command.empty()) json["command"] = mount.command;
    if (!mount.url.empty()) json.update({{"url", mount.url}, {"key", mount.key}, {"pulls", mount.pulls}});
  }
  Json json{
      {"root", view.root}, {"tree", view.tree}, {"places", std::move(mounts)}, {"folders", view.folders}};
  for (const auto& [path, text] : view.texts) json["texts"].push_back({path, wire::to_utf8(text)});
  if (!view.logs.empty()) json.update({{"logs", view.logs}, {"journal", view.journal}});
  return json;
}
View view_from(const Json& json) {
  View view;
  if (json.is_null()) return view;
  view.root = json.at("root").get<std::string>();
  view.tree = json.at("tree").get<std::string>();
  for (const Json& item : json.at("places")) {
    View::Mount& mount = view.mounts.emplace_back();
    mount.at = item.at("at").get<std::string>();
    const auto kind = parse_mount_kind(item.at("kind").get_ref<const std::string&>());
    if (!kind) throw std::invalid_argument("unknown kind of mount");
    mount.kind = *kind;
    mount.source = item.at("source").get<std::string>();
    mount.read_only = item.at("read_only").get<bool>();
    mount.command = item.value("command", "");
    mount.url = item.value("url", "");
    mount.key = item.value("key", "");
    mount.pulls = item.value("pulls", true);
  }
  view.folders = json.at("folders").get<std::vector<std::string>>();
  if (json.contains("texts"))
    for (const Json& text : json.at("texts"))
      view.texts.emplace_back(text.at(0).get<std::string>(), text.at(1).get<std::string>());
  view.logs = json.value("logs", "");
  view.journal = json.value("journal", "");
  return view;
}

std::optional<RunAs> run_as_from(const Json& json) {
  const auto found = json.find("run_as");
  if (found == json.end()) return std::nullopt;
  return RunAs{wire::integer<std::uint32_t>(found->at(0)), wire::integer<std::uint32_t>(found->at(1))};
}

PrepareOrder prepare_from(const Json& json) {
  PrepareOrder value;
  value.key = key_at(json.at("key"));
  value.folder = json.at("folder").get<std::string>();
  value.source = json.at("source").get<std::string>();
  value.folders = json.at("folders").get<std::vector<std::string>>();
  value.files = files_from(json.at("files"));
  value.ports = wire::integer<std::uint32_t>(json.at("ports"));
  if (json.contains("ports_from")) value.ports_from = wire::integer<std::uint16_t>(json.at("ports_from"));
  if (json.contains("view")) value.view = view_from(json.at("view"));
  value.run_as = run_as_from(json);
  if (json.contains("preparation"))
    for (const Json& item : json.at("preparation")) value.preparation.push_back(process_from(item));
  if (json.contains("lease")) value.lease = duration_at(json, "lease");
  if (json.contains("stop_grace")) value.stop_grace = duration_at(json, "stop_grace");
  return value;
}

Json to_json(const Prepared& value) {
  Json json{{"key", to_string(value.key)},
            {"ports", value.ports},
            {"secret", value.secret},
            {"problem", wire::to_utf8(value.problem)}};
  if (value.exit_code) json["exit_code"] = *value.exit_code;
  if (!value.last_lines.empty()) json["last_lines"] = wire::to_utf8(value.last_lines);
  if (value.is_permanent) json["permanent"] = true;
  return json;
}
Prepared prepared_from(const Json& json) {
  Prepared value;
  value.key = key_at(json.at("key"));
  for (const Json& port : json.at("ports")) value.ports.push_back(wire::integer<std::uint16_t>(port));
  value.secret = json.at("secret").get<std::string>();
  value.problem = json.at("problem").get<std::string>();
  if (json.contains("exit_code")) value.exit_code = wire::integer<int>(json.at("exit_code"));
  value.last_lines = json.value("last_lines", "");
  value.is_permanent = json.value("permanent", false);
  return value;
}

StartOrder start_from(const Json& json) {
  StartOrder value;
  value.key = key_at(json.at("key"));
  value.folder = json.at("folder").get<std::string>();
  value.shared = json.at("shared").get<std::string>();
  value.workdir = json.at("workdir").get<std::string>();
  value.source = json.at("source").get<std::string>();
  value.checkpoints = json.at("checkpoints").get<std::string>();
  if (json.contains("files")) value.files = files_from(json.at("files"));
  value.stop_grace = duration_at(json, "stop_grace");
  if (json.contains("silence")) value.stall_timeout = duration_at(json, "silence");
  if (json.contains("wall_time_max")) value.wall_time_max = duration_at(json, "wall_time_max");
  if (json.contains("lease")) value.lease = duration_at(json, "lease");
  value.prefetched = json.at("behind").get<bool>();
  value.cpu_limit = json.value("cpu_limit", true);
  value.pids = json.value("pids", pids_usual);
  for (const Json& item : json.at("processes")) value.processes.push_back(process_from(item));
  if (json.contains("view")) value.view = view_from(json.at("view"));
  value.run_as = run_as_from(json);
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
  return wire::dump(json);
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
    for (const Json& gpu : json.at("gpu_indices"))
      value.gpu_indices->push_back(wire::integer<std::uint32_t>(gpu));
  }
  if (json.contains("engines")) value.engines = json.at("engines").get<std::vector<std::string>>();
  value.waiting = keys_from(json.at("waiting"));
  for (const Json& item : json.at("running")) value.running.push_back(started_from(item));
  for (const Json& item : json.at("ended")) value.ended.push_back(ended_from(item));
  for (const Json& item : json.at("prepared")) value.prepared.push_back(prepared_from(item));
  if (json.contains("seen"))
    value.seen = {json.at("seen").at("service").get<std::string>(),
                  wire::integer<std::uint64_t>(json.at("seen").at("turn")),
                  json.at("seen").at("proof").get<std::string>(), json.at("seen").value("run", "")};
  return value;
}

// Orders and reports go with every task. They are written straight into text: building a tree of values first
// costs several times as much as all the rest of sending them.
using Out = std::back_insert_iterator<std::string>;

bool is_plain(char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }

void put(std::string& out, std::string_view text) {
  if (!std::all_of(text.begin(), text.end(), is_plain)) {
    out += wire::dump(Json(text));
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

template <class List, class Put>
void put_list(std::string& out, std::string_view name, const List& list, Put put_one) {
  fmt::format_to(Out(out), ",\"{}\":[", name);
  bool first = true;
  for (const auto& one : list) {
    if (!std::exchange(first, false)) out += ',';
    put_one(one);
  }
  out += ']';
}
void put_texts(std::string& out, std::string_view name, const std::vector<std::string>& texts) {
  put_list(out, name, texts, [&](const std::string& text) { put(out, text); });
}
void put_field(std::string& out, std::string_view name, std::string_view text) {
  fmt::format_to(Out(out), ",\"{}\":", name);
  put(out, text);
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
void put(std::string& out, const ProcessStart& value) {
  const Resources& own = value.resources;
  fmt::format_to(Out(out), R"({{"rank":{},"gpus":[{}],"resources":{{"cores":{},"memory":{},"gpus":{}}})",
                 value.rank, fmt::join(value.gpus, ","), own.cores, own.memory, own.gpus);
  if (!value.listens.empty()) fmt::format_to(Out(out), R"(,"listens":[{}])", fmt::join(value.listens, ","));
  put_texts(out, "argv", value.argv);
  put_list(out, "environment", value.environment,
           [&](const auto& variable) { put(out, variable.first + "=" + variable.second); });
  put_field(out, "stdout", value.stdout_name);
  put_field(out, "stderr", value.stderr_name);
  put_field(out, "wd", value.wd_name);
  if (!value.secrets.empty())
    put_list(out, "secrets", value.secrets,
             [&](const auto& variable) { put(out, variable.first + "=" + variable.second); });
  if (!value.secret_files.empty()) {  // in base64, as they may be any bytes
    Json files = Json::object();
    for (const auto& [variable, content] : value.secret_files) files[variable] = format_base64(content);
    out += ",\"secret_files\":" + wire::dump(files);
  }
  if (!value.problem.empty()) put_field(out, "problem", value.problem);
  if (!value.log_out.empty()) put_field(out, "log_out", value.log_out);
  if (!value.log_err.empty()) put_field(out, "log_err", value.log_err);
  out += '}';
}
void put_view(std::string& out, const View& view) {
  if (!view.root.empty()) out += ",\"view\":" + wire::dump(to_json(view));
}
void put_files(std::string& out, const Files& files) {
  Json json = Json::object();
  for (const auto& [name, content] : files) json[name] = wire::to_utf8(content);
  out += ",\"files\":" + wire::dump(json);
}
void put_run_as(std::string& out, const std::optional<RunAs>& run_as) {
  if (run_as) fmt::format_to(Out(out), R"(,"run_as":[{},{}])", run_as->uid, run_as->gid);
}
void put(std::string& out, const PrepareOrder& value) {
  fmt::format_to(Out(out), R"({{"key":"{}","ports":{})", to_string(value.key), value.ports);
  put_field(out, "folder", value.folder);
  put_field(out, "source", value.source);
  put_texts(out, "folders", value.folders);
  put_files(out, value.files);
  if (value.ports_from > 0) fmt::format_to(Out(out), R"(,"ports_from":{})", value.ports_from);
  put_view(out, value.view);
  if (value.lease.count() > 0) fmt::format_to(Out(out), R"(,"lease":{})", value.lease.count());
  if (!value.preparation.empty()) {
    fmt::format_to(Out(out), R"(,"stop_grace":{})", value.stop_grace.count());
    put_list(out, "preparation", value.preparation, [&](const ProcessStart& process) { put(out, process); });
  }
  put_run_as(out, value.run_as);
  out += '}';
}
void put(std::string& out, const StartOrder& value) {
  fmt::format_to(Out(out), R"({{"key":"{}","stop_grace":{},"behind":{})", to_string(value.key),
                 value.stop_grace.count(), value.prefetched);
  put_field(out, "folder", value.folder);
  put_field(out, "shared", value.shared);
  put_field(out, "workdir", value.workdir);
  put_field(out, "source", value.source);
  put_field(out, "checkpoints", value.checkpoints);
  if (value.stall_timeout.count() > 0)
    fmt::format_to(Out(out), R"(,"silence":{})", value.stall_timeout.count());
  if (value.wall_time_max.count() > 0)
    fmt::format_to(Out(out), R"(,"wall_time_max":{})", value.wall_time_max.count());
  if (value.lease.count() > 0) fmt::format_to(Out(out), R"(,"lease":{})", value.lease.count());
  if (!value.cpu_limit) out += R"(,"cpu_limit":false)";
  put_run_as(out, value.run_as);
  if (value.pids != pids_usual) fmt::format_to(Out(out), R"(,"pids":{})", value.pids);
  if (!value.files.empty()) put_files(out, value.files);
  put_list(out, "processes", value.processes, [&](const ProcessStart& process) { put(out, process); });
  put_view(out, value.view);
  out += '}';
}

std::string text_of(const Report& value) {
  std::string out = fmt::format(R"({{"type":"report","number":{})", value.number);
  put_list(out, "started", value.started, [&](const ProcessStarted& started) { put(out, started); });
  put_list(out, "ended", value.ended, [&](const ProcessEnded& ended) { put(out, ended); });
  if (!value.prepared.empty()) out += ",\"prepared\":" + wire::dump(list_json(value.prepared));
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
    put_list(out, "removed", value.removed, [&](const std::string& one) { out += wire::quote(one); });
  return out + "}";
}
Report report_from(const Json& json) {
  Report value;
  value.number = wire::integer<std::uint64_t>(json.at("number"));
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

std::string text_of(const Welcome& value) {
  return wire::dump({{"type", "welcome"},
                     {"node", value.node.value()},
                     {"heartbeat", value.heartbeat.count()},
                     {"silence_max", value.heartbeat_timeout.count()},
                     {"service", value.service}});
}
std::string text_of(const Refused& value) {
  return wire::dump({{"type", "refused"}, {"reason", value.reason}, {"final", value.final}});
}
std::string text_of(const Orders& value) {
  std::string out = fmt::format(R"({{"type":"orders","number":{},"received":{},"turn":{},"quit":{})",
                                value.number, value.received, value.turn, value.quit);
  put_field(out, "turn_proof", value.turn_proof);
  put_field(out, "turn_run", value.turn_run);
  if (!value.prepare.empty())
    put_list(out, "prepare", value.prepare, [&](const PrepareOrder& prepare) { put(out, prepare); });
  if (!value.files.empty())
    put_list(out, "files", value.files, [&](const FilesOrder& order) {
      fmt::format_to(Out(out), R"({{"key":"{}")", to_string(order.key));
      put_field(out, "folder", order.folder);
      put_files(out, order.files);
      out += '}';
    });
  put_list(out, "start", value.start, [&](const StartOrder& start) { put(out, start); });
  put_list(out, "stop", value.stop, [&](const StopOrder& stop) {
    fmt::format_to(Out(out), R"({{"key":"{}","grace":{})", to_string(stop.key), stop.grace.count());
    if (!stop.notice.empty()) {
      put_field(out, "folder", stop.folder);
      put_field(out, "notice", stop.notice);
    }
    if (stop.outputs_within)
      fmt::format_to(Out(out), R"(,"outputs_within":{})", stop.outputs_within->count());
    out += '}';
  });
  put_list(out, "forget", value.forget,
           [&](const WorkKey& key) { fmt::format_to(Out(out), "\"{}\"", to_string(key)); });
  if (!value.remove.empty())
    put_list(out, "remove", value.remove, [&](const std::string& one) { out += wire::quote(one); });
  return out + "}";
}
Orders orders_from(const Json& json) {
  Orders value;
  value.number = wire::integer<std::uint64_t>(json.at("number"));
  if (json.contains("prepare"))
    for (const Json& item : json.at("prepare")) value.prepare.push_back(prepare_from(item));
  if (json.contains("files"))
    for (const Json& item : json.at("files"))
      value.files.push_back(
          {attempt_at(item.at("key")), item.at("folder").get<std::string>(), files_from(item.at("files"))});
  for (const Json& item : json.at("start")) value.start.push_back(start_from(item));
  for (const Json& item : json.at("stop")) {
    StopOrder& stop = value.stop.emplace_back();
    stop.key = key_at(item.at("key"));
    stop.grace = duration_at(item, "grace");
    stop.folder = item.value("folder", "");
    stop.notice = item.value("notice", "");
    if (item.contains("outputs_within")) stop.outputs_within = duration_at(item, "outputs_within");
  }
  value.forget = keys_from(json.at("forget"));
  value.quit = json.at("quit").get<bool>();
  if (json.contains("received")) value.received = wire::integer<std::uint64_t>(json.at("received"));
  if (json.contains("turn")) value.turn = wire::integer<std::uint64_t>(json.at("turn"));
  value.turn_proof = json.value("turn_proof", "");
  value.turn_run = json.value("turn_run", "");
  if (json.contains("remove")) value.remove = json.at("remove").get<std::vector<std::string>>();
  return value;
}

std::string_view kind_name(SnapshotKind kind) {
  return kind == SnapshotKind::file ? "file" : kind == SnapshotKind::folder ? "folder" : "link";
}

// Runs a reader of outside JSON; whatever it throws is a protocol error of the sender.
template <class T, class Read>
Result<T> guarded(std::string_view what, std::string_view text, Read read) {
  try {
    return read(wire::parse_tree(text));
  } catch (const std::exception& error) {
    return fail(ErrorCode::invalid, fmt::format("{} is malformed: {}", what, wire::to_utf8(error.what())));
  }
}

}  // namespace

namespace wire {

std::string format(const FromAgent& value) {
  return std::visit([](const auto& one) { return text_of(one); }, value);
}
std::string format(const ToAgent& value) {
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

Result<ToAgent> parse_to_agent(std::string_view text) {
  return guarded<ToAgent>("a message of the service", text, [](const Json& json) -> Result<ToAgent> {
    const auto& type = json.at("type").get_ref<const std::string&>();
    if (type == "welcome")
      return Welcome{NodeId{wire::integer<std::uint64_t>(json.at("node"))}, duration_at(json, "heartbeat"),
                     duration_at(json, "silence_max"), json.value("service", "")};
    if (type == "refused") return Refused{json.at("reason").get<std::string>(), json.at("final").get<bool>()};
    if (type == "orders") return orders_from(json);
    return fail(ErrorCode::invalid, fmt::format("the service sent a message of unknown type '{}'", type));
  });
}

std::string format(const Snapshot& snapshot) {
  Json list = Json::array();
  for (const SnapshotEntry& entry : snapshot.entries) {
    Json item{{"path", entry.path}, {"kind", kind_name(entry.kind)}};
    if (entry.kind == SnapshotKind::file) {
      item["executable"] = entry.executable;
      item["hash"] = entry.hash;
      item["size"] = entry.size;
    }
    if (entry.kind == SnapshotKind::link) item["target"] = entry.target;
    list.push_back(std::move(item));
  }
  return Json{{"entries", std::move(list)}}.dump();
}

Result<Snapshot> parse_snapshot(std::string_view text) {
  auto parsed = guarded<Snapshot>("the snapshot's manifest", text, [](const Json& json) -> Result<Snapshot> {
    Snapshot snapshot;
    for (const Json& item : json.at("entries")) {
      SnapshotEntry entry;
      entry.path = item.at("path").get<std::string>();
      const auto& kind = item.at("kind").get_ref<const std::string&>();
      if (kind == "file") {
        entry.executable = item.at("executable").get<bool>();
        entry.hash = item.at("hash").get<std::string>();
        entry.size = wire::integer<Bytes>(item.at("size"));
      } else if (kind == "link") {
        entry.kind = SnapshotKind::link;
        entry.target = item.at("target").get<std::string>();
      } else if (kind == "folder") {
        entry.kind = SnapshotKind::folder;
      } else {
        return fail(ErrorCode::invalid,
                    fmt::format("the snapshot's manifest has an entry of unknown kind '{}'", kind));
      }
      snapshot.entries.push_back(std::move(entry));
    }
    return snapshot;
  });
  if (!parsed) return parsed;
  if (auto valid = validate(*parsed); !valid) return fail(valid.error());
  return parsed;
}

}  // namespace wire
}  // namespace slipway
