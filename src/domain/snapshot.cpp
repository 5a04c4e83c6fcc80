#include "domain/snapshot.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "base/sha256.h"

namespace slipway {
namespace {

// Walks a relative path from `depth` folders below the root. Negative: it left the root on the way.
int walk(std::string_view path, int depth) {
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    if (part == "..") {
      if (--depth < 0) return -1;
    } else if (!part.empty() && part != ".") {
      ++depth;
    }
  }
  return depth;
}

bool is_clean(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.size() > 4096 || path.find('\0') != std::string_view::npos)
    return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

int folders_above(std::string_view path) {
  int count = 0;
  for (const char c : path) count += c == '/';
  return count;
}

}  // namespace

Result<void> validate(const Snapshot& snapshot) {
  const auto wrong = [](const std::string& what) {
    return fail(ErrorCode::invalid, "the snapshot is refused: " + what);
  };
  std::set<std::string_view> links;
  std::string_view before;
  Bytes total = 0;
  for (const SnapshotEntry& entry : snapshot.entries) {
    if (!is_clean(entry.path)) return wrong(fmt::format("'{}' is not a path inside the folder", entry.path));
    if (!before.empty() && entry.path <= before)
      return wrong(fmt::format("'{}' is listed twice or out of order", entry.path));
    before = entry.path;
    // A path through a link would be laid out wherever the link points.
    for (std::size_t slash = entry.path.find('/'); slash != std::string::npos;
         slash = entry.path.find('/', slash + 1))
      if (links.contains(std::string_view(entry.path).substr(0, slash)))
        return wrong(fmt::format("'{}' lies behind a link", entry.path));
    switch (entry.kind) {
      case SnapshotKind::file:
        if (!is_sha256_hex(entry.hash)) return wrong(fmt::format("'{}' has no valid hash", entry.path));
        if (entry.size > snapshot_size_max - total)  // also keeps the sum from running over
          return fail(ErrorCode::too_large,
                      fmt::format("the snapshot has more than {}", format_bytes(snapshot_size_max)));
        total += entry.size;
        break;
      case SnapshotKind::folder: break;
      case SnapshotKind::link:
        links.insert(entry.path);
        if (entry.target.empty() || entry.target.front() == '/' ||
            walk(entry.target, folders_above(entry.path)) < 0)
          return wrong(
              fmt::format("the link '{}' leads out of the folder, to '{}'", entry.path, entry.target));
        break;
    }
  }
  return {};
}

}  // namespace slipway
