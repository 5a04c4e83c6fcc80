#pragma once
// Checkpoints of the track store in a SQLite file of its own: WAL, synchronous=FULL, one transaction each.
#include <memory>
#include <string>

#include "track/image.h"

namespace slipway::store {

Result<std::unique_ptr<track::Image>> open_track_image(const std::string& path);

}  // namespace slipway::store
