#pragma once
// The kernel's cgroup files: where this process's own groups lie, and reading and writing their controls.
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipway::keeper {

// The folder of the group this process is in. `not_found` where the hierarchy is not mounted.
Result<std::string> own_cgroup_v2();
Result<std::string> own_cgroup_v1(std::string_view controller);

Result<void> write_control(const std::string& file, std::string_view value);
std::vector<pid_t> group_processes(const std::string& folder);  // of this group alone, not of those below
// The number after `name` in a file of "name number" lines; 0 when there is none.
std::uint64_t control_number(std::string_view content, std::string_view name);
std::vector<std::string> groups_below(const std::string& folder);
bool has_word(std::string_view content, std::string_view word);

Result<void> make_group(const std::string& folder);  // one that exists is fine

// Ends every process in the groups at and below `folder`, waits until they are gone, and removes the groups.
// One that does not exist is fine. An error when some process does not end within ten seconds.
Result<void> clear_cgroup(const std::string& folder);

}  // namespace slipway::keeper
