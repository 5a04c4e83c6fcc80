#include "domain/state.h"

#include "domain/names.h"

namespace slipway {
namespace {

constexpr Names<JobState, 6> job_states{"queued", "running", "stopping", "succeeded", "failed", "cancelled"};
constexpr Names<TaskState, 9> task_states{"waiting",   "queued", "starting",  "running", "stopping",
                                          "succeeded", "failed", "cancelled", "skipped"};
constexpr Names<NodeState, 9> node_states{"joining", "idle",     "busy",    "draining",    "lost",
                                          "gone",    "starting", "evicted", "start_failed"};
constexpr Names<EndReason, 9> end_reasons{"exited",      "signalled", "timed_out",    "node_lost",
                                          "evicted",     "cancelled", "start_failed", "preparation_failed",
                                          "outputs_lost"};

}  // namespace

std::string_view to_string(JobState state) { return job_states.of(state); }
std::string_view to_string(TaskState state) { return task_states.of(state); }
std::string_view to_string(NodeState state) { return node_states.of(state); }
std::string_view to_string(EndReason reason) { return end_reasons.of(reason); }

std::optional<JobState> parse_job_state(std::string_view text) { return job_states.find(text); }
std::optional<TaskState> parse_task_state(std::string_view text) { return task_states.find(text); }
std::optional<NodeState> parse_node_state(std::string_view text) { return node_states.find(text); }
std::optional<EndReason> parse_end_reason(std::string_view text) { return end_reasons.find(text); }

}  // namespace slipway
