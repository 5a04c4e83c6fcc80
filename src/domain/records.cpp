#include "domain/records.h"

#include <array>

#include "domain/protocol.h"

namespace slipway {
namespace {

constexpr std::array<std::string_view, 4> roles{"viewer", "member", "admin", "node"};
constexpr std::array<std::string_view, 5> end_kinds{"exited", "signalled", "start_failed", "lost",
                                                    "not_started"};
constexpr std::array<std::string_view, 7> toolkits{"none",  "tensorflow", "horovod", "mpi",
                                                   "torch", "jax",        "hostfile"};

}  // namespace

std::string_view to_string(Role role) { return roles[static_cast<std::size_t>(role)]; }

std::optional<Role> parse_role(std::string_view text) {
  for (std::size_t i = 0; i < roles.size(); ++i)
    if (roles[i] == text) return static_cast<Role>(i);
  return std::nullopt;
}

std::string_view to_string(Toolkit toolkit) { return toolkits[static_cast<std::size_t>(toolkit)]; }

std::optional<Toolkit> parse_toolkit(std::string_view text) {
  for (std::size_t i = 0; i < toolkits.size(); ++i)
    if (toolkits[i] == text) return static_cast<Toolkit>(i);
  return std::nullopt;
}

std::string_view to_string(ProcessEndKind kind) { return end_kinds[static_cast<std::size_t>(kind)]; }

std::optional<ProcessEndKind> parse_process_end_kind(std::string_view text) {
  for (std::size_t i = 0; i < end_kinds.size(); ++i)
    if (end_kinds[i] == text) return static_cast<ProcessEndKind>(i);
  return std::nullopt;
}

}  // namespace slipway
