#include "base/beneath.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace slipway {

Result<Fd> open_beneath(int root, const std::string& path, int flags) {
  if (path.find('\0') != std::string::npos)
    return fail(ErrorCode::invalid, "a path cannot contain a zero byte");
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const std::string name = path.empty() ? "." : path;
  Fd fd(static_cast<int>(::syscall(SYS_openat2, root, name.c_str(), &how, sizeof how)));
  if (fd) return fd;
  const int error = errno;
  if (error == EXDEV || error == ELOOP)
    return fail(ErrorCode::denied, "'" + path + "' leads out of the folder",
                "name a path inside it, without '..' and links that lead out");
  if (error == ENOENT || error == ENOTDIR)
    return fail(ErrorCode::not_found, "there is no file '" + path + "'");
  return fail(system_error("cannot open '" + path + "'", error));
}

Result<Fd> make_folder_beneath(int root, const std::string& path, unsigned mode) {
  Result<Fd> at = open_beneath(root, "", O_RDONLY | O_DIRECTORY);
  for (std::size_t begin = 0; at && begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty()) continue;
    if (::mkdirat(at->get(), part.c_str(), mode) != 0 && errno != EEXIST)
      return fail(system_error("cannot make the folder '" + path.substr(0, end) + "'", errno));
    // From the top each time: a link inside the folder is followed, one that leads out is not.
    at = open_beneath(root, path.substr(0, end), O_RDONLY | O_DIRECTORY);
    if (!at && at.error().code == ErrorCode::not_found)
      return fail(ErrorCode::conflict, fmt::format("'{}' is a file, not a folder", path.substr(0, end)),
                  "choose another path");
  }
  return at;
}

}  // namespace slipway
