#pragma once
// A pool: its record, the scheduler's view of it, its members, and what autoscaling has seen of it.
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "domain/records.h"
#include "domain/usage.h"
#include "formula/formula.h"
#include "sched/plan.h"

namespace slipway::control {

struct SampleRun {  // values that were the same `count` times in a row
  TimePoint first{};
  std::uint32_t count = 0;
  std::array<double, formula::metric_count> values{};
  bool is_saved = false;
};

struct Pool {
  PoolRecord record;
  sched::Queue queue;
  sched::Capacity capacity;
  sched::Sharing sharing;
  std::optional<sched::Reservation> reservation;
  std::uint64_t share_version = 0;  // of the capacity, when it was planned last
  bool changed = true;              // something that could let a task start
  std::set<NodeId> members;
  std::map<NodeState, std::uint32_t> states;  // how many of them are in which
  NodeCounts present;                         // members that are not leaving
  std::uint32_t coming = 0;                   // members that have never joined
  std::uint64_t name_hint = 1;                // no lower number is free for a node's name
  TimePoint refill_at{};                      // low-priority nodes are asked for again
  EvictionRule rule;                          // the one in force
  Random chances{1};                          // of that rule
  TimePoint evict_at{};
  std::uint32_t start_failures = 0;  // nodes whose start task failed, since one succeeded
  TimePoint evaluate_at{};
  std::deque<SampleRun> samples;            // oldest first
  std::uint64_t succeeded = 0, failed = 0;  // tasks, since the last sample
  std::vector<std::string> reasons;         // of this turn, for its history
  UsageMeter usage;
  bool usage_changed = false;
  std::set<sched::UserId> users_changed;          // whose use is to be saved
  std::map<sched::UserId, TimePoint> used_until;  // of what was loaded
};

}  // namespace slipway::control
