#pragma once
// Paths that come from outside, opened so that neither ".." nor any link can lead out of a folder.
#include <string>

#include "base/file.h"
#include "base/result.h"

namespace slipway {

// Opens `path` (relative; empty or "." is the folder itself) below the folder `root`. `flags` as for open(2),
// O_CLOEXEC is added. Error `denied` when the path leads out, `not_found` when there is nothing.
Result<Fd> open_beneath(int root, const std::string& path, int flags);
// The folder `path` below `root`, made on the way where it is not there.
Result<Fd> make_folder_beneath(int root, const std::string& path, unsigned mode = 0755);

}  // namespace slipway
