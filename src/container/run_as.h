#pragma once
// `slipway node run-as`: turns this process into a command that runs as a user, apart from all others.
//
// As root: the command has the user's ids and groups, no capabilities and no way to new ones; its folders are
// the user's and closed to others; the processes of others are not in its /proc. Elsewhere the ids cannot be
// changed: the command keeps those it has, in user, mount and PID namespaces of its own, where neither the
// processes nor the files of other jobs are seen.
//
// Until the command is the user's nothing of the user's is used: their variables come with a prefix, and
// what SLIPWAY_VIEW mounts for them (view.h) is opened with their rights.
#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipway::container {

struct RunAsOptions {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string workspace;           // its folder, which lets this user through; empty: not below one
  std::string attempt;             // its folder: the user may look into it, nobody else
  std::vector<std::string> own;    // folders that become the user's
  std::vector<std::string> given;  // likewise, with all that is in them
  std::string data;                // hidden where ids cannot be changed, but for these folders
  std::vector<std::string> command;
};

// Before the name of each variable of the command. Those without it are the keeper's, and kept.
inline constexpr std::string_view user_variable_prefix = "SLIPWAY_USER_VARIABLE_";

// Returns only when the command could not be started, after saying why on standard error: 127 when the
// command is not there, else 126. Without root it stays as the parent of the command and ends as that does.
int run_as(const RunAsOptions& options);

// What a process of this one's user cannot be kept from, one line each; empty for root.
std::vector<std::string> run_as_notes();

// The first folder on the way to this one, or itself, that does not let other users through. Empty: all do.
std::string closed_on_the_way(const std::string& folder);

}  // namespace slipway::container
