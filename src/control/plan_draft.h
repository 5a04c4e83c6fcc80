#pragma once
// Where the tasks of a job would be placed now, were it submitted, and what the others would wait for. Pure:
// a plan over the copy of the live state that a draft was checked in (live.h).
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/live.h"

namespace slipway::control {

struct DraftPlan {
  static constexpr std::size_t placements_max = 100;  // shown of one entry of the job's list
  struct Entry {
    std::string task;  // or an array
    std::uint64_t tasks = 0;
    std::uint64_t placed = 0;
    std::vector<std::vector<std::string>> placements;  // nodes of the first that are placed
    std::string reason;                                // why the others wait; empty where all are placed
  };
  std::string pool;  // empty: it would be made
  std::vector<std::string> notes;
  std::vector<Entry> entries;
};

// `view.draft` is what was asked for. As an error: why it would be refused.
Result<DraftPlan> plan_draft(const LiveView& view);

}  // namespace slipway::control
