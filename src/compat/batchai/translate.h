#pragma once
// Bodies that were accepted, as what the core is asked for. Pure: no clock, no randomness, no controller.
#include <optional>
#include <string>
#include <string_view>

#include "base/seal.h"
#include "compat/batchai/body.h"
#include "compat/batchai/containers.h"
#include "compat/batchai/layout.h"
#include "compat/batchai/paths.h"
#include "domain/job.h"
#include "domain/pool.h"

namespace slipway::batchai {

// What pools and jobs are tagged with, to be found again.
namespace tag {
inline constexpr const char* prefix = "batchai.";                // of all of them
inline constexpr const char* id = "batchai.id";                  // of a pool: key of its cluster
inline constexpr const char* job = "batchai.job";                // key of the job
inline constexpr const char* experiment = "batchai.experiment";  // of a job: key of its experiment
inline constexpr const char* cluster = "batchai.cluster";        // of a job: key of its cluster
inline constexpr const char* body = "batchai.body";              // without secrets
inline constexpr const char* print = "batchai.print";            // of the body with them
inline constexpr const char* uuid = "batchai.uuid";
inline constexpr const char* resource_id = "batchai.place";    // sub/rg/ws/…, as first written
inline constexpr const char* folders = "batchai.folders";      // of a job: where its outputs go
inline constexpr const char* mounts = "batchai.mounts";        // of a job: what lies under its mount root
inline constexpr const char* no_engine = "batchai.no_engine";  // of a job: why its container cannot start
inline constexpr const char* gpus = "batchai.gpus";            // of a pool: what its node class promises
}  // namespace tag

inline const std::string& tag_of(const Tags& tags, const char* name) {  // empty where there is none
  static const std::string none;
  const auto found = tags.find(name);
  return found == tags.end() ? none : found->second;
}

// GPUs of a node class: of Azure's names, and of gpuN and cpu. Nothing is known of other names.
std::optional<std::uint32_t> gpus_of_class(std::string_view vm_size);
// NC, NCv3, D, … of STANDARD_NC6S_V3; empty where it is none of Azure's.
std::string family_of_class(std::string_view vm_size);

struct ClusterContext {
  ResourceId resource;
  std::string uuid;
  std::string pool;   // the name it gets in the core
  Resources machine;  // whose cores the nodes share
  Duration idle_timeout = 5min;
  const FileServers& servers;
  const Sealer& sealer;
};
// Fills in the fields that the server sets at a cluster's creation.
void complete_cluster(Value& body);
Answer<PoolRequest> translate_cluster(const Value& body, const ClusterContext& context);
// A change of how many nodes there are; `target` is what the pool has now.
PoolRequest translate_scale(const Value& body, const NodeCounts& target);

struct JobContext {
  ResourceId resource;
  std::string uuid;
  const PoolRecord& pool;  // of its cluster
  bool on_host = false;    // where it names a container, run without one
  const FileServers& servers;
  const Sealer& sealer;
  ContainerRule host = {};  // on the host, in this environment
};
void complete_job(Value& body);
Answer<JobSpec> translate_job(const Value& body, const JobContext& context);
// The same job where no node can start its container: it fails with that reason.
JobSpec without_engine(JobSpec spec, const std::string& image, const std::string& why);

ResourceId parse_resource_id(Noun noun, std::string_view text);  // of tag::resource_id
std::string format_resource_id(Noun noun, const ResourceId& resource);

}  // namespace slipway::batchai
