#pragma once
// Deletes a folder of any size and depth in bounded steps, so that a service that is killed meanwhile, or has
// other work for the disk, loses a step at most. Links are removed, never followed.
#include <cstddef>
#include <string>

#include "base/result.h"

namespace slipway {

// Removes up to `entries_max` entries; true: something is left. A folder that is not there is nothing left.
Result<bool> remove_some(const std::string& folder, std::size_t entries_max);

// Removes the folder and those right in it, as far as they are empty.
void remove_empty_folders(const std::string& folder);

}  // namespace slipway
