#pragma once
// What is masked in the output of a task: the secrets it was given, where the service is set to.
#include <memory>

#include "api/masker.h"
#include "base/seal.h"
#include "control/read_store.h"
#include "domain/job.h"

namespace slipway::api {

class OutputMask {
 public:
  // Without a sealer nothing is masked.
  explicit OutputMask(std::shared_ptr<const Sealer> sealer = {}) : sealer_(std::move(sealer)) {}

  bool is_on() const { return sealer_ != nullptr; }
  // For the output of any attempt: with the values that its secrets had before.
  Result<Masker> of(control::ReadStore& store, const JobRecord& job, const TaskSpec& spec) const;
  // Some lines of it.
  Result<void> apply(control::ReadStore& store, const JobRecord& job, const TaskSpec& spec,
                     std::string& lines) const;

 private:
  std::shared_ptr<const Sealer> sealer_;
};

}  // namespace slipway::api
