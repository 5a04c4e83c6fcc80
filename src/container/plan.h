#pragma once
// What a container's file tree is made of, as data. Pure: same root file system and request, same steps.
//
// The root is a small tmpfs. What lies at the top of the root file system is bound into it read-only, links
// are made again. A folder in which a mount point is missing is taken apart in the same way, entry by entry;
// so any path of the machine can appear inside, and nothing is ever written into the root file system.
#include <functional>
#include <string>
#include <vector>

#include "container/shares.h"

namespace slipway::container {

enum class EntryKind { folder, file, link, other };

struct Entry {
  std::string name;
  EntryKind kind = EntryKind::file;
  std::string points_to;  // of a link
};
// The entries of a folder of the root file system, by its path inside ("/", "/etc"); none when it is not
// there.
using ReadFolder = std::function<std::vector<Entry>(const std::string& folder)>;

struct ContainerRequest {
  std::vector<Share> shares;
  std::vector<std::string> devices;       // /dev/null …, files or folders of the machine
  std::vector<std::string> driver_files;  // libraries that belong to the machine's GPU driver
  std::vector<std::string> scratch;       // folders that should be there and writable: HOME, TMPDIR
  std::string passwd;                     // content of /etc/passwd; empty: unchanged
  bool has_machine_shm = true;            // /dev/shm exists outside
};

struct Step {
  enum class Kind {
    folder,     // an empty folder
    link,       // a symbolic link to `source`
    bind,       // a file or folder of the machine
    root_bind,  // the same path of the root file system
    tmpfs,      // an empty file system, `mode` for its top
    terminals,  // a devpts of its own
    text,       // a file whose content is `source`
  };
  Kind kind = Kind::folder;
  std::string target;  // path inside
  std::string source = {};
  bool read_only = false;
  bool optional = false;  // the machine may lack it or refuse it
  unsigned mode = 0755;

  friend bool operator==(const Step&, const Step&) = default;
};

// In the order they are to be done. Mount points that do not exist are made by who does them.
std::vector<Step> plan(const ReadFolder& read_folder, const ContainerRequest& request);

// Where libraries of the driver are found inside.
inline constexpr const char* driver_folder = "/.slipway/driver";

// Where `path` leads inside, links followed as a process in there would; what does not exist is kept as it
// is.
std::string resolve(const ReadFolder& read_folder, const std::string& path);

// `passwd` with a line for `uid` where it has none: programs ask for their user's name and home and fail
// without.
std::string with_user(const std::string& passwd, unsigned uid, unsigned gid, const std::string& name,
                      const std::string& home);

}  // namespace slipway::container
