#pragma once
// Root file systems that come as tarballs, unpacked once per machine and content.
#include <cstdint>
#include <string>

#include "base/quantity.h"
#include "base/result.h"
#include "container/shares.h"

namespace slipway::container {

// Where they are kept: SLIPWAY_NODE_CACHE, else the user's cache folder, else a folder beside the tarball.
std::string cache_folder(const Environment& environment, const std::string& tarball);

// What is unpacked of a tarball at most. Images are compressed to a third; what becomes a hundred times as
// large is made to fill the disk.
struct UnpackLimits {
  Bytes growth = 20;            // times its own size
  Bytes free = Bytes{1} << 30;  // and so much whatever its size
  Bytes file_max = Bytes{64} << 30;
  std::uint64_t files_max = 2'000'000;  // folders and links are files
  std::uint64_t depth_max = 100;        // folders on the way to a file
};
// With what the machine's settings say: SLIPWAY_UNPACK_GROWTH, SLIPWAY_UNPACK_FILE_MAX,
// SLIPWAY_UNPACK_FILES_MAX, SLIPWAY_UNPACK_DEPTH_MAX. Error `invalid` where one of them is no number.
Result<UnpackLimits> unpack_limits(const Environment& environment);

// The folder the tarball is unpacked in. The first caller unpacks, others wait for it; the folder appears
// whole or not at all, also when a caller is killed or the power fails. Known by path, size and time of
// change, so a tarball that is replaced is unpacked anew; what an older one left is not removed. Nothing in a
// tarball can write outside of the folder: absolute names and `..` are refused, device files are left out
// or cannot be used.
Result<std::string> unpacked(const std::string& tarball, const Environment& environment,
                             const UnpackLimits& limits);

}  // namespace slipway::container
