#pragma once
// What a workspace's tags say of jobs with a container where no engine is. Pure.
//
//   slipway.containers, slipway.containers.<cluster>   host: they run without it; engine (default): they fail
//   slipway.image.<image>                              a folder of an environment (with bin), or rootfs:PATH
#include <string>

#include "domain/job.h"

namespace slipway::batchai {

struct ContainerRule {
  bool on_host = false;     // it may run without its container
  std::string environment;  // whose bin comes first in PATH there; empty: the node's own
  std::string rootfs;       // or the root file system to run in, which needs no engine
};

// The cluster's own tag comes before that of all. An image is named as a job names it, or without its tag;
// one that is named may run on the host.
ContainerRule container_rule(const Tags& tags, const std::string& cluster, const std::string& image);

// Without the tags of a cluster that is gone: a later one of its name is another.
Tags without_cluster(Tags tags, const std::string& cluster);

// What makes the environment the first one of a shell; empty where there is none.
std::string activation(const std::string& environment);

}  // namespace slipway::batchai
