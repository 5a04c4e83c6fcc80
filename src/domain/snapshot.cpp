#include "domain/snapshot.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/sha256.h"

namespace slipway {
namespace {

constexpr std::size_t path_size_max = 4095;  // the system's own limits
constexpr int links_followed_max = 40;

bool is_clean(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.size() > path_size_max ||
      path.find('\0') != std::string_view::npos)
    return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

// Follows links as the system does: part by part, and through every link on the way. By its letters
// `a/b/d/..` is `a/b`, but where a/b/d is a link to `../..` it is what lies above the folder.
class Links {
 public:
  explicit Links(const Snapshot& snapshot) {
    for (const SnapshotEntry& entry : snapshot.entries)
      if (entry.kind == SnapshotKind::link) links_.emplace(entry.path, Link{&entry, {}});
  }

  Result<void> check() {
    for (auto& [path, link] : links_)
      if (auto end = follow(link, 1); !end) return fail(end.error());
    return {};
  }

 private:
  struct End {
    std::string path;  // without links, '.' and '..'; empty: the folder itself
    int followed = 1;  // links on the way, this one included
  };
  struct Link {
    const SnapshotEntry* entry;
    std::optional<End> end;  // kept, so that each is followed once, however many lead through it
  };

  Result<End> follow(Link& link, int depth) {
    if (link.end) return *link.end;
    const SnapshotEntry& entry = *link.entry;
    const auto impossible = [&] {
      return wrong(fmt::format("the link '{}' has a target that no link can have", entry.path));
    };
    const auto leads_out = [&](const std::string& how) {
      return wrong(
          fmt::format("the link '{}' leads out of the folder, to '{}'{}", entry.path, entry.target, how));
    };
    // The system would read no further than a zero byte, and so see another target than we do.
    if (entry.target.size() > path_size_max || entry.target.find('\0') != std::string::npos)
      return impossible();
    if (entry.target.empty() || entry.target.front() == '/') return leads_out("");
    End end{parent_of(entry.path), 1};
    std::string through;
    for (std::size_t begin = 0; begin < entry.target.size();) {
      const std::size_t slash = std::min(entry.target.find('/', begin), entry.target.size());
      const std::string_view part = std::string_view(entry.target).substr(begin, slash - begin);
      begin = slash + 1;
      if (part.empty() || part == ".") continue;
      if (part == "..") {
        if (end.path.empty()) return leads_out(through);
        end.path = parent_of(end.path);
        continue;
      }
      if (!end.path.empty()) end.path += '/';
      end.path += part;
      if (end.path.size() > path_size_max) return impossible();
      const auto next = links_.find(end.path);
      if (next == links_.end()) continue;
      const auto too_many = [&] {
        return wrong(fmt::format("the link '{}' to '{}' leads in a circle or through more than {} links",
                                 entry.path, entry.target, links_followed_max));
      };
      if (depth == links_followed_max) return too_many();
      Result<End> further = follow(next->second, depth + 1);
      if (!further) return further;
      end.path = std::move(further->path);
      end.followed += further->followed;
      if (end.followed > links_followed_max) return too_many();
      through = fmt::format(", through the link '{}'", next->first);
    }
    link.end = end;
    return end;
  }

  static tl::unexpected<Error> wrong(std::string what) { return fail(ErrorCode::invalid, std::move(what)); }

  std::map<std::string_view, Link> links_;
};

}  // namespace

Result<void> check_links(const Snapshot& snapshot) { return Links(snapshot).check(); }

Result<void> validate(const Snapshot& snapshot) {
  const auto wrong = [](const std::string& what) {
    return fail(ErrorCode::invalid, "the snapshot is refused: " + what);
  };
  std::set<std::string_view> no_folders;
  std::string_view before;
  Bytes total = 0;
  for (const SnapshotEntry& entry : snapshot.entries) {
    if (!is_clean(entry.path)) return wrong(fmt::format("'{}' is not a path inside the folder", entry.path));
    if (!before.empty() && entry.path <= before)
      return wrong(fmt::format("'{}' is listed twice or out of order", entry.path));
    before = entry.path;
    // A path through a link would be laid out wherever the link points. Sorted: what is above comes before.
    for (std::size_t slash = entry.path.find('/'); slash != std::string::npos;
         slash = entry.path.find('/', slash + 1))
      if (const auto above = no_folders.find(std::string_view(entry.path).substr(0, slash));
          above != no_folders.end())
        return wrong(fmt::format("'{}' lies below '{}', which is no folder", entry.path, *above));
    if (entry.kind != SnapshotKind::folder) no_folders.insert(entry.path);
    switch (entry.kind) {
      case SnapshotKind::file:
        if (!is_sha256_hex(entry.hash)) return wrong(fmt::format("'{}' has no valid hash", entry.path));
        if (entry.size > snapshot_size_max - total)  // also keeps the sum from running over
          return fail(ErrorCode::too_large,
                      fmt::format("the snapshot has more than {}", format_bytes(snapshot_size_max)));
        total += entry.size;
        break;
      case SnapshotKind::folder:
      case SnapshotKind::link: break;
    }
  }
  if (auto inside = check_links(snapshot); !inside) return wrong(inside.error().what);
  return {};
}

}  // namespace slipway
