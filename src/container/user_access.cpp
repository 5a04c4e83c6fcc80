#include "container/user_access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/openat2.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/check.h"
#include "container/shares.h"

namespace slipway::container {
namespace {

constexpr const char* acl_attribute = "system.posix_acl_access";
constexpr std::size_t acl_size_max = 64 << 10;

// Of this thread: glibc's function changes all of them.
bool set_groups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

Result<Fd> open_path(int root, const std::string& path, std::uint64_t resolve) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = resolve;
  Fd fd(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
  if (fd) return fd;
  if (errno == ELOOP || errno == EXDEV)
    return fail(ErrorCode::denied, fmt::format("{} cannot be mounted: a link leads there", path),
                "name the folder itself");
  return fail(system_error("cannot open " + path, errno));
}

using AclEntries = std::vector<posix_acl_xattr_entry>;

constexpr auto no_id = static_cast<std::uint32_t>(ACL_UNDEFINED_ID);

AclEntries closed_to_others() {
  return {{ACL_USER_OBJ, ACL_READ | ACL_WRITE | ACL_EXECUTE, no_id},
          {ACL_GROUP_OBJ, 0, no_id},
          {ACL_MASK, ACL_EXECUTE, no_id},
          {ACL_OTHER, 0, no_id}};
}

std::optional<AclEntries> read_acl(int folder) {
  std::string bytes(acl_size_max, '\0');
  const ssize_t size = ::fgetxattr(folder, acl_attribute, bytes.data(), bytes.size());
  if (size < static_cast<ssize_t>(sizeof(posix_acl_xattr_header))) return std::nullopt;
  AclEntries entries((static_cast<std::size_t>(size) - sizeof(posix_acl_xattr_header)) /
                     sizeof(posix_acl_xattr_entry));
  std::memcpy(entries.data(), bytes.data() + sizeof(posix_acl_xattr_header),
              entries.size() * sizeof(posix_acl_xattr_entry));
  return entries;
}

int write_acl(int folder, const AclEntries& entries) {
  const posix_acl_xattr_header header{POSIX_ACL_XATTR_VERSION};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof entries[0]);
  return ::fsetxattr(folder, acl_attribute, bytes.data(), bytes.size(), 0) == 0 ? 0 : errno;
}

}  // namespace

std::vector<gid_t> groups_of(uid_t uid, gid_t gid) {
  passwd user{};
  passwd* found = nullptr;
  std::string texts(16 << 10, '\0');
  if (::getpwuid_r(uid, &user, texts.data(), texts.size(), &found) != 0 || !found || user.pw_gid != gid)
    return {gid};
  int count = NGROUPS_MAX;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  if (::getgrouplist(user.pw_name, gid, groups.data(), &count) < 0) return {gid};
  groups.resize(static_cast<std::size_t>(count));
  return groups;
}

UserAccess::UserAccess(uid_t uid, gid_t gid) {
  if (::geteuid() != 0) return;
  groups_.resize(NGROUPS_MAX);
  const int count = ::getgroups(NGROUPS_MAX, groups_.data());
  groups_.resize(static_cast<std::size_t>(std::max(count, 0)));
  is_changed_ = true;
  // To go on with root's rights would be worse than to stop.
  SLIPWAY_CHECK(count >= 0 && set_groups(groups_of(uid, gid)));
  ::setfsgid(gid);
  ::setfsuid(uid);
  SLIPWAY_CHECK(static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))) == uid &&
                static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1))) == gid);
}

UserAccess::~UserAccess() {
  if (!is_changed_) return;
  ::setfsuid(::geteuid());
  ::setfsgid(::getegid());
  SLIPWAY_CHECK(set_groups(groups_));
}

Result<Fd> open_source(const std::string& source, const MountAccess& access) {
  Result<Fd> opened = [&]() -> Result<Fd> {
    const UserAccess user(access.uid, access.gid);
    if (source.starts_with('/')) return open_path(AT_FDCWD, source, RESOLVE_NO_MAGICLINKS);
    const Fd data(::open(access.data.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!data) return fail(system_error("cannot open " + access.data, errno));
    return open_path(data.get(), source, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  }();
  if (!opened || !source.starts_with('/')) return opened;
  std::error_code error;
  const std::string real =
      std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", opened->get()), error).string();
  if (error) return fail(system_error("cannot tell where " + source + " is", error.value()));
  const std::string data = std::filesystem::canonical(access.data, error).string();
  if (error) return fail(system_error("cannot tell where " + access.data + " is", error.value()));
  if (is_within(real, data) || is_within(data, real))
    return fail(ErrorCode::denied,
                fmt::format("{} cannot be mounted: the data folder of the node, with what belongs to others, "
                            "would be a part of it",
                            source),
                "mount a datastore, or another folder");
  return opened;
}

Result<void> let_through(const std::string& folder, uid_t uid) {
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail(system_error("cannot open " + folder, errno));
  // Another process may let another user through.
  while (::flock(fd.get(), LOCK_EX) != 0)
    if (errno != EINTR) return fail(system_error("cannot lock " + folder, errno));
  AclEntries entries = read_acl(fd.get()).value_or(closed_to_others());
  const auto is_user = [](const auto& entry) { return entry.e_tag == ACL_USER; };
  const auto users = std::find_if(entries.begin(), entries.end(), is_user);
  const auto after = std::find_if(users == entries.end() ? entries.begin() + 1 : users, entries.end(),
                                  [&](const auto& entry) { return !is_user(entry) || entry.e_id >= uid; });
  if (after != entries.end() && is_user(*after) && after->e_id == uid) return {};
  entries.insert(after, {ACL_USER, ACL_EXECUTE, uid});
  const int failed = write_acl(fd.get(), entries);
  if (failed == 0) return {};
  Error error =
      system_error(fmt::format("cannot let user {} through {} and keep others out", uid, folder), failed);
  if (failed == EOPNOTSUPP)
    error.hint = "jobs that run as users need a data folder on a file system with access control lists";
  return fail(std::move(error));
}

Result<void> close_folder(const std::string& folder) {
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail(system_error("cannot open " + folder, errno));
  if (read_acl(fd.get()) || ::fchmod(fd.get(), 0700) == 0) return {};
  return fail(system_error("cannot close " + folder + " to other users", errno));
}

}  // namespace slipway::container
