#pragma once
// Read-only bytes of a file: mapped when plain, decompressed once when gzip.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace slipway::train {

struct Bytes8 {  // a view and what keeps it valid
  std::span<const std::uint8_t> view;
  std::shared_ptr<const void> owner;
};

// The file mapped into memory; an empty file gives an empty view.
Result<Bytes8> map_file(const std::string& path);

// The content of a gzip stream. `size_max` bounds what a hostile file can make us allocate; `name` is for the
// message.
Result<std::vector<std::uint8_t>> gunzip(std::span<const std::uint8_t> packed, std::size_t size_max,
                                         const std::string& name);

// `path` if it exists (mapped), else `path`.gz (decompressed). The unpacked form is kept in `cache_folder`
// and mapped from there the next time, so that a restarted worker is ready at once; an empty or unwritable
// folder only costs the time to unpack again.
Result<Bytes8> open_data_file(const std::string& path, const std::string& cache_folder);

}  // namespace slipway::train
