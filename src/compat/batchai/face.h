#pragma once
// Azure Batch AI, API version 2018-05-01, over Slipway's control plane.
#include <memory>

#include "api/face.h"
#include "domain/job.h"

namespace slipway::batchai {

struct FaceOptions {
  Resources machine;                // whose cores the nodes of a cluster share
  bool containers_on_host = false;  // where no engine is, jobs with a container run without it
  bool always_accepts = false;      // for tests: answers 202 where Batch AI itself did
  Duration patience{2'000'000};     // how long an answer waits for work to end before it becomes 202
};

std::unique_ptr<api::Face> make_face(api::FaceTools tools, FaceOptions options);

}  // namespace slipway::batchai
