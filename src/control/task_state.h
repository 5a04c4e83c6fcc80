#pragma once
// The lifecycle of a task: its states are in domain/state.h, as clients see them.
//
//   waiting ─▶ queued ─▶ starting ─▶ running ─▶ stopping ─▶ queued again, or a terminal state
//      ▲                                                                          │
//      └── it runs again, as somebody asked (rerun.h): failed, cancelled, skipped ┘
#include <optional>
#include <variant>

#include "domain/state.h"

namespace slipway::control {

struct DependenciesMet {};   // all tasks it depends on have succeeded
struct DependencyFailed {};  // one of them never will
struct TaskPlaced {};        // an attempt of it has nodes
struct TaskStarted {};       // all processes of the attempt run
struct TaskStopping {};      // the attempt is being stopped
struct TaskRequeued {};      // the attempt ended, and another is due
struct TaskReopened {};      // it ended without success and is to run again
struct TaskSucceeded {};
struct TaskFailed {};
struct TaskCancelled {};
using TaskEvent = std::variant<DependenciesMet, DependencyFailed, TaskPlaced, TaskStarted, TaskStopping,
                               TaskRequeued, TaskSucceeded, TaskFailed, TaskCancelled, TaskReopened>;

// The next state, or nullopt where the event cannot happen in this state.
std::optional<TaskState> next(TaskState state, const TaskEvent& event);

// As next(); an event that cannot happen is a bug of the caller.
void advance(TaskState& state, const TaskEvent& event);

// The event that leads to this terminal state.
TaskEvent ending(TaskState state);

}  // namespace slipway::control
