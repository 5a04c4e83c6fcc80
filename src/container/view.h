#pragma once
// `slipway node view`: turns this process into a command that sees mounts of its own under one path.
//
// All else is the machine as it is. The path need not exist there: the folder above it that does is covered
// by one with the same entries and the missing steps. What to show is in SLIPWAY_VIEW.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "container/user_access.h"

namespace slipway::container {

struct ViewPlan {
  struct Mount {
    std::string at;      // relative to the root
    std::string source;  // with a user: relative where the service chose it, see open_source()
    bool read_only = false;
    friend bool operator==(const Mount&, const Mount&) = default;
  };
  std::string root;           // where it is seen
  std::string tree;           // what lies there beside the mounts
  std::vector<Mount> mounts;  // inner ones after outer ones
  friend bool operator==(const ViewPlan&, const ViewPlan&) = default;
};

inline constexpr const char* view_variable = "SLIPWAY_VIEW";
std::string format(const ViewPlan& plan);
std::optional<ViewPlan> parse_view(std::string_view text);

// Whether a process of this user can have such a view; never with SLIPWAY_NO_NAMESPACES set. Asks the kernel;
// well under a millisecond.
bool can_view(const std::string& root);

// Shows it to this process, which has a mount namespace of its own. With a user: by their rights. A user
// chooses what is covered, /etc too, so nothing may be looked up with more rights afterwards.
Result<void> show_view(const ViewPlan& plan, const std::optional<MountAccess>& access);

// Without SLIPWAY_VIEW the command is run as it is. Returns only when it could not be started, after saying
// why on standard error: 127 when the command is not there, else 126.
int view(const std::vector<std::string>& command);

}  // namespace slipway::container
