#include "domain/records.h"

#include "domain/names.h"
#include "domain/protocol.h"

namespace slipway {
namespace {

constexpr Names<ProcessEndKind, 5> end_kinds{"exited", "signalled", "start_failed", "lost", "not_started"};
constexpr Names<Toolkit, 8> toolkits{"none",  "tensorflow", "horovod",  "mpi",
                                     "torch", "jax",        "hostfile", "ssh"};
constexpr Names<MountKind, 5> mount_kinds{"datastore", "path", "command", "scratch", "shared"};
constexpr Names<NodeStart::State, 5> start_states{"none", "waiting", "running", "succeeded", "failed"};

}  // namespace

std::vector<std::string> AttemptRecord::node_names() const {
  std::vector<std::string> names;
  for (const AttemptNode& node : nodes) names.push_back(node.name);
  return names;
}

std::string_view to_string(Toolkit toolkit) { return toolkits.of(toolkit); }
std::optional<Toolkit> parse_toolkit(std::string_view text) { return toolkits.find(text); }
std::string_view to_string(MountKind kind) { return mount_kinds.of(kind); }
std::optional<MountKind> parse_mount_kind(std::string_view text) { return mount_kinds.find(text); }
std::string_view to_string(ProcessEndKind kind) { return end_kinds.of(kind); }
std::optional<ProcessEndKind> parse_process_end_kind(std::string_view text) { return end_kinds.find(text); }
std::string_view to_string(NodeStart::State state) { return start_states.of(state); }
std::optional<NodeStart::State> parse_start_state(std::string_view text) { return start_states.find(text); }

}  // namespace slipway
