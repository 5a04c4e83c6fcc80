#pragma once
// Parsed task specs. A job may have 100,000 of them, so only those used last are kept in memory; the others
// are read through a port that the owner of the store gives.
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <utility>

#include "base/result.h"
#include "domain/ids.h"
#include "domain/job.h"

namespace slipway::control {

class SpecCache {
 public:
  using Spec = std::shared_ptr<const TaskSpec>;
  using Read = std::function<Result<TaskSpec>(JobId job, std::uint32_t group)>;
  explicit SpecCache(Read read) : read_(std::move(read)) {}

  Spec find(JobId job, std::uint32_t group);  // nullptr: not kept
  Spec add(JobId job, std::uint32_t group, Spec spec);
  Result<Spec> read(JobId job, std::uint32_t group);  // and keep it

 private:
  using Key = std::pair<JobId, std::uint32_t>;
  using Entries = std::list<std::pair<Key, Spec>>;  // the least recently used last
  Read read_;
  Entries entries_;
  std::map<Key, Entries::iterator> by_key_;
};

}  // namespace slipway::control
