#pragma once
// The states of jobs, tasks, attempts and nodes, by the names users see.
#include <cstdint>
#include <optional>
#include <string_view>

namespace slipway {

enum class JobState : std::uint8_t { queued, running, stopping, succeeded, failed, cancelled };

enum class TaskState : std::uint8_t {
  waiting,   // for the tasks it depends on
  queued,    // for capacity, or for its next try
  starting,  // placed; its nodes have orders
  running,
  stopping,  // ordered to stop
  succeeded,
  failed,
  cancelled,
  skipped  // a task it depends on did not succeed
};

// Numbers are stored: new ones go to the end.
enum class NodeState : std::uint8_t {
  joining,  // its agent is not heard of yet, or has old processes to end first
  idle,
  busy,
  draining,  // takes no new work
  lost,
  gone,
  starting,     // its start task runs
  evicted,      // ordered to leave; what runs there has until the deadline
  start_failed  // its start task failed: it takes no work until reset
};

// Why an attempt ended.
enum class EndReason : std::uint8_t {
  exited,              // by itself, with an exit code
  signalled,           // killed by a signal we did not send
  timed_out,           // max_wall_time passed
  node_lost,           // with its node, or with the keeper that watched it
  evicted,             // taken off its node for a reason that is not the user's
  cancelled,           // the user asked
  start_failed,        // a process could not be started
  preparation_failed,  // what has to run on every node first did not end well
  outputs_lost,        // what it wrote could not be sent where its mounts came from
};

std::string_view to_string(JobState state);
std::string_view to_string(TaskState state);
std::string_view to_string(NodeState state);
std::string_view to_string(EndReason reason);
std::optional<JobState> parse_job_state(std::string_view text);
std::optional<TaskState> parse_task_state(std::string_view text);
std::optional<NodeState> parse_node_state(std::string_view text);
std::optional<EndReason> parse_end_reason(std::string_view text);

constexpr bool is_terminal(JobState state) { return state >= JobState::succeeded; }
constexpr bool is_terminal(TaskState state) { return state >= TaskState::succeeded; }
// Placed on nodes: it holds resources or is about to.
constexpr bool is_placed(TaskState state) {
  return state == TaskState::starting || state == TaskState::running || state == TaskState::stopping;
}

}  // namespace slipway
