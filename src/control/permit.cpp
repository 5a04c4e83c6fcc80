#include "control/permit.h"

#include <fmt/format.h>

namespace slipway::control {

Result<void> permit(const Caller& caller, const Access& access, std::string_view thing,
                    std::string_view owner) {
  const bool is_own = !owner.empty() && owner == caller.name;
  if (access.allows(caller.role, caller.workspace, is_own)) return {};
  if (access.least() != Least::owner || !access.allows(caller.role, caller.workspace))
    return fail(
        ErrorCode::denied,
        fmt::format("{} may not {} {}: {} is a {} of workspace {}", caller.name, to_string(access.verb()),
                    thing, caller.name, to_string(caller.role), caller.workspace),
        "ask an admin of the workspace");
  if (owner.empty())
    return fail(ErrorCode::denied,
                fmt::format("{} belongs to no user, and {} is not an admin", thing, caller.name),
                "ask an admin of the workspace");
  return fail(ErrorCode::denied, fmt::format("{} belongs to {}, not to {}", thing, owner, caller.name),
              fmt::format("ask {}, or an admin of the workspace", owner));
}

std::optional<RunAs> run_as_of(const Settings& settings, const std::string& workspace,
                               const std::string& user) {
  return settings.run_as.find(workspace, user).value_or(run_as_nobody);
}

Result<void> may_run(const Settings& settings, const Caller& caller, const std::vector<Mount>& mounts) {
  if (settings.run_as.is_empty()) return {};
  if (auto user = settings.run_as.find(caller.workspace, caller.name); !user) return fail(user.error());
  for (const Mount& mount : mounts)
    if (mount.kind == MountKind::command && caller.role != Role::admin)
      return fail(ErrorCode::denied,
                  fmt::format("{} may not mount {} by a command: it would run as the agent, not as {}",
                              caller.name, mount.at, caller.name),
                  "ask an admin of the workspace to make a pool with this mount");
  return {};
}

}  // namespace slipway::control
