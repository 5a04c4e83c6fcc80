#pragma once
// The addresses of Batch AI's resources: what a request's path asks for, the ids that answers carry, and the
// keys things are kept under. Paths are compared without case; what a thing is called is kept as it was first
// written.
#include <optional>
#include <string>
#include <string_view>

#include "compat/batchai/cloud_error.h"

namespace slipway::batchai {

enum class Noun {
  operations,        // GET /providers/Microsoft.BatchAI/operations
  usages,            // of a location
  operation_result,  // a long-running operation, as Azure-AsyncOperation names it
  operation_status,  // the same, as Location names it
  workspace,
  cluster,
  experiment,
  job,
  file_server
};

// The parts of a resource's id. Those that its kind does not have are empty.
struct ResourceId {
  std::string subscription;
  std::string group;
  std::string workspace;
  std::string experiment;
  std::string name;  // of a cluster, job or file server
};

struct Target {
  Noun noun = Noun::workspace;
  bool is_list = false;  // of the workspace, the experiment or (workspaces) the subscription or group
  std::string action;    // terminate, listOutputFiles, listRemoteLoginInformation, in this spelling
  ResourceId resource;
  std::string location;       // of usages and operations
  std::string operation;      // id of a long-running one
  bool is_old_shape = false;  // without workspace, as before 2018-05-01
};

// Whether the path belongs to this API.
bool is_ours(std::string_view path);
// What the path of a request, still encoded, asks for. 404 for what is no resource, 400 for names that cannot
// be.
Answer<Target> parse_path(std::string_view path);
// A resource's id as others write it in bodies, in any case.
std::optional<Target> parse_id(std::string_view id);

std::string id_of(Noun noun, const ResourceId& resource);
std::string_view type_of(Noun noun);   // Microsoft.BatchAI/workspaces/clusters
std::string_view word_for(Noun noun);  // "file server", for messages
CloudError not_found(Noun noun, std::string_view name);

// What things are kept under: lower-case.
std::string key_of(Noun noun, const ResourceId& resource);     // lab/ml/main, lab/ml/main/digits/hello
std::string folder_of(Noun noun, const ResourceId& resource);  // batchai/lab/ml/main/experiments/digits
// <sub>$<rg>$<ws>$<experiment>$<job>
std::string dollar_id(Noun noun, const ResourceId& resource);

}  // namespace slipway::batchai
