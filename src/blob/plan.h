#pragma once
// What a pull or a push does, decided from three lists: what is there, what is here, and what both were when
// they were last the same. Pure.
//
// A file changed here when its size or time differs from what was noted, there when its ETag does. Who syncs
// last wins: a pull takes the container's version of a file that changed on both sides, a push the folder's,
// and both name it as a conflict. What changed on one side only is never overwritten by the other.
#include <cstdint>
#include <string>
#include <vector>

#include "blob/xml.h"

namespace slipway::blob {

struct LocalFile {
  std::string name;  // relative, with '/'
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  friend bool operator==(const LocalFile&, const LocalFile&) = default;
};

struct KnownFile {  // a file that was the same on both sides
  LocalFile here;
  std::string etag;
  std::string md5;  // base64
  friend bool operator==(const KnownFile&, const KnownFile&) = default;
};

struct Action {
  enum class Kind : std::uint8_t { download, upload, delete_here, delete_there, forget };
  Kind kind = Kind::download;
  std::string name;
  BlobInfo there{};   // as listed; its name is empty when there is none
  KnownFile known{};  // likewise
  // Nothing is moved when the file here has the content of: the blob, or (a push) what was noted.
  bool unless_same_as_there = false;
  bool unless_same_as_known = false;
  // Both sides changed, if the content here is not what was noted.
  bool is_conflict = false;
};

struct Skipped {
  std::string name;
  std::string why;
  friend bool operator==(const Skipped&, const Skipped&) = default;
};

struct Plan {
  std::vector<Action> actions;          // deletions first, so that a file may make way for a folder
  std::vector<std::string> kept_here;   // a pull: changed here and not there; a push will send them
  std::vector<std::string> kept_there;  // a push: removed here, but changed there since
  std::vector<Skipped> skipped;         // names that cannot stand on both sides, and what is not a file here
  std::uint64_t unchanged = 0;
};

struct Sides {
  std::vector<BlobInfo> there;
  std::vector<LocalFile> here;
  std::vector<KnownFile> known;
  std::vector<Skipped>
      not_files{};  // links and devices here: neither they nor what would be below them is touched
};
Plan plan_pull(const Sides& sides);
// `removals_count`: files that are noted and not here were removed by someone, and are deleted there. Not so
// when the folder is another one than before.
struct PushOptions {
  bool removals_count = true;
};
Plan plan_push(const Sides& sides, const PushOptions& options);

}  // namespace slipway::blob
