#include "domain/state.h"

#include <array>

namespace slipway {
namespace {

constexpr std::array<std::string_view, 6> job_states{"queued",    "running", "stopping",
                                                     "succeeded", "failed",  "cancelled"};
constexpr std::array<std::string_view, 9> task_states{
    "waiting", "queued", "starting", "running", "stopping", "succeeded", "failed", "cancelled", "skipped"};
constexpr std::array<std::string_view, 6> node_states{"joining", "idle", "busy", "draining", "lost", "gone"};
constexpr std::array<std::string_view, 7> end_reasons{"exited",  "signalled", "timed_out",   "node_lost",
                                                      "evicted", "cancelled", "start_failed"};

template <class State, std::size_t N>
std::optional<State> find(const std::array<std::string_view, N>& names, std::string_view text) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == text) return static_cast<State>(i);
  return std::nullopt;
}

}  // namespace

std::string_view to_string(JobState state) { return job_states[static_cast<std::size_t>(state)]; }
std::string_view to_string(TaskState state) { return task_states[static_cast<std::size_t>(state)]; }
std::string_view to_string(NodeState state) { return node_states[static_cast<std::size_t>(state)]; }
std::string_view to_string(EndReason reason) { return end_reasons[static_cast<std::size_t>(reason)]; }

std::optional<JobState> parse_job_state(std::string_view text) { return find<JobState>(job_states, text); }
std::optional<TaskState> parse_task_state(std::string_view text) {
  return find<TaskState>(task_states, text);
}
std::optional<NodeState> parse_node_state(std::string_view text) {
  return find<NodeState>(node_states, text);
}
std::optional<EndReason> parse_end_reason(std::string_view text) {
  return find<EndReason>(end_reasons, text);
}

}  // namespace slipway
