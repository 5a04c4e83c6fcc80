// What az shows of each kind of resource: every field, set or not, and the columns of its table.
#include <fmt/format.h>

#include "cli/az/output.h"

namespace slipway::cli::az {
namespace {

std::function<std::string(const Value&)> field(std::initializer_list<const char*> keys) {
  return [path = std::vector<const char*>(keys)](const Value& row) {
    const Value* at = &row;
    for (const char* key : path) at = &at->at(key);
    return at->is_string() || at->is_number() ? at->text : std::string();
  };
}

std::function<std::string(const Value&)> part(std::initializer_list<const char*> keys, const char* kind) {
  return [id = field(keys), kind](const Value& row) { return part_of_id(id(row), kind); };
}

// `deleting` says more than any other state.
std::function<std::string(const Value&)> state(const char* other) {
  return [other](const Value& row) {
    const std::string provisioning = text_at(row, {"provisioningState"});
    return provisioning == "deleting" ? provisioning : text_at(row, {other});
  };
}

#define ACCOUNT R"({"adminUserName":null,"adminUserSshPublicKey":null,"adminUserPassword":null})"
#define CREDENTIALS R"({"accountKey":null,"accountKeySecretReference":null})"
#define VOLUMES                                                                                                        \
  R"({"azureFileShares":[{"accountName":null,"azureFileUrl":null,"credentials":)" CREDENTIALS                          \
  R"(,"relativeMountPath":null,"fileMode":null,"directoryMode":null}],)"                                               \
  R"("azureBlobFileSystems":[{"accountName":null,"containerName":null,"credentials":)" CREDENTIALS                     \
  R"(,"relativeMountPath":null,"mountOptions":null}],)"                                                                \
  R"("fileServers":[{"fileServer":{"id":null},"sourceDirectory":null,"relativeMountPath":null,"mountOptions":null}],)" \
  R"("unmanagedFileSystems":[{"mountCommand":null,"relativeMountPath":null}]})"
#define STATES R"("creationTime":null,"provisioningState":null,"provisioningStateTransitionTime":null)"
#define ENVIRONMENT \
  R"("environmentVariables":[{"name":null,"value":null}],"secrets":[{"name":null,"value":null,"valueSecretReference":null}])"
#define ERRORS R"("errors":[{"code":null,"message":null,"details":[{"name":null,"value":null}]}])"
#define ENVELOPE R"("id":null,"name":null,"type":null,)"

constexpr const char* workspace_fields = "{" ENVELOPE R"("location":null,"tags":null,)" STATES "}";
constexpr const char* experiment_fields = "{" ENVELOPE STATES "}";
constexpr const char* cluster_fields =
    "{" ENVELOPE STATES
    R"(,"vmSize":null,"vmPriority":null,"scaleSettings":{"manual":{"targetNodeCount":null,)"
    R"("nodeDeallocationOption":null},"autoScale":{"minimumNodeCount":null,"maximumNodeCount":null,)"
    R"("initialNodeCount":null}},"virtualMachineConfiguration":{"imageReference":{"publisher":null,"offer":null,)"
    R"("sku":null,"version":null,"virtualMachineImageId":null}},"nodeSetup":{"setupTask":{"commandLine":null,)" ENVIRONMENT
    R"(,"stdOutErrPathPrefix":null,"stdOutErrPathSuffix":null},"mountVolumes":)" VOLUMES
    R"(,"performanceCountersSettings":{"appInsightsReference":{"component":{"id":null},"instrumentationKey":null,)"
    R"("instrumentationKeySecretReference":null}}},"userAccountSettings":)" ACCOUNT
    R"(,"subnet":{"id":null},"allocationState":null,"allocationStateTransitionTime":null,"currentNodeCount":null,)"
    R"("nodeStateCounts":{"idleNodeCount":null,"runningNodeCount":null,"preparingNodeCount":null,)"
    R"("unusableNodeCount":null,"leavingNodeCount":null},)" ERRORS "}";
constexpr const char* job_fields =
    "{" ENVELOPE STATES
    R"(,"cluster":{"id":null},"nodeCount":null,"schedulingPriority":null,"mountVolumes":)" VOLUMES
    R"(,"containerSettings":{"imageSourceRegistry":{"serverUrl":null,"image":null,"credentials":{"username":null,)"
    R"("password":null,"passwordSecretReference":null}},"shmSize":null},)"
    R"("cntkSettings":{"languageType":null,"configFilePath":null,"pythonScriptFilePath":null,)"
    R"("pythonInterpreterPath":null,"commandLineArgs":null,"processCount":null},)"
    R"("pyTorchSettings":{"pythonScriptFilePath":null,"pythonInterpreterPath":null,"commandLineArgs":null,)"
    R"("processCount":null,"communicationBackend":null},)"
    R"("tensorFlowSettings":{"pythonScriptFilePath":null,"pythonInterpreterPath":null,"masterCommandLineArgs":null,)"
    R"("workerCommandLineArgs":null,"parameterServerCommandLineArgs":null,"workerCount":null,)"
    R"("parameterServerCount":null},)"
    R"("caffeSettings":{"configFilePath":null,"pythonScriptFilePath":null,"pythonInterpreterPath":null,)"
    R"("commandLineArgs":null,"processCount":null},)"
    R"("caffe2Settings":{"pythonScriptFilePath":null,"pythonInterpreterPath":null,"commandLineArgs":null},)"
    R"("chainerSettings":{"pythonScriptFilePath":null,"pythonInterpreterPath":null,"commandLineArgs":null,)"
    R"("processCount":null},"customToolkitSettings":{"commandLine":null},)"
    R"("customMpiSettings":{"commandLine":null,"processCount":null},)"
    R"("horovodSettings":{"pythonScriptFilePath":null,"pythonInterpreterPath":null,"commandLineArgs":null,)"
    R"("processCount":null},"jobPreparation":{"commandLine":null},"stdOutErrPathPrefix":null,)"
    R"("inputDirectories":[{"id":null,"path":null}],)"
    R"("outputDirectories":[{"id":null,"pathPrefix":null,"pathSuffix":null}],)" ENVIRONMENT
    R"(,"constraints":{"maxWallClockTime":null},"toolType":null,"jobOutputDirectoryPathSegment":null,)"
    R"("executionState":null,"executionStateTransitionTime":null,)"
    R"("executionInfo":{"startTime":null,"endTime":null,"exitCode":null,)" ERRORS "}}";
constexpr const char* file_server_fields =
    "{" ENVELOPE STATES
    R"(,"vmSize":null,"sshConfiguration":{"publicIPsToAllow":null,"userAccountSettings":)" ACCOUNT
    R"(},"dataDisks":{"diskSizeInGB":null,"diskCount":null,"storageAccountType":null,"cachingType":null},)"
    R"("subnet":{"id":null},"mountSettings":{"mountPoint":null,"fileServerPublicIP":null,)"
    R"("fileServerInternalIP":null}})";
constexpr const char* file_fields =
    R"({"name":null,"fileType":null,"downloadUrl":null,"lastModified":null,"contentLength":null})";

#undef ACCOUNT
#undef CREDENTIALS
#undef VOLUMES
#undef STATES
#undef ENVIRONMENT
#undef ERRORS
#undef ENVELOPE

std::string disks(const Value& row) {
  const std::string count = text_at(row, {"dataDisks", "diskCount"}),
                    size = text_at(row, {"dataDisks", "diskSizeInGB"});
  return count.empty() ? "" : fmt::format("{} x {} Gb", count, size);
}

}  // namespace

const View& workspace_view() {
  static const View view{workspace_fields,
                         {{"Name", field({"name"})},
                          {"Resource Group", field({"resourceGroup"})},
                          {"Location", field({"location"})},
                          {"State", field({"provisioningState"})}}};
  return view;
}

const View& experiment_view() {
  static const View view{experiment_fields,
                         {{"Name", field({"name"})},
                          {"Resource Group", field({"resourceGroup"})},
                          {"Workspace", part({"id"}, "workspaces")},
                          {"State", field({"provisioningState"})}}};
  return view;
}

const View& cluster_view() {
  static const View view{cluster_fields,
                         {{"Name", field({"name"})},
                          {"Resource Group", field({"resourceGroup"})},
                          {"Workspace", part({"id"}, "workspaces")},
                          {"VM Size", field({"vmSize"})},
                          {"State", state("allocationState")},
                          {"Idle", field({"nodeStateCounts", "idleNodeCount"})},
                          {"Running", field({"nodeStateCounts", "runningNodeCount"})},
                          {"Preparing", field({"nodeStateCounts", "preparingNodeCount"})},
                          {"Leaving", field({"nodeStateCounts", "leavingNodeCount"})},
                          {"Unusable", field({"nodeStateCounts", "unusableNodeCount"})}}};
  return view;
}

const View& job_view() {
  static const View view{job_fields,
                         {{"Name", field({"name"})},
                          {"Cluster", part({"cluster", "id"}, "clusters")},
                          {"Cluster RG", part({"cluster", "id"}, "resourcegroups")},
                          {"Cluster Workspace", part({"cluster", "id"}, "workspaces")},
                          {"Tool", field({"toolType"})},
                          {"Nodes", field({"nodeCount"})},
                          {"State", state("executionState")},
                          {"Exit code", field({"executionInfo", "exitCode"})}}};
  return view;
}

const View& file_server_view() {
  static const View view{file_server_fields,
                         {{"Name", field({"name"})},
                          {"Resource Group", field({"resourceGroup"})},
                          {"Size", field({"vmSize"})},
                          {"Disks", disks},
                          {"Public IP", field({"mountSettings", "fileServerPublicIP"})},
                          {"Internal IP", field({"mountSettings", "fileServerInternalIP"})},
                          {"Mount Point", field({"mountSettings", "mountPoint"})}}};
  return view;
}

const View& file_view() {
  static const View view{file_fields,
                         {{"Name", field({"name"})},
                          {"Type", field({"fileType"})},
                          {"Size", field({"contentLength"})},
                          {"Modified", field({"lastModified"})}}};
  return view;
}

const View& setup_file_view() {
  static const View view{
      R"({"name":null,"isDirectory":null,"downloadUrl":null,"contentLength":null})",
      {{"Name", field({"name"})},
       {"Is directory", [](const Value& row) { return row.is_true_at("isDirectory") ? "True" : "False"; }},
       {"Size", field({"contentLength"})}}};
  return view;
}

const View& node_view() {
  static const View view{
      R"({"nodeId":null,"ipAddress":null,"port":null})",
      {{"ID", field({"nodeId"})}, {"IP", field({"ipAddress"})}, {"SSH Port", field({"port"})}}};
  return view;
}

const View& usage_view() {
  static const View view{nullptr,
                         {{"Value", field({"name", "localizedValue"})},
                          {"Usage", field({"currentValue"})},
                          {"Limit", field({"limit"})}}};
  return view;
}

const View& plain_view() {
  static const View view;
  return view;
}

}  // namespace slipway::cli::az
