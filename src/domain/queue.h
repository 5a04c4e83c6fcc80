#pragma once
// What waits in a pool, in the order of the turns, as people see it.
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "domain/job.h"

namespace slipway {

struct QueueLine {          // of one job, for those of its tasks that ask for the same
  std::uint32_t place = 0;  // from 1
  JobId job;
  std::string name;
  std::string pool;
  std::string user;
  int priority = 0;
  std::uint64_t tasks = 0;  // that wait
  std::uint32_t nodes = 1;  // each needs
  Resources per_node;
  TimePoint since{};  // the next of them waits
  std::string reason;
};

}  // namespace slipway
