#pragma once
// Something that is due at a time. Timers are not saved: they follow from the records when those are loaded.
#include <compare>
#include <string>
#include <variant>

#include "base/clock.h"
#include "domain/ids.h"
#include "domain/work_key.h"

namespace slipway::control {

template <class Subject, class Tag>
struct DueFor {
  Subject subject;
  friend auto operator<=>(const DueFor&, const DueFor&) = default;
};

// Of tasks and attempts.
using RetryDue = DueFor<TaskRef, struct RetryTag>;
using WallTimeOver = DueFor<AttemptKey, struct WallTimeTag>;
using StartTimeout = DueFor<AttemptKey, struct StartTimeoutTag>;
using EndGraceOver = DueFor<AttemptKey, struct EndGraceTag>;
// Of nodes.
using HeartbeatDue = DueFor<NodeId, struct HeartbeatTag>;
using StartTaskTimeout = DueFor<StartTaskRun, struct StartTaskTimeoutTag>;
using StartTaskRetryDue = DueFor<StartTaskRun, struct StartTaskRetryTag>;
using ReplacementDue = DueFor<StartTaskRun, struct ReplacementTag>;
// Of pools, by "workspace/name".
using PlacingDue = DueFor<std::string, struct PlacingTag>;
using ResizeTimeout = DueFor<std::string, struct ResizeTimeoutTag>;
using RefillDue = DueFor<std::string, struct RefillTag>;
using EvictionDue = DueFor<std::string, struct EvictionTag>;
using AutoscaleDue = DueFor<std::string, struct AutoscaleTag>;
// Of tokens, by id.
using TokenExpiryDue = DueFor<std::string, struct TokenExpiryTag>;
struct SampleDue {  // of all pools
  friend auto operator<=>(const SampleDue&, const SampleDue&) = default;
};

struct RetentionDue {  // of all jobs that have ended
  friend auto operator<=>(const RetentionDue&, const RetentionDue&) = default;
};

struct Timer {
  TimePoint at;
  std::variant<RetryDue, WallTimeOver, HeartbeatDue, PlacingDue, StartTimeout, EndGraceOver, StartTaskTimeout,
               StartTaskRetryDue, ReplacementDue, ResizeTimeout, RefillDue, EvictionDue, AutoscaleDue,
               SampleDue, TokenExpiryDue, RetentionDue>
      what;
  friend auto operator<=>(const Timer&, const Timer&) = default;
};

}  // namespace slipway::control
