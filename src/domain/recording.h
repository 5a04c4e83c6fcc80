#pragma once
// What a service has on record of a time: the pools, when nodes came and went, and what was run on them.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "domain/job.h"
#include "domain/records.h"

namespace slipway {

struct RecordedPool {
  std::string name;
  Resources per_node;
  Fill fill = Fill::pack;
  std::uint32_t slots_per_node = 0;
};

struct NodeStay {  // from its joining to its going; a node may have several
  std::string node;
  std::string pool;
  Resources total;
  bool low_priority = false;
  TimePoint from{};
  std::optional<TimePoint> to;
};

struct RecordedAttempt {
  std::uint32_t group = 0;  // of the job's list of tasks
  std::uint32_t index = 0;
  std::uint32_t number = 1;
  std::uint32_t nodes = 1;
  TimePoint placed_at{};
  std::optional<TimePoint> started_at;
  std::optional<TimePoint> ended_at;
  std::optional<EndReason> end;
  int exit_code = 0;  // not 0 also where a signal ended it
};

struct RecordedJob {
  JobSpec spec;
  std::string id;
  std::string user;
  JobState state = JobState::queued;
  TimePoint submitted_at{};
  std::optional<TimePoint> ended_at;
  TaskCounts counts;
  std::vector<RecordedAttempt> attempts;
};

struct Recording {
  std::vector<RecordedPool> pools;
  std::vector<NodeStay> stays;
  std::vector<RecordedJob> jobs;  // in the order they were submitted
};

}  // namespace slipway
