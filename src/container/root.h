#pragma once
// Puts this process into a file tree made of a root file system and parts of the machine.
//
// Namespaces: mount, and user where the caller is not privileged (with the caller's own ids). Not pid and not
// network: the process stays the one its parent started, and ranks reach each other as without a container.
#include <string>
#include <vector>

#include "base/result.h"
#include "container/plan.h"

namespace slipway::container {

// A folder read as plan() wants it.
ReadFolder read_from(const std::string& rootfs);

// Error unless the folder looks like the root of a system.
Result<void> check_rootfs(const std::string& rootfs, const std::string& given);

// After this the process sees only the tree, stands in `working_folder`, and neither it nor what it executes
// can gain privileges; administrator's capabilities that a training program has no use for are gone. Must be
// called while the process has one thread. After an error the process is fit only to say it and exit.
Result<void> enter_root(const std::string& rootfs, const std::vector<Step>& steps,
                        const std::string& working_folder, const std::vector<Share>& shares);

}  // namespace slipway::container
