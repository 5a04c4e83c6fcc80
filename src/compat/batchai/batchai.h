#pragma once
// Azure Batch AI, API version 2018-05-01, over Slipway's control plane.
#include <memory>

#include "api/compat_api.h"
#include "domain/job.h"

namespace slipway::batchai {

struct Options {
  Resources machine;                // whose cores the nodes of a cluster share
  bool containers_on_host = false;  // where no engine is, jobs with a container run without it
  bool always_accepts = false;      // for tests: answers 202 where Batch AI itself did
  Duration accept_after = 2s;       // work that takes longer is answered with 202
};

std::unique_ptr<api::CompatApi> make_batchai_api(api::CompatApiContext context, Options options);

}  // namespace slipway::batchai
