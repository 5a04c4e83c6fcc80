// What the service sends to agents: Welcome, Refused and Orders.
#include <fmt/format.h>

#include <utility>

#include "base/encoding.h"
#include "wire/protocol.h"
#include "wire/protocol_fields.h"
#include "wire/value.h"

namespace slipway::wire {
namespace {

AttemptKey attempt_at(const Json& json) {
  const WorkKey key = key_at(json);
  const auto* attempt = std::get_if<AttemptKey>(&key);
  if (!attempt) throw std::invalid_argument("the key is not that of an attempt");
  return *attempt;
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
  value.rank = integer<std::uint32_t>(json.at("rank"));
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
  for (const Json& gpu : json.at("gpus")) value.gpus.push_back(integer<std::uint32_t>(gpu));
  value.resources = resources_from(json.at("resources"));
  if (json.contains("listens"))
    for (const Json& port : json.at("listens")) value.listens.push_back(integer<std::uint16_t>(port));
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
  for (const auto& [path, text] : view.files) json["texts"].push_back({path, to_utf8(text)});
  if (!view.logs.empty()) json.update({{"logs", view.logs}, {"journal", view.journal}});
  return json;
}
View view_from(const Json& json) {
  View view;
  if (json.is_null()) return view;
  view.root = json.at("root").get<std::string>();
  if (view.root.empty()) return view;
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
    if (mount.url.empty()) continue;
    mount.key = item.value("key", "");
    mount.pulls = item.value("pulls", true);
  }
  view.folders = json.at("folders").get<std::vector<std::string>>();
  if (json.contains("texts"))
    for (const Json& text : json.at("texts"))
      view.files.emplace_back(text.at(0).get<std::string>(), text.at(1).get<std::string>());
  view.logs = json.value("logs", "");
  if (!view.logs.empty()) view.journal = json.value("journal", "");
  return view;
}

std::optional<RunAs> run_as_from(const Json& json) {
  const auto found = json.find("run_as");
  if (found == json.end()) return std::nullopt;
  return RunAs{integer<std::uint32_t>(found->at(0)), integer<std::uint32_t>(found->at(1))};
}

PrepareOrder prepare_from(const Json& json) {
  PrepareOrder value;
  value.key = key_at(json.at("key"));
  value.folder = json.at("folder").get<std::string>();
  value.source = json.at("source").get<std::string>();
  value.folders = json.at("folders").get<std::vector<std::string>>();
  value.files = files_from(json.at("files"));
  value.ports = integer<std::uint32_t>(json.at("ports"));
  if (json.contains("ports_from")) value.ports_from = integer<std::uint16_t>(json.at("ports_from"));
  if (json.contains("view")) value.view = view_from(json.at("view"));
  value.run_as = run_as_from(json);
  if (json.contains("preparation"))
    for (const Json& item : json.at("preparation")) value.preparation.push_back(process_from(item));
  if (json.contains("lease")) value.lease = duration_at(json, "lease");
  if (!value.preparation.empty() && json.contains("stop_grace"))
    value.stop_grace = duration_at(json, "stop_grace");
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

void put(std::string& out, const ProcessStart& value) {
  const Resources& own = value.resources;
  fmt::format_to(Out(out), R"({{"rank":{},"gpus":[{}],"resources":{{"cores":{},"memory":{},"gpus":{}}})",
                 value.rank, fmt::join(value.gpus, ","), own.cores, own.memory, own.gpus);
  if (!value.listens.empty()) fmt::format_to(Out(out), R"(,"listens":[{}])", fmt::join(value.listens, ","));
  put_texts(out, "argv", value.argv);
  put_list(out, "environment", value.environment,
           [&](const auto& variable) { put_text(out, variable.first + "=" + variable.second); });
  put_field(out, "stdout", value.stdout_name);
  put_field(out, "stderr", value.stderr_name);
  put_field(out, "wd", value.wd_name);
  if (!value.secrets.empty())
    put_list(out, "secrets", value.secrets,
             [&](const auto& variable) { put_text(out, variable.first + "=" + variable.second); });
  if (!value.secret_files.empty()) {  // in base64, as they may be any bytes
    Json files = Json::object();
    for (const auto& [variable, content] : value.secret_files) files[variable] = format_base64(content);
    out += ",\"secret_files\":" + dump(files);
  }
  if (!value.problem.empty()) put_field(out, "problem", value.problem);
  if (!value.log_out.empty()) put_field(out, "log_out", value.log_out);
  if (!value.log_err.empty()) put_field(out, "log_err", value.log_err);
  out += '}';
}
void put_view(std::string& out, const View& view) {
  if (!view.root.empty()) out += ",\"view\":" + dump(to_json(view));
}
void put_files(std::string& out, const Files& files) {
  Json json = Json::object();
  for (const auto& [name, content] : files) json[name] = to_utf8(content);
  out += ",\"files\":" + dump(json);
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

std::string text_of(const Welcome& value) {
  return dump({{"type", "welcome"},
               {"node", value.node.value()},
               {"heartbeat", value.heartbeat.count()},
               {"silence_max", value.heartbeat_timeout.count()},
               {"service", value.service}});
}
std::string text_of(const Refused& value) {
  return dump({{"type", "refused"}, {"reason", value.reason}, {"final", value.final}});
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
    put_list(out, "remove", value.remove, [&](const std::string& one) { out += quote(one); });
  return out + "}";
}
Orders orders_from(const Json& json) {
  Orders value;
  value.number = integer<std::uint64_t>(json.at("number"));
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
    stop.notice = item.value("notice", "");
    if (!stop.notice.empty()) stop.folder = item.value("folder", "");
    if (item.contains("outputs_within")) stop.outputs_within = duration_at(item, "outputs_within");
  }
  value.forget = keys_from(json.at("forget"));
  value.quit = json.at("quit").get<bool>();
  if (json.contains("received")) value.received = integer<std::uint64_t>(json.at("received"));
  if (json.contains("turn")) value.turn = integer<std::uint64_t>(json.at("turn"));
  value.turn_proof = json.value("turn_proof", "");
  value.turn_run = json.value("turn_run", "");
  if (json.contains("remove")) value.remove = json.at("remove").get<std::vector<std::string>>();
  return value;
}

}  // namespace

std::string format(const ToAgent& value) {
  return std::visit([](const auto& one) { return text_of(one); }, value);
}

Result<ToAgent> parse_to_agent(std::string_view text) {
  return guarded<ToAgent>("a message of the service", text, [](const Json& json) -> Result<ToAgent> {
    const auto& type = json.at("type").get_ref<const std::string&>();
    if (type == "welcome")
      return Welcome{NodeId{integer<std::uint64_t>(json.at("node"))}, duration_at(json, "heartbeat"),
                     duration_at(json, "silence_max"), json.value("service", "")};
    if (type == "refused") return Refused{json.at("reason").get<std::string>(), json.at("final").get<bool>()};
    if (type == "orders") return orders_from(json);
    return fail(ErrorCode::invalid, fmt::format("the service sent a message of unknown type '{}'", type));
  });
}

}  // namespace slipway::wire
