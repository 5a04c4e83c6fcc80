#include "control/task_state.h"

#include <cstddef>

#include "base/check.h"

namespace slipway::control {
namespace {

using enum TaskState;
constexpr std::nullopt_t no = std::nullopt;

// By state, then by event in the order of TaskEvent. Only tasks that wait are skipped; only tasks with an
// attempt succeed or fail; what succeeded stays so.
constexpr std::optional<TaskState> table[][std::variant_size_v<TaskEvent>] = {
    //          Met  DepFailed  Placed  Started  Stopping  Requeued  Succeeded  Failed  Cancelled  Reopened
    /* waiting */ {queued, skipped, no, no, no, no, no, no, cancelled, no},
    /* queued */ {no, no, starting, no, no, no, no, no, cancelled, no},
    /* starting */ {no, no, no, running, stopping, queued, succeeded, failed, cancelled, no},
    /* running */ {no, no, no, no, stopping, queued, succeeded, failed, cancelled, no},
    /* stopping */ {no, no, no, no, no, queued, succeeded, failed, cancelled, no},
    /* succeeded */ {no, no, no, no, no, no, no, no, no, no},
    /* failed */ {no, no, no, no, no, no, no, no, no, waiting},
    /* cancelled */ {no, no, no, no, no, no, no, no, no, waiting},
    /* skipped */ {no, no, no, no, no, no, no, no, no, waiting},
};
static_assert(std::size(table) == static_cast<std::size_t>(skipped) + 1);

}  // namespace

std::optional<TaskState> next(TaskState state, const TaskEvent& event) {
  return table[static_cast<std::size_t>(state)][event.index()];
}

void advance(TaskState& state, const TaskEvent& event) {
  const std::optional<TaskState> after = next(state, event);
  SLIPWAY_CHECK(after.has_value());
  state = *after;
}

TaskEvent ending(TaskState state) {
  switch (state) {
    case succeeded: return TaskSucceeded{};
    case failed: return TaskFailed{};
    case cancelled: return TaskCancelled{};
    case skipped: return DependencyFailed{};
    default: SLIPWAY_CHECK(false);
  }
}

}  // namespace slipway::control
