#include "base/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

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

}  // namespace slipway
