#include "container/give_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/file.h"

namespace slipway::container {
namespace {

constexpr int depth_max = 64;

Result<Fd> opened(const std::string& folder) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail(system_error("cannot enter " + folder, errno));
  return fd;
}

Result<void> give_content(Fd folder, const std::string& name, uid_t uid, gid_t gid, int depth) {
  if (depth > depth_max) return fail(ErrorCode::invalid, fmt::format("{} is too deep", name));
  const int fd = folder.get();
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(fd), ::closedir);
  if (!entries) return fail(system_error("cannot list " + name, errno));
  folder.release();  // now closed by closedir
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string each = entry->d_name;
    if (each == "." || each == "..") continue;
    struct stat status {};
    if (::fstatat(fd, each.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;  // gone meanwhile
    if (status.st_uid != ::geteuid()) continue;
    if (S_ISDIR(status.st_mode)) {
      Fd inner(::openat(fd, each.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!inner) return fail(system_error(fmt::format("cannot enter {}/{}", name, each), errno));
      const int at = inner.get();
      Fd again(::fcntl(at, F_DUPFD_CLOEXEC, 0));
      if (auto given = give_content(std::move(inner), name + "/" + each, uid, gid, depth + 1); !given)
        return given;
      // After what is in it, which nobody can exchange until then.
      if (::fchown(again.get(), uid, gid) != 0)
        return fail(system_error(fmt::format("cannot give {}/{}", name, each), errno));
    } else if (status.st_nlink == 1 && ::fchownat(fd, each.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW) != 0) {
      return fail(system_error(fmt::format("cannot give {}/{}", name, each), errno));
    }
  }
  return {};
}

}  // namespace

Result<void> give_folder(const std::string& folder, uid_t uid, gid_t gid, GiveOptions options) {
  Result<Fd> fd = opened(folder);
  if (!fd) return fail(fd.error());
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) return fail(system_error("cannot look at " + folder, errno));
  if (status.st_uid == uid) return {};  // by another process of the attempt
  if (status.st_uid != ::geteuid())
    return fail(ErrorCode::denied,
                fmt::format("{} belongs to user {}, not to {}", folder, status.st_uid, uid));
  if (options.with_content) {
    auto inside = opened(folder);
    if (!inside) return fail(inside.error());
    if (auto given = give_content(std::move(*inside), folder, uid, gid, 0); !given) return given;
  }
  if (::fchmod(fd->get(), 0700) != 0 || ::fchown(fd->get(), uid, gid) != 0)
    return fail(system_error("cannot give " + folder, errno));
  return {};
}

Result<void> show_folder(const std::string& folder, gid_t gid) {
  const Result<Fd> fd = opened(folder);
  if (!fd) return fail(fd.error());
  if (::fchmod(fd->get(), 0750) != 0 || ::fchown(fd->get(), ::geteuid(), gid) != 0)
    return fail(system_error("cannot show " + folder, errno));
  return {};
}

void give_stream(int descriptor, uid_t uid, gid_t gid) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) return;
  if (::fchmod(descriptor, 0600) == 0 && ::fchown(descriptor, uid, gid) != 0) ::fchmod(descriptor, 0644);
}

}  // namespace slipway::container
