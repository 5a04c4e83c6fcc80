// Manifests of code that travels with a job: what is accepted is laid out as files on nodes.
#include "domain/snapshot.h"

#include "base/sha256.h"
#include "target.h"
#include "wire/snapshot.h"

using namespace slipway;

namespace {

bool stays_inside(std::string_view path) {
  if (path.empty() || path.front() == '/') return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (path.substr(begin, end - begin) == "..") return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto snapshot = wire::parse_snapshot(fuzz::text(data, size));
  fuzz::check_explained(snapshot);
  if (!snapshot) return 0;
  fuzz::check_round_trip(
      *snapshot, [](const Snapshot& one) { return wire::format(one); }, wire::parse_snapshot);
  const auto valid = validate(*snapshot);
  fuzz::check_explained(valid);
  if (!valid) return 0;
  Bytes left = snapshot_size_max;
  for (const SnapshotEntry& entry : snapshot->entries) {
    SLIPWAY_CHECK(stays_inside(entry.path));
    if (entry.kind != SnapshotKind::file) continue;
    SLIPWAY_CHECK(is_sha256_hex(entry.hash));
    SLIPWAY_CHECK(entry.size <= left);  // the sum must not have wrapped around
    left -= entry.size;
  }
  return 0;
}
