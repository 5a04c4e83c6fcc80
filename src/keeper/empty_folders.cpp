#include "keeper/empty_folders.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
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

// How many names an open folder holds, . and .. not counted; -1 where that cannot be said with one small
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

bool is_ours(const struct stat& status, mode_t type, unsigned mode) {
  return (status.st_mode & S_IFMT) == type && (status.st_mode & 07777) == mode &&
         status.st_uid == ::geteuid();
}

Fd open_folder(int at, const std::string& path) {
  return Fd(::openat(at, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void remove(const AttemptFolder& folder) {
  for (const std::string& name : folder.files) {
    const std::string path = folder.path + "/" + name;
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0)
      ::unlink(path.c_str());
  }
  for (const std::string& name : folder.folders) ::rmdir((folder.path + "/" + name).c_str());
  ::rmdir(folder.path.c_str());  // stays where somebody has put something into it since
}

}  // namespace

std::optional<AttemptFolder> own_folder(const ProcessSpec& process) {
  if (process.folders.empty() || !process.own_working_folder) return std::nullopt;
  AttemptFolder folder{process.folders[0], {}, {}};
  // Processes of a gang write to files with their names, and this node may have only one of them.
  const StreamNames names = stream_names("", false);
  if (process.stdout_file != folder.path + "/" + names.out ||
      process.stderr_file != folder.path + "/" + names.err ||
      process.working_folder != folder.path + "/" + names.wd)
    return std::nullopt;
  for (const std::string& inside : process.folders)
    if (const std::string_view name = name_in(folder.path, inside); !name.empty())
      folder.folders.emplace_back(name);
  folder.files = {names.out, names.err};
  return folder;
}

EmptyFolders::EmptyFolders() : umask_(::umask(0)) { ::umask(umask_); }

void EmptyFolders::offer(AttemptFolder folder) {
  if (!is_as_made(folder)) return;
  kept_.push_back(std::move(folder));
  if (kept_.size() > kept_max) kept_.pop_front();
}

std::string EmptyFolders::take(const AttemptFolder& next) {
  const auto found = std::find_if(kept_.rbegin(), kept_.rend(), [&](const AttemptFolder& kept) {
    return parent_of(kept.path) == parent_of(next.path) && kept.folders == next.folders &&
           kept.files == next.files;
  });
  if (found == kept_.rend()) return {};
  std::string path = std::move(found->path);
  kept_.erase(std::next(found).base());
  return path;
}

// Nothing was added, written, removed, linked or given other permissions.
bool EmptyFolders::is_as_made(const AttemptFolder& folder) const {
  const Fd top = open_folder(AT_FDCWD, folder.path);
  struct stat status {};
  if (!top || ::fstat(top.get(), &status) != 0 || !is_ours(status, S_IFDIR, 0755 & ~umask_) ||
      count_names(top.get()) != static_cast<int>(folder.folders.size() + folder.files.size()))
    return false;
  for (const std::string& name : folder.files)
    if (::fstatat(top.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !is_ours(status, S_IFREG, 0644 & ~umask_) || status.st_size != 0 || status.st_nlink != 1)
      return false;
  return std::all_of(folder.folders.begin(), folder.folders.end(), [&](const std::string& name) {
    const Fd inner = open_folder(top.get(), name);
    return inner && ::fstat(inner.get(), &status) == 0 && is_ours(status, S_IFDIR, 0755 & ~umask_) &&
           count_names(inner.get()) == 0;
  });
}

void EmptyFolders::remove_some() {
  for (int i = 0; i < removed_at_once && !kept_.empty(); ++i) {
    remove(kept_.front());
    kept_.pop_front();
  }
}

void EmptyFolders::remove_all() {
  while (!kept_.empty()) remove_some();
}

}  // namespace slipway::keeper
