#pragma once
// What a key of the node protocol names. On the wire and in the journal of the keeper all three are an
// AttemptKey: a start task is an attempt of job 0, a preparation has bit 31 of its attempt set. Nothing else
// in control knows that.
#include <compare>
#include <cstdint>
#include <variant>

#include "domain/ids.h"
#include "domain/protocol.h"

namespace slipway::control {

struct StartTaskRun {
  NodeId node{0};
  std::uint32_t attempt = 0;
  friend auto operator<=>(const StartTaskRun&, const StartTaskRun&) = default;
};
struct PreparationRun {
  AttemptKey of;
};
using WorkKey = std::variant<AttemptKey, StartTaskRun, PreparationRun>;

inline WorkKey from_wire(const AttemptKey& key) {
  if (key.task.job == JobId{0}) return StartTaskRun{NodeId{key.task.group}, key.attempt};
  if (is_preparation(key)) return PreparationRun{prepared_by(key)};
  return key;
}

inline AttemptKey to_wire(const StartTaskRun& run) {
  return {{JobId{0}, static_cast<std::uint32_t>(run.node.value()), 0}, run.attempt};
}

}  // namespace slipway::control
