#pragma once
// The folders of the machine that a contained process keeps, at the paths they have outside.
#include <string>
#include <vector>

#include "base/subprocess.h"

namespace slipway::container {

struct Share {
  std::string path;  // absolute, without . and ..
  bool read_only = false;

  friend bool operator==(const Share&, const Share&) = default;
};

// The working folder, the attempt's folder, SLIPWAY_OUTPUTS, SLIPWAY_SHARED, SLIPWAY_CHECKPOINT_DIR, the
// folder of SLIPWAY_HOSTFILE, and `more` (PATH or PATH:ro). Sorted; one that lies in another of the list is
// dropped unless it is to be read-only. The root folder is never one of them.
std::vector<Share> shares(const std::string& working_folder, const Environment& environment,
                          const std::vector<std::string>& more = {});

// Whether `path` is `folder` or lies in it; both clean and absolute.
bool is_within(const std::string& path, const std::string& folder);

}  // namespace slipway::container
