#pragma once
// Folders that root made become a user's. What a user has put there meanwhile is never followed or given
// away.
#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace slipway::container {

struct GiveOptions {
  bool with_content = false;
};
// The folder is the user's from now on, and closed to others. With its content: what belongs to this
// process's user, no links, and no files that have other names as well.
Result<void> give_folder(const std::string& folder, uid_t uid, gid_t gid, GiveOptions options);
// The group may look into the folder and nobody else; it stays ours.
Result<void> show_folder(const std::string& folder, gid_t gid);
// A file that this descriptor is open on, so that the user may open it again (/dev/stderr).
void give_stream(int descriptor, uid_t uid, gid_t gid);

}  // namespace slipway::container
