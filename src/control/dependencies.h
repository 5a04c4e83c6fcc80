#pragma once
// What tasks of a job wait for of each other, and what follows when one of them has ended.
#include <cstdint>
#include <string>
#include <string_view>

#include "control/turn.h"

namespace slipway::control {

enum class Met : std::uint8_t { not_yet, yes, never };
// Whether what is needed of a group (a task, or all tasks of an array) has come.
Met is_met(Needs needs, const Counts& counts);
bool is_over(const Counts& counts);  // all its tasks have ended

// Tasks that were never placed end together, without rows of their own.
void end_rest(Turn& turn, Job& job, std::uint32_t g, TaskState state, const std::string& reason);
// Called when something of the group has ended: those that wait for it become ready, or never will. `cause`
// says what ended, for those that are skipped: "sweep[3] failed".
void settle_dependents(Turn& turn, Job& job, std::uint32_t g, const std::string& cause);

}  // namespace slipway::control
