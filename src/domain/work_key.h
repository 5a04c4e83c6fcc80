#pragma once
// What a node runs, by kind: an attempt of a task, the preparation of one, what sends its outputs away, or
// the node's start task.
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "domain/ids.h"

namespace slipway {

struct StartTaskRun {
  NodeId node{0};
  std::uint32_t attempt = 0;
  friend auto operator<=>(const StartTaskRun&, const StartTaskRun&) = default;
};
struct PreparationRun {  // what must end well on a node before the attempt may start
  AttemptKey of;
  friend auto operator<=>(const PreparationRun&, const PreparationRun&) = default;
};
struct PushRun {  // sends what work on a node wrote into the containers it came from; no order names it
  std::variant<AttemptKey, StartTaskRun, PreparationRun> of;
  friend auto operator<=>(const PushRun&, const PushRun&) = default;
};
using WorkKey = std::variant<AttemptKey, StartTaskRun, PreparationRun, PushRun>;

PushRun push_of(const WorkKey& work);  // of a push: itself
WorkKey work_of(const PushRun& push);

// The attempt that is run or prepared; nullptr for others.
const AttemptKey* attempt_of(const WorkKey& key);
inline bool is_preparation(const WorkKey& key) { return std::holds_alternative<PreparationRun>(key); }
inline bool is_start_task(const WorkKey& key) { return std::holds_alternative<StartTaskRun>(key); }

// The form of messages and journals, which agents and keepers of other versions read: four numbers. A start
// task is written as job 0 with the node as its group; a preparation has bit 31 of its attempt set, a push is
// written as what it is of with bit 30. Only code that reads or writes bytes calls these.
AttemptKey pack(const WorkKey& key);
WorkKey unpack(const AttemptKey& packed);

std::string to_string(const WorkKey& key);  // 42.0.7.1
std::optional<WorkKey> parse_work_key(std::string_view text);

}  // namespace slipway
