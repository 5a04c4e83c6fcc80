#include "base/folder_size.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <string_view>

namespace slipway {
namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

std::uint64_t share_of(const struct stat& status) {
  const auto links =
      static_cast<std::uint64_t>(S_ISDIR(status.st_mode) || status.st_nlink == 0 ? 1 : status.st_nlink);
  return static_cast<std::uint64_t>(status.st_blocks) * 512 / links;
}

}  // namespace

FolderSize::FolderSize(const std::string& folder) { enter(AT_FDCWD, folder.c_str()); }

void FolderSize::enter(int parent, const char* name) {
  const int file = ::openat(parent, name, folder_flags);
  if (file < 0) return;
  struct stat status {};
  if (levels_.empty() && ::fstat(file, &status) == 0) bytes_ += share_of(status);
  Folder folder(::fdopendir(file));
  if (!folder) {
    ::close(file);
    return;
  }
  levels_.push_back({std::move(folder)});
  if (levels_.size() - open_from_ > open_max) {
    Level& upper = levels_[open_from_++];
    upper.at = ::telldir(upper.folder.get());
    upper.folder.reset();
  }
}

void FolderSize::leave() {
  Folder below = std::move(levels_.back().folder);
  levels_.pop_back();
  if (levels_.empty() || levels_.size() > open_from_) return;
  // What was moved elsewhere meanwhile leads to another folder: then the rest is left to the next count.
  open_from_ = levels_.size() - 1;
  const int file = ::openat(::dirfd(below.get()), "..", folder_flags);
  Folder folder(file < 0 ? nullptr : ::fdopendir(file));
  if (!folder) {
    if (file >= 0) ::close(file);
    levels_.clear();
    open_from_ = 0;
    return;
  }
  ::seekdir(folder.get(), levels_.back().at);
  levels_.back().folder = std::move(folder);
}

bool FolderSize::count_some(std::size_t entries_max) {
  for (std::size_t left = entries_max; left > 0 && !levels_.empty(); --left) {
    DIR* folder = levels_.back().folder.get();
    const dirent* entry = ::readdir(folder);
    if (entry == nullptr) {
      leave();
      continue;
    }
    const std::string_view name = entry->d_name;
    struct stat status {};
    if (name == "." || name == "..") continue;
    if (::fstatat(::dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    bytes_ += share_of(status);
    if (S_ISDIR(status.st_mode)) enter(::dirfd(folder), entry->d_name);
  }
  return !levels_.empty();
}

}  // namespace slipway
