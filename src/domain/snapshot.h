#pragma once
// A folder of code as it was at submit: a manifest of paths, and contents stored once by their SHA-256.
#include <cstdint>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"

namespace slipway {

enum class SnapshotKind : std::uint8_t { file, folder, link };

struct SnapshotEntry {
  std::string path;  // relative, '/' between parts, no '.', '..' or empty part
  SnapshotKind kind = SnapshotKind::file;
  bool executable = false;  // files only
  std::string hash;         // files only: SHA-256 of the content, lower-case hexadecimal
  Bytes size = 0;           // files only
  std::string target;       // links only; never leads out of the folder
  friend bool operator==(const SnapshotEntry&, const SnapshotEntry&) = default;
};

struct Snapshot {
  std::vector<SnapshotEntry> entries;  // sorted by path, so that equal folders have equal manifests
  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

constexpr Bytes snapshot_size_max = 2ull << 30;

constexpr Bytes manifest_size_max = Bytes{64} << 20;  // it is read into memory

// Refuses absolute paths, '..', duplicates, what lies below a link or a file, links that lead out and
// malformed hashes: a manifest comes from outside.
Result<void> validate(const Snapshot& snapshot);

// The part of it that asks no hashes: a link may lead nowhere, but neither out of the folder, by itself or
// through other links, nor in a circle.
Result<void> check_links(const Snapshot& snapshot);

}  // namespace slipway
