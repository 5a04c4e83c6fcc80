// The rules between the fields of a body, and the words for times.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "compat/batchai/body.h"

namespace slipway::batchai {
namespace {

void add_problem(Problems& problems, const std::string& path, const std::string& message) {
  problems.push_back({path, path + " " + message});
}

bool is_identifier(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool leads_out(std::string_view path) {
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (path.substr(0, slash) == "..") return true;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return false;
}

constexpr const char* no_vault =
    "refers to a key vault, which this service does not reach; give the value itself, which is sealed "
    "and never shown";

void check_credentials(const Value& item, const std::string& path, Problems& problems) {
  if (find(item, "credentials.accountKeySecretReference"))
    add_problem(problems, path + ".credentials.accountKeySecretReference", no_vault);
}

void check_volumes(const Value& volumes, const std::string& path, Problems& problems) {
  std::set<std::string> mount_points;
  for (const char* kind :
       {"azureFileShares", "azureBlobFileSystems", "fileServers", "unmanagedFileSystems"}) {
    const auto& items = items_at(volumes, kind);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string here = fmt::format("{}.{}[{}]", path, kind, i);
      std::string at = text_at(items[i], "relativeMountPath");
      if (at.empty()) continue;  // reported already
      if (leads_out(at) || at.front() == '/' || at == ".")
        add_problem(
            problems, here + ".relativeMountPath",
            fmt::format("is '{}'; name a folder below the mount root, without '..'", at.substr(0, 100)));
      while (at.ends_with('/')) at.pop_back();
      if (!mount_points.insert(at).second)
        add_problem(problems, here + ".relativeMountPath",
                    fmt::format("is '{}', where another volume is mounted already", at.substr(0, 100)));
      check_credentials(items[i], here, problems);
      if (leads_out(text_at(items[i], "sourceDirectory")))
        add_problem(problems, here + ".sourceDirectory", "leads out of the file server with '..'");
    }
  }
}

void check_variables(const Value& properties, const std::string& path, Problems& problems) {
  for (const char* kind : {"environmentVariables", "secrets"}) {
    const auto& items = items_at(properties, kind);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string here = fmt::format("{}.{}[{}]", path, kind, i);
      const std::string name = text_at(items[i], "name");
      if (!name.empty() && (!is_identifier(name) || (name.front() >= '0' && name.front() <= '9')))
        add_problem(problems, here + ".name",
                    fmt::format("is '{}'; use letters, digits and '_', not beginning with a digit",
                                name.substr(0, 100)));
      if (std::string_view(kind) != "secrets") continue;
      if (find(items[i], "valueSecretReference"))
        add_problem(problems, here + ".valueSecretReference", no_vault);
      else if (!items[i].find("value"))
        add_problem(problems, here, "has neither value nor valueSecretReference");
    }
  }
}

void check_directories(const Value& properties, Problems& problems) {
  for (const char* kind : {"inputDirectories", "outputDirectories"}) {
    std::set<std::string> ids;
    const auto& items = items_at(properties, kind);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string here = fmt::format("properties.{}[{}]", kind, i);
      const std::string id = text_at(items[i], "id");
      if (id.empty()) continue;
      if (!is_identifier(id))
        add_problem(problems, here + ".id",
                    fmt::format("is '{}'; it becomes part of a variable's name: use letters, digits and '_'",
                                id.substr(0, 100)));
      if (std::string_view(kind) == "outputDirectories" && same_word(id, "stdouterr"))
        add_problem(problems, here + ".id", "is 'stdouterr', which is where standard output goes");
      if (!ids.insert(lower(id)).second)
        add_problem(problems, here + ".id", fmt::format("is '{}', as another's", id.substr(0, 100)));
      if (leads_out(text_at(items[i], "pathSuffix")))
        add_problem(problems, here + ".pathSuffix", "leads out with '..'");
    }
  }
}

void check_toolkit(const Value& properties, const Toolkits& toolkit, Problems& problems) {
  const Value& settings = *properties.find(toolkit.settings);
  const std::string path = fmt::format("properties.{}", toolkit.settings);
  const std::string type = toolkit.type;
  const bool script = settings.find("pythonScriptFilePath"), config = settings.find("configFilePath");
  if (type == "cntk" || type == "caffe") {
    if (script == config)
      add_problem(problems, path,
                  fmt::format("has {}; it needs one of pythonScriptFilePath and configFilePath",
                              script ? "a script and a configuration" : "neither script nor configuration"));
    if (config && settings.find("pythonInterpreterPath"))
      add_problem(problems, path + ".pythonInterpreterPath", "goes with pythonScriptFilePath only");
  }
  if (const Value* language = settings.find("languageType")) {
    const std::string word = lower(language->text);
    if (word != "brainscript" && word != "python")
      add_problem(problems, path + ".languageType", "is one of BrainScript and Python");
    else if (script != config && (word == "python") != script)
      add_problem(problems, path + ".languageType",
                  fmt::format("is {}, which does not go with {}", language->text,
                              script ? "pythonScriptFilePath" : "configFilePath"));
  }
  if (const Value* backend = settings.find("communicationBackend")) {
    const std::string word = lower(backend->text);
    if (word != "tcp" && word != "gloo" && word != "mpi" && word != "nccl")
      add_problem(problems, path + ".communicationBackend",
                  fmt::format("is '{}'; it is one of TCP, Gloo, MPI and NCCL", backend->text.substr(0, 50)));
  }
  const std::int64_t nodes = number_at(properties, "nodeCount", 1);
  const std::int64_t processes = number_at(settings, "processCount", nodes);
  if (processes < nodes || processes % nodes != 0)
    add_problem(problems, path + ".processCount",
                fmt::format("is {}; with nodeCount {} it must be a multiple of {}", processes, nodes, nodes));
  if (number_at(settings, "parameterServerCount", 0) > nodes)
    add_problem(problems, path + ".parameterServerCount",
                fmt::format("is {}; a node has at most one parameter server, and nodeCount is {}",
                            number_at(settings, "parameterServerCount", 0), nodes));
}

}  // namespace

const std::vector<Toolkits>& toolkits() {
  static const std::vector<Toolkits> all{{"cntkSettings", "cntk"},
                                         {"pyTorchSettings", "pytorch"},
                                         {"tensorFlowSettings", "tensorflow"},
                                         {"caffeSettings", "caffe"},
                                         {"caffe2Settings", "caffe2"},
                                         {"chainerSettings", "chainer"},
                                         {"customToolkitSettings", "custom"},
                                         {"customMpiSettings", "custommpi"},
                                         {"horovodSettings", "horovod"}};
  return all;
}

const Toolkits* toolkit_of(const Value& properties) {
  const Toolkits* found = nullptr;
  for (const Toolkits& one : toolkits()) {
    if (!properties.find(one.settings)) continue;
    if (found) return nullptr;
    found = &one;
  }
  return found;
}

void check_scale(const Value& scale, const std::string& path, Problems& problems) {
  const Value* by_itself = scale.find("autoScale");
  if ((scale.find("manual") != nullptr) == (by_itself != nullptr))
    return add_problem(problems, path, "needs exactly one of manual and autoScale");
  if (!by_itself) return;
  const std::int64_t low = number_at(*by_itself, "minimumNodeCount", 0);
  const std::int64_t high = number_at(*by_itself, "maximumNodeCount", low);
  if (low > high)
    add_problem(problems, path + ".autoScale.minimumNodeCount",
                fmt::format("is {}, above maximumNodeCount {}", low, high));
}

void check_cluster(const Value& body, Problems& problems) {
  const Value* properties = body.find("properties");
  if (!properties) return;
  if (const Value* scale = properties->find("scaleSettings"))
    check_scale(*scale, "properties.scaleSettings", problems);
  if (const Value* volumes = find(*properties, "nodeSetup.mountVolumes"))
    check_volumes(*volumes, "properties.nodeSetup.mountVolumes", problems);
  if (const Value* task = find(*properties, "nodeSetup.setupTask"))
    check_variables(*task, "properties.nodeSetup.setupTask", problems);
  if (find(*properties,
           "nodeSetup.performanceCountersSettings.appInsightsReference."
           "instrumentationKeySecretReference"))
    add_problem(problems, "properties.nodeSetup.performanceCountersSettings.appInsightsReference", no_vault);
}

void check_job(const Value& body, Problems& problems) {
  const Value* properties = body.find("properties");
  if (!properties) return;
  if (const Toolkits* toolkit = toolkit_of(*properties)) {
    check_toolkit(*properties, *toolkit, problems);
  } else {
    std::vector<std::string_view> given, all;
    for (const Toolkits& one : toolkits()) {
      all.emplace_back(one.settings);
      if (properties->find(one.settings)) given.emplace_back(one.settings);
    }
    add_problem(problems, "properties",
                given.empty()
                    ? fmt::format("has no toolkit; give one of {}", fmt::join(all, ", "))
                    : fmt::format("has {} toolkits, {}; keep one", given.size(), fmt::join(given, " and ")));
  }
  if (const Value* volumes = properties->find("mountVolumes"))
    check_volumes(*volumes, "properties.mountVolumes", problems);
  if (find(*properties, "containerSettings.imageSourceRegistry.credentials.passwordSecretReference"))
    add_problem(problems,
                "properties.containerSettings.imageSourceRegistry.credentials.passwordSecretReference",
                no_vault);
  check_variables(*properties, "properties", problems);
  check_directories(*properties, problems);
}

void check_file_server(const Value& body, Problems& problems) {
  const std::string type = text_at(body, "properties.dataDisks.storageAccountType");
  if (!type.empty() && !same_word(type, "Standard_LRS") && !same_word(type, "Premium_LRS"))
    add_problem(problems, "properties.dataDisks.storageAccountType",
                "is one of Standard_LRS and Premium_LRS");
  if (items_at(body, "properties.sshConfiguration.publicIPsToAllow").size() > 400)
    add_problem(problems, "properties.sshConfiguration.publicIPsToAllow", "has more than 400 addresses");
}

namespace {

// hh:mm:ss with days before a dot, as .NET writes it.
std::optional<Duration> parse_clock(std::string_view text) {
  double days = 0, hours = 0, minutes = 0, secs = 0;
  const auto take = [&](double& into, char until) {
    const std::size_t end = until ? text.find(until) : text.size();
    if (end == std::string_view::npos || end == 0) return false;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + end, into);
    if (error != std::errc{} || stop != text.data() + end || into < 0) return false;
    text.remove_prefix(std::min(end + 1, text.size()));
    return true;
  };
  if (text.find('.') < text.find(':') && !take(days, '.')) return std::nullopt;
  if (!take(hours, ':') || !take(minutes, ':') || !take(secs, 0)) return std::nullopt;
  const double total = ((days * 24 + hours) * 60 + minutes) * 60 + secs;
  if (!(total < 1e10)) return std::nullopt;
  return Duration(static_cast<std::int64_t>(total * 1e6));
}

}  // namespace

std::optional<Duration> parse_period(std::string_view text) {
  if (!text.starts_with('P')) return parse_clock(text);
  text.remove_prefix(1);
  double total = 0;
  bool in_time = false, any = false;
  while (!text.empty()) {
    if (text.front() == 'T' && !in_time) {
      in_time = true;
      text.remove_prefix(1);
      if (text.empty()) return std::nullopt;
      continue;
    }
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto used = static_cast<std::size_t>(end - text.data());
    if (error != std::errc{} || used >= text.size() || !(number >= 0)) return std::nullopt;
    const char unit = text[used];
    if (!in_time && unit == 'Y')
      total += number * 365 * 86'400;
    else if (!in_time && unit == 'M')
      total += number * 30 * 86'400;
    else if (!in_time && unit == 'W')
      total += number * 7 * 86'400;
    else if (!in_time && unit == 'D')
      total += number * 86'400;
    else if (in_time && unit == 'H')
      total += number * 3'600;
    else if (in_time && unit == 'M')
      total += number * 60;
    else if (in_time && unit == 'S')
      total += number;
    else
      return std::nullopt;
    any = true;
    text.remove_prefix(used + 1);
  }
  if (!any || !(total < 1e10)) return std::nullopt;
  return Duration(static_cast<std::int64_t>(total * 1e6));
}

std::string format_period(Duration period) {
  std::int64_t left = period.count() / 1'000'000;
  const std::int64_t days = left / 86'400;
  left %= 86'400;
  std::string text = days > 0 ? fmt::format("P{}D", days) : "P";
  if (left > 0 || days == 0) text += "T";
  if (left / 3600 > 0) text += fmt::format("{}H", left / 3600);
  if (left % 3600 / 60 > 0) text += fmt::format("{}M", left % 3600 / 60);
  if (left % 60 > 0 || text == "PT") text += fmt::format("{}S", left % 60);
  return text;
}

}  // namespace slipway::batchai
