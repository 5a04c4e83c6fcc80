#include "keeper/empty_folders.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "domain/layout.h"

namespace slipway::keeper {
namespace {

constexpr int removed_at_once = 16;

std::string_view parent_of(std::string_view path) { return path.substr(0, path.rfind('/')); }

// The name in `folder`, or empty where the path is not right below it.
std::string_view name_in(std::string_view folder, std::string_view path) {
  if (path.size() <= folder.size() + 1 || !path.starts_with(folder) || path[folder.size()] != '/') return {};
  const std::string_view name = path.substr(folder.size() + 1);
  return name.find('/') == name.npos ? name : std::string_view();
}

// How many names an open folder holds, . and .. not counted; -1 where that cannot be counted with one small
// read.
int count_names(int folder) {
  alignas(std::uint64_t) char buffer[1024];
  int names = 0;
  for (;;) {
    const long got = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (got < 0 || names > 64) return -1;
    if (got == 0) return names;
    for (long at = 0; at < got;) {
      dirent64 entry;
      std::memcpy(&entry, buffer + at, offsetof(dirent64, d_name));
      const char* name = buffer + at + offsetof(dirent64, d_name);
      if (std::strcmp(name, ".") != 0 && std::strcmp(name, "..") != 0) ++names;
      at += entry.d_reclen;
    }
  }
}

bool is_ours(const struct stat& status, mode_t type, unsigned mode, uid_t user) {
  return (status.st_mode & S_IFMT) == type && (status.st_mode & 07777) == mode && status.st_uid == user;
}

Fd open_folder(int at, const std::string& path) {
  return Fd(::openat(at, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool is_before(const timespec& one, const timespec& other) {
  return one.tv_sec != other.tv_sec ? one.tv_sec < other.tv_sec : one.tv_nsec < other.tv_nsec;
}

bool is_same(const ChangeStamp& one, const ChangeStamp& other) {
  return one.inode == other.inode && one.changed.tv_sec == other.changed.tv_sec &&
         one.changed.tv_nsec == other.changed.tv_nsec;
}

// What one call finds of a name in a folder.
bool stamp_of(int folder, const std::string& name, mode_t type, unsigned mode, uid_t user, dev_t device,
              std::vector<ChangeStamp>& stamps) {
  struct stat status {};
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !is_ours(status, type, mode, user) || status.st_dev != device)  // another device: something is mounted
    return false;
  if (type == S_IFREG && (status.st_size != 0 || status.st_nlink != 1)) return false;
  stamps.push_back({status.st_ino, status.st_ctim});
  return true;
}

// Access lists and other attributes, but for the labels that a security module gives every file.
bool has_attributes(const std::string& path) {
  char names[1024];
  const ssize_t size = ::llistxattr(path.c_str(), names, sizeof names);
  if (size < 0) return errno != ENOTSUP;
  for (std::string_view rest(names, static_cast<std::size_t>(size)); !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find('\0'));
    if (!name.starts_with("security.")) return true;
    rest.remove_prefix(name.size() + 1);
  }
  struct statx status {};
  constexpr std::uint64_t fixed = STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND | STATX_ATTR_NODUMP;
  return ::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_MODE, &status) != 0 ||
         (status.stx_attributes & fixed) != 0;
}

// Whether every change of a file or folder shows in its change time: those that other machines write show it
// late, and some keep whole seconds only.
bool tells_changes(int folder) {
  struct statfs about {};
  if (::fstatfs(folder, &about) != 0) return false;
  constexpr unsigned long known[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC,
                                     OVERLAYFS_SUPER_MAGIC};
  return std::find(std::begin(known), std::end(known), static_cast<unsigned long>(about.f_type)) !=
         std::end(known);
}

bool is_empty_file(const std::string& path, unsigned mode, uid_t user) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && is_ours(status, S_IFREG, mode, user) && status.st_size == 0 &&
         status.st_nlink == 1 && !has_attributes(path);
}

void remove(const AttemptFolder& folder) {
  if (folder.is_file) {
    ::unlink(folder.path.c_str());
    return;
  }
  for (const std::string& name : folder.files) ::unlink((folder.path + "/" + name).c_str());
  for (const std::string& name : folder.folders) ::rmdir((folder.path + "/" + name).c_str());
  ::rmdir(folder.path.c_str());
}

bool rename_to_free(const std::string& from, const std::string& to) {
  return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0;
}

}  // namespace

std::optional<AttemptFolder> own_folder(const ProcessSpec& process) {
  if (process.folders.empty()) return std::nullopt;
  AttemptFolder folder{.path = process.folders[0]};
  // Processes of a gang write to files with their names, and this node may have only one of them.
  const StreamNames names = stream_names("", false);
  if (process.stdout_file != folder.path + "/" + names.out ||
      process.stderr_file != folder.path + "/" + names.err ||
      (process.own_working_folder && process.working_folder != folder.path + "/" + names.wd))
    return std::nullopt;
  for (const std::string& inside : process.folders)
    if (const std::string_view name = name_in(folder.path, inside); !name.empty())
      folder.folders.emplace_back(name);
  folder.files = {names.out, names.err};
  return folder;
}

std::vector<AttemptFolder> own_pieces(const ProcessSpec& process) {
  if (process.folders.empty() || process.stdout_file == process.stderr_file || own_folder(process)) return {};
  std::vector<AttemptFolder> pieces;
  for (const std::string* path : {&process.working_folder, &process.stdout_file, &process.stderr_file}) {
    if (path == &process.working_folder && !process.own_working_folder) continue;
    if (name_in(process.folders[0], *path).empty()) return {};
    pieces.push_back({.path = *path, .is_file = path != &process.working_folder});
  }
  return pieces;
}

EmptyFolders::EmptyFolders(std::string keep_in)
    : keep_in_(std::move(keep_in)), umask_(::umask(0)), user_(::geteuid()) {
  ::umask(umask_);
  std::error_code ignored;  // what stays has a number of its own, and is in nobody's way
  std::filesystem::remove_all(keep_in_, ignored);
}

void EmptyFolders::offer(AttemptFolder folder) {
  if (!is_as_made(folder)) return;
  std::string attempt = folder.path;
  kept_.push_back({std::move(folder), std::move(attempt)});
  ++in_place_;
}

bool EmptyFolders::take(AttemptFolder& next) {
  for (std::size_t left = kept_.size(); left > 0; --left) {
    const auto at = kept_.begin() + static_cast<std::ptrdiff_t>(left - 1);
    if (at->folder.is_file != next.is_file || at->folder.folders != next.folders ||
        at->folder.files != next.files)
      continue;
    const bool is_in_place = left > kept_.size() - in_place_;
    // Whoever escaped its attempt may have written to it since.
    const bool is_usable = is_in_place || is_as_made(at->folder);
    if (is_usable && !move_to(*at, next)) return false;
    if (!is_usable) rename_to_free(at->folder.path, at->attempt);
    kept_.erase(at);
    if (is_in_place) --in_place_;
    if (is_usable) return true;
  }
  return false;
}

bool EmptyFolders::move_to(Kept& kept, AttemptFolder& next) {
  bool is_moved = rename_to_free(kept.folder.path, next.path);
  if (!is_moved && errno == ENOENT &&
      make_folders(std::string(parent_of(next.path))))  // the first attempt of a job here
    is_moved = rename_to_free(kept.folder.path, next.path);
  if (is_moved) next.stamps = std::move(kept.folder.stamps);
  return is_moved;
}

void EmptyFolders::put_away() {
  for (; in_place_ > 0; --in_place_) {
    Kept& kept = kept_[kept_.size() - in_place_];
    const std::string to = keep_in_ + "/" + std::to_string(++last_number_);
    bool is_moved = rename_to_free(kept.folder.path, to);
    if (!is_moved && errno == ENOENT && ::mkdir(keep_in_.c_str(), 0700) == 0)
      is_moved = rename_to_free(kept.folder.path, to);
    if (is_moved) {
      kept.folder.path = to;
    } else {
      remove(kept.folder);
      kept_.erase(kept_.end() - static_cast<std::ptrdiff_t>(in_place_));
    }
  }
  while (kept_.size() > kept_max) drop_oldest();
}

// Nothing was added, written, removed, linked, mounted or given other permissions.
bool EmptyFolders::is_as_made(AttemptFolder& folder) const {
  if (folder.is_file) return is_empty_file(folder.path, 0644 & ~umask_, user_);
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);  // no change from here on gets an earlier time
  const Fd top = open_folder(AT_FDCWD, folder.path);
  struct stat status {};
  if (!top || ::fstat(top.get(), &status) != 0 || !is_ours(status, S_IFDIR, 0755 & ~umask_, user_) ||
      count_names(top.get()) != static_cast<int>(folder.folders.size() + folder.files.size()))
    return false;
  if (folder.folders.empty() && folder.files.empty()) return !has_attributes(folder.path);
  std::vector<ChangeStamp> stamps;
  stamps.reserve(folder.folders.size() + folder.files.size());
  for (const std::string& name : folder.folders)
    if (!stamp_of(top.get(), name, S_IFDIR, 0755 & ~umask_, user_, status.st_dev, stamps)) return false;
  for (const std::string& name : folder.files)
    if (!stamp_of(top.get(), name, S_IFREG, 0644 & ~umask_, user_, status.st_dev, stamps)) return false;
  if (std::equal(stamps.begin(), stamps.end(), folder.stamps.begin(), folder.stamps.end(), is_same))
    return true;
  for (const std::string& name : folder.folders) {
    const Fd inner = open_folder(top.get(), name);
    if (!inner || count_names(inner.get()) != 0 || has_attributes(folder.path + "/" + name)) return false;
  }
  for (const std::string& name : folder.files)
    if (has_attributes(folder.path + "/" + name)) return false;
  const bool can_trust =
      tells_changes(top.get()) && std::all_of(stamps.begin(), stamps.end(), [&](const ChangeStamp& stamp) {
        return stamp.changed.tv_nsec != 0 && is_before(stamp.changed, now);
      });
  folder.stamps = can_trust ? std::move(stamps) : std::vector<ChangeStamp>();
  return true;
}

void EmptyFolders::drop_oldest() {
  Kept& oldest = kept_.front();
  if (is_as_made(oldest.folder))
    remove(oldest.folder);
  else  // stays with the attempt that has it, in the end, written to
    rename_to_free(oldest.folder.path, oldest.attempt);
  in_place_ = std::min(in_place_, kept_.size() - 1);
  kept_.pop_front();
}

void EmptyFolders::remove_some() {
  for (int i = 0; i < removed_at_once && has_surplus(); ++i) drop_oldest();
}

void EmptyFolders::remove_all() {
  while (!kept_.empty()) drop_oldest();
  ::rmdir(keep_in_.c_str());
}

}  // namespace slipway::keeper
