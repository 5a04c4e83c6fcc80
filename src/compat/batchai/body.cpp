#include "compat/batchai/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace slipway::batchai {
namespace {

enum class Kind { text, integer, word, period, object, list, texts, tags };

struct Shape;
struct Field {
  const char* name;
  Kind kind = Kind::text;
  const Shape* shape = nullptr;
  bool required = false;
  bool secret = false;
  const char* otherwise = nullptr;        // the default
  std::vector<std::string_view> words{};  // of which it is one; lower case
  const char* also = nullptr;             // another name it had
  std::int64_t low = 0, high = 1'000'000'000;
};
struct Shape {
  std::vector<Field> fields;
};

const Shape resource_id{{{.name = "id", .required = true}}};
const Shape vault_secret{{{.name = "sourceVault", .kind = Kind::object, .shape = &resource_id},
                          {.name = "secretUrl", .required = true}}};
const Shape account{{{.name = "adminUserName", .required = true},
                     {.name = "adminUserSshPublicKey", .also = "adminUserSSHPublicKey"},
                     {.name = "adminUserPassword", .secret = true}}};
const Shape variable{{{.name = "name", .required = true}, {.name = "value", .required = true}}};
const Shape secret_variable{{{.name = "name", .required = true},
                             {.name = "value", .secret = true},
                             {.name = "valueSecretReference", .kind = Kind::object, .shape = &vault_secret}}};
const Shape storage_credentials{
    {{.name = "accountKey", .secret = true},
     {.name = "accountKeySecretReference", .kind = Kind::object, .shape = &vault_secret}}};
const Shape file_share{{{.name = "accountName"},
                        {.name = "azureFileUrl", .required = true},
                        {.name = "credentials",
                         .kind = Kind::object,
                         .shape = &storage_credentials,
                         .otherwise = "",
                         .also = "credentialsInfo"},
                        {.name = "relativeMountPath", .required = true},
                        {.name = "fileMode", .otherwise = "0777"},
                        {.name = "directoryMode", .otherwise = "0777"}}};
const Shape blob_container{{{.name = "accountName", .required = true},
                            {.name = "containerName", .required = true},
                            {.name = "credentials",
                             .kind = Kind::object,
                             .shape = &storage_credentials,
                             .otherwise = "",
                             .also = "credentialsInfo"},
                            {.name = "relativeMountPath", .required = true},
                            {.name = "mountOptions"}}};
const Shape server_mount{
    {{.name = "fileServer", .kind = Kind::object, .shape = &resource_id, .required = true},
     {.name = "sourceDirectory"},
     {.name = "relativeMountPath", .required = true},
     {.name = "mountOptions"}}};
const Shape other_mount{
    {{.name = "mountCommand", .required = true}, {.name = "relativeMountPath", .required = true}}};
const Shape volumes{{{.name = "azureFileShares", .kind = Kind::list, .shape = &file_share},
                     {.name = "azureBlobFileSystems", .kind = Kind::list, .shape = &blob_container},
                     {.name = "fileServers", .kind = Kind::list, .shape = &server_mount},
                     {.name = "unmanagedFileSystems", .kind = Kind::list, .shape = &other_mount}}};

const Shape workspace{{{.name = "location", .required = true}, {.name = "tags", .kind = Kind::tags}}};
const Shape workspace_change{{{.name = "tags", .kind = Kind::tags}}};

const Shape manual{{{.name = "targetNodeCount", .kind = Kind::integer, .required = true, .high = 100'000},
                    {.name = "nodeDeallocationOption",
                     .kind = Kind::word,
                     .otherwise = "requeue",
                     .words = {"requeue", "terminate", "waitforjobcompletion"}}}};
const Shape automatic{
    {{.name = "minimumNodeCount", .kind = Kind::integer, .required = true, .high = 100'000},
     {.name = "maximumNodeCount", .kind = Kind::integer, .required = true, .high = 100'000},
     {.name = "initialNodeCount", .kind = Kind::integer, .otherwise = "0", .high = 100'000}}};
const Shape scale{{{.name = "manual", .kind = Kind::object, .shape = &manual},
                   {.name = "autoScale", .kind = Kind::object, .shape = &automatic}}};
const Shape image{{{.name = "publisher", .required = true},
                   {.name = "offer", .required = true},
                   {.name = "sku", .required = true},
                   {.name = "version", .otherwise = "latest"},
                   {.name = "virtualMachineImageId"}}};
const Shape machine{{{.name = "imageReference", .kind = Kind::object, .shape = &image}}};
const Shape setup_task{{{.name = "commandLine", .required = true},
                        {.name = "environmentVariables", .kind = Kind::list, .shape = &variable},
                        {.name = "secrets", .kind = Kind::list, .shape = &secret_variable},
                        {.name = "stdOutErrPathPrefix", .required = true}}};
const Shape insights{
    {{.name = "component", .kind = Kind::object, .shape = &resource_id, .required = true},
     {.name = "instrumentationKey", .secret = true},
     {.name = "instrumentationKeySecretReference", .kind = Kind::object, .shape = &vault_secret}}};
const Shape counters{
    {{.name = "appInsightsReference", .kind = Kind::object, .shape = &insights, .required = true}}};
const Shape node_setup{{{.name = "setupTask", .kind = Kind::object, .shape = &setup_task},
                        {.name = "mountVolumes", .kind = Kind::object, .shape = &volumes},
                        {.name = "performanceCountersSettings", .kind = Kind::object, .shape = &counters}}};
const Shape cluster_properties{
    {{.name = "vmSize", .required = true},
     {.name = "vmPriority",
      .kind = Kind::word,
      .otherwise = "dedicated",
      .words = {"dedicated", "lowpriority"}},
     {.name = "scaleSettings", .kind = Kind::object, .shape = &scale},
     {.name = "virtualMachineConfiguration", .kind = Kind::object, .shape = &machine},
     {.name = "nodeSetup", .kind = Kind::object, .shape = &node_setup},
     {.name = "userAccountSettings", .kind = Kind::object, .shape = &account, .required = true},
     {.name = "subnet", .kind = Kind::object, .shape = &resource_id}}};
const Shape cluster{
    {{.name = "properties", .kind = Kind::object, .shape = &cluster_properties, .required = true}}};
const Shape cluster_change_properties{{{.name = "scaleSettings", .kind = Kind::object, .shape = &scale}}};
const Shape cluster_change{
    {{.name = "properties", .kind = Kind::object, .shape = &cluster_change_properties}}};

const Shape registry_login{
    {{.name = "username", .required = true},
     {.name = "password", .secret = true},
     {.name = "passwordSecretReference", .kind = Kind::object, .shape = &vault_secret}}};
const Shape registry{{{.name = "serverUrl"},
                      {.name = "image", .required = true},
                      {.name = "credentials", .kind = Kind::object, .shape = &registry_login}}};
const Shape container{
    {{.name = "imageSourceRegistry", .kind = Kind::object, .shape = &registry, .required = true},
     {.name = "shmSize"}}};
const Field process_count{.name = "processCount", .kind = Kind::integer, .low = 1, .high = 100'000};
const Shape cntk{{{.name = "languageType"},
                  {.name = "configFilePath"},
                  {.name = "pythonScriptFilePath"},
                  {.name = "pythonInterpreterPath"},
                  {.name = "commandLineArgs"},
                  process_count}};
const Shape pytorch{{{.name = "pythonScriptFilePath", .required = true},
                     {.name = "pythonInterpreterPath"},
                     {.name = "commandLineArgs"},
                     process_count,
                     {.name = "communicationBackend"}}};
const Shape tensorflow{{{.name = "pythonScriptFilePath", .required = true},
                        {.name = "pythonInterpreterPath"},
                        {.name = "masterCommandLineArgs"},
                        {.name = "workerCommandLineArgs"},
                        {.name = "parameterServerCommandLineArgs"},
                        {.name = "workerCount", .kind = Kind::integer, .low = 1, .high = 100'000},
                        {.name = "parameterServerCount", .kind = Kind::integer, .low = 0, .high = 100'000}}};
const Shape caffe{{{.name = "configFilePath"},
                   {.name = "pythonScriptFilePath"},
                   {.name = "pythonInterpreterPath"},
                   {.name = "commandLineArgs"},
                   process_count}};
const Shape caffe2{{{.name = "pythonScriptFilePath", .required = true},
                    {.name = "pythonInterpreterPath"},
                    {.name = "commandLineArgs"}}};
const Shape script{{{.name = "pythonScriptFilePath", .required = true},
                    {.name = "pythonInterpreterPath"},
                    {.name = "commandLineArgs"},
                    process_count}};
const Shape custom{{{.name = "commandLine"}}};
const Shape custom_mpi{{{.name = "commandLine", .required = true}, process_count}};
const Shape preparation{{{.name = "commandLine", .required = true}}};
const Shape input{{{.name = "id", .required = true}, {.name = "path", .required = true}}};
const Shape output{
    {{.name = "id", .required = true}, {.name = "pathPrefix", .required = true}, {.name = "pathSuffix"}}};
const Shape constraints{{{.name = "maxWallClockTime", .kind = Kind::period, .otherwise = "P7D"}}};
const Shape job_properties{
    {{.name = "schedulingPriority", .kind = Kind::word, .words = {"low", "normal", "high"}},
     {.name = "priority", .kind = Kind::integer, .low = -1000, .high = 1000},
     {.name = "cluster", .kind = Kind::object, .shape = &resource_id, .required = true},
     {.name = "mountVolumes", .kind = Kind::object, .shape = &volumes},
     {.name = "nodeCount", .kind = Kind::integer, .required = true, .low = 1, .high = 100'000},
     {.name = "containerSettings", .kind = Kind::object, .shape = &container},
     {.name = "cntkSettings", .kind = Kind::object, .shape = &cntk},
     {.name = "pyTorchSettings", .kind = Kind::object, .shape = &pytorch},
     {.name = "tensorFlowSettings", .kind = Kind::object, .shape = &tensorflow},
     {.name = "caffeSettings", .kind = Kind::object, .shape = &caffe},
     {.name = "caffe2Settings", .kind = Kind::object, .shape = &caffe2},
     {.name = "chainerSettings", .kind = Kind::object, .shape = &script},
     {.name = "customToolkitSettings", .kind = Kind::object, .shape = &custom},
     {.name = "customMpiSettings", .kind = Kind::object, .shape = &custom_mpi},
     {.name = "horovodSettings", .kind = Kind::object, .shape = &script},
     {.name = "jobPreparation", .kind = Kind::object, .shape = &preparation},
     {.name = "stdOutErrPathPrefix", .required = true},
     {.name = "inputDirectories", .kind = Kind::list, .shape = &input},
     {.name = "outputDirectories", .kind = Kind::list, .shape = &output},
     {.name = "environmentVariables", .kind = Kind::list, .shape = &variable},
     {.name = "secrets", .kind = Kind::list, .shape = &secret_variable},
     {.name = "constraints", .kind = Kind::object, .shape = &constraints, .otherwise = ""}}};
const Shape job{{{.name = "properties", .kind = Kind::object, .shape = &job_properties, .required = true}}};

const Shape login{
    {{.name = "publicIPsToAllow", .kind = Kind::texts},
     {.name = "userAccountSettings", .kind = Kind::object, .shape = &account, .required = true}}};
const Shape disks{{{.name = "diskSizeInGB", .kind = Kind::integer, .required = true, .low = 1},
                   {.name = "cachingType",
                    .kind = Kind::word,
                    .otherwise = "none",
                    .words = {"none", "readonly", "readwrite"}},
                   {.name = "diskCount", .kind = Kind::integer, .required = true, .low = 1},
                   {.name = "storageAccountType", .required = true}}};
const Shape file_server_properties{
    {{.name = "vmSize", .required = true},
     {.name = "sshConfiguration", .kind = Kind::object, .shape = &login, .required = true},
     {.name = "dataDisks", .kind = Kind::object, .shape = &disks, .required = true},
     {.name = "subnet", .kind = Kind::object, .shape = &resource_id}}};
const Shape file_server{
    {{.name = "properties", .kind = Kind::object, .shape = &file_server_properties, .required = true}}};

const Shape& shape_of(Body kind) {
  switch (kind) {
    case Body::workspace: return workspace;
    case Body::workspace_change: return workspace_change;
    case Body::cluster: return cluster;
    case Body::cluster_change: return cluster_change;
    case Body::job: return job;
    case Body::file_server: return file_server;
  }
  return job;
}

bool is_scalar(const Value& value) {
  return value.kind != Value::Kind::map && value.kind != Value::Kind::list;
}

class BodyReader {
 public:
  explicit BodyReader(Problems& problems) : problems_(problems) {}

  Value object(const Value& sent, const Shape& shape, const std::string& path) {
    Value read = object_value();
    for (const Field& field : shape.fields) {
      const std::string here = path.empty() ? field.name : path + "." + field.name;
      const Value* value = sent.find(field.name);
      if ((!value || value->kind == Value::Kind::null) && field.also) value = sent.find(field.also);
      if (!value || value->kind == Value::Kind::null) {
        if (field.required)
          problem(here, "is required");
        else if (field.otherwise)
          set(read, field.name, otherwise(field, here));
        continue;
      }
      if (auto one = this->value(*value, field, here)) set(read, field.name, std::move(*one));
    }
    return read;
  }

 private:
  void problem(const std::string& path, std::string message) {
    problems_.push_back({path, path + " " + message});
  }
  std::optional<Value> wrong(const std::string& path, std::string message) {
    problem(path, std::move(message));
    return std::nullopt;
  }
  Value otherwise(const Field& field, const std::string& path) {
    if (field.kind == Kind::object) return object(object_value(), *field.shape, path);
    if (field.kind == Kind::integer) return number_value(std::atoll(field.otherwise));
    return text_value(field.otherwise);
  }
  std::optional<Value> value(const Value& sent, const Field& field, const std::string& path) {
    switch (field.kind) {
      case Kind::object:
        if (sent.kind != Value::Kind::map) return wrong(path, "should be an object");
        return object(sent, *field.shape, path);
      case Kind::list:
      case Kind::texts: return list(sent, field, path);
      case Kind::tags: return tags(sent, path);
      default: break;
    }
    if (!is_scalar(sent)) return wrong(path, fmt::format("should be text, not {}", describe(sent.kind)));
    if (field.kind == Kind::integer) return integer(sent, field, path);
    if (field.kind == Kind::text && sent.kind != Value::Kind::string)
      return wrong(path, fmt::format("should be text, not {}", describe(sent.kind)));
    if (sent.text.find('\0') != std::string::npos) return wrong(path, "has a NUL character");
    if (field.required && sent.text.empty() && std::string_view(field.name) != "value")
      return wrong(path, "is empty");
    if (field.kind == Kind::word) {
      const std::string word = lower(sent.text);
      if (std::find(field.words.begin(), field.words.end(), word) == field.words.end())
        return wrong(path, fmt::format("is '{}'; it is one of {}", sent.text.substr(0, 50),
                                       fmt::join(field.words, ", ")));
      return text_value(word);
    }
    if (field.kind == Kind::period) {
      const auto period = parse_period(sent.text);
      if (!period || period->count() <= 0)
        return wrong(path, fmt::format("is '{}'; write a time like P7D or PT1H30M", sent.text.substr(0, 50)));
      return text_value(sent.text.starts_with('P') ? sent.text : format_period(*period));
    }
    return text_value(sent.text);
  }
  std::optional<Value> integer(const Value& sent, const Field& field, const std::string& path) {
    std::int64_t number = 0;
    const std::string& text = sent.text;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || sent.kind == Value::Kind::boolean)
      return wrong(path, fmt::format("is '{}', which is not a whole number", text.substr(0, 50)));
    if (number < field.low || number > field.high)
      return wrong(path, fmt::format("is {}; it goes from {} to {}", number, field.low, field.high));
    return number_value(number);
  }
  std::optional<Value> list(const Value& sent, const Field& field, const std::string& path) {
    if (sent.kind != Value::Kind::list) return wrong(path, "should be a list");
    Value read = list_value();
    for (std::size_t i = 0; i < sent.items.size(); ++i) {
      const std::string here = fmt::format("{}[{}]", path, i);
      const Value& item = sent.items[i];
      if (field.kind == Kind::texts && is_scalar(item))
        read.items.push_back(text_value(item.text));
      else if (field.kind == Kind::list && item.kind == Value::Kind::map)
        read.items.push_back(object(item, *field.shape, here));
      else
        problem(here, field.kind == Kind::texts ? "should be text" : "should be an object");
    }
    return read;
  }
  std::optional<Value> tags(const Value& sent, const std::string& path) {
    if (sent.kind != Value::Kind::map) return wrong(path, "should be a map of names and texts");
    Value read = object_value();
    for (const auto& [name, value] : sent.fields) {
      if (is_scalar(value))
        set(read, name, text_value(value.kind == Value::Kind::null ? "" : value.text));
      else
        problem(path + "." + name, "should be text");
    }
    return read;
  }

  Problems& problems_;
};

Value stripped(const Value& body, const Shape& shape) {
  Value kept = object_value();
  for (const Field& field : shape.fields) {
    const Value* value = body.find(field.name);
    if (!value || field.secret) continue;
    if (field.kind == Kind::object && value->kind == Value::Kind::map) {
      set(kept, field.name, stripped(*value, *field.shape));
    } else if (field.kind == Kind::list) {
      Value items = list_value();
      for (const Value& item : value->items) items.items.push_back(stripped(item, *field.shape));
      set(kept, field.name, std::move(items));
    } else {
      set(kept, field.name, *value);
    }
  }
  return kept;
}

}  // namespace

Value read_body(Body kind, const Value& sent, Problems& problems) {
  Value body = BodyReader(problems).object(sent, shape_of(kind), "");
  if (kind == Body::job)
    if (Value* properties = body.find("properties")) {
      // Older versions had a number.
      if (!properties->find("schedulingPriority")) {
        const std::int64_t priority = number_at(*properties, "priority", 0);
        properties->fields.insert(properties->fields.begin(),
                                  {"schedulingPriority", text_value(priority < 0   ? "low"
                                                                    : priority > 0 ? "high"
                                                                                   : "normal")});
      }
      remove(*properties, "priority");
    }
  return body;
}

Value without_secrets(Body kind, const Value& body) { return stripped(body, shape_of(kind)); }

Answer<Value> accept_body(Body kind, std::string_view json) {
  auto sent = wire::parse_json(json.empty() ? std::string_view("{}") : json, "the request");
  if (!sent)
    return refuse(
        400, "InvalidRequestBody",
        sent.error().hint.empty() ? sent.error().what : sent.error().what + "; " + sent.error().hint);
  if (sent->kind != Value::Kind::map)
    return refuse(400, "InvalidRequestBody",
                  fmt::format("the request should be an object, not {}", describe(sent->kind)));
  Problems problems;
  Value body = read_body(kind, *sent, problems);
  if (kind == Body::cluster) check_cluster(body, problems);
  if (kind == Body::job) check_job(body, problems);
  if (kind == Body::file_server) check_file_server(body, problems);
  if (kind == Body::cluster_change)
    if (const Value* scale_settings = find(body, "properties.scaleSettings"))
      check_scale(*scale_settings, "properties.scaleSettings", problems);
  if (!problems.empty()) return refuse(to_cloud_error(problems, json));
  return body;
}

CloudError to_cloud_error(const Problems& problems, std::string_view json) {
  CloudError error{400, "InvalidRequestBody", "", problems.front().path, {}};
  const auto lines =
      json.find('\n') == std::string_view::npos ? std::map<std::string, int>() : lines_of(json);
  for (const Problem& problem : problems) {
    // What is missing has no line; what should hold it does.
    std::string path = problem.path;
    auto line = lines.find(path);
    while (line == lines.end() && path.find_last_of(".[") != std::string::npos) {
      path.resize(path.find_last_of(".["));
      line = lines.find(path);
    }
    error.details.push_back(
        {"InvalidParameter",
         line == lines.end() ? problem.message : fmt::format("line {}: {}", line->second, problem.message),
         problem.path});
  }
  error.message = error.details.front().message;
  if (problems.size() > 1) error.message += fmt::format(" (and {} more, see details)", problems.size() - 1);
  return error;
}

}  // namespace slipway::batchai
