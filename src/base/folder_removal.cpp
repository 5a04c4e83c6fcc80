#include "base/folder_removal.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/random.h"

namespace slipway {
namespace {

class Step {
 public:
  Step(Fd top, std::size_t entries_max) : top_(std::move(top)), left_(entries_max) {}

  // Whether the folder is empty now.
  Result<bool> run() {
    while (left_ > 0) {
      auto names = some_names(top_.get());
      if (!names) return fail(names.error());
      if (names->empty()) return true;
      for (const std::string& name : *names)
        if (auto removed = remove(name); !removed) return fail(removed.error());
    }
    return false;
  }

 private:
  // What a folder holds, as many as may still be removed. Deleting while reading skips entries on some file
  // systems, so they are read first.
  Result<std::vector<std::string>> some_names(int folder) const {
    const int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, int (*)(DIR*)> open(again >= 0 ? ::fdopendir(again) : nullptr, ::closedir);
    if (!open) return fail(system_error("cannot list a folder to delete", errno));
    std::vector<std::string> names;
    while (names.size() < left_) {
      const dirent* entry = ::readdir(open.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    return names;
  }

  Result<void> remove(const std::string& name) {
    if (left_ == 0) return {};
    --left_;
    if (::unlinkat(top_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
    if (errno != EISDIR && errno != EPERM) return fail(system_error("cannot delete " + name, errno));
    if (::unlinkat(top_.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
    if (errno != ENOTEMPTY && errno != EEXIST) return fail(system_error("cannot delete " + name, errno));
    return empty(name);
  }

  // What is below is moved up, so that no depth costs more than one step down.
  Result<void> empty(const std::string& name) {
    constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    Fd folder(::openat(top_.get(), name.c_str(), flags));
    if (!folder && errno == EACCES && ::fchmodat(top_.get(), name.c_str(), 0700, 0) == 0)
      folder = Fd(::openat(top_.get(), name.c_str(), flags));
    if (!folder) return fail(system_error("cannot open " + name, errno));
    auto names = some_names(folder.get());
    if (!names) return fail(names.error());
    for (const std::string& below : *names) {
      if (left_ == 0) return {};
      --left_;
      if (::unlinkat(folder.get(), below.c_str(), 0) == 0 || errno == ENOENT) continue;
      if (::unlinkat(folder.get(), below.c_str(), AT_REMOVEDIR) == 0) continue;
      if (::renameat(folder.get(), below.c_str(), top_.get(), ("." + random_hex(16)).c_str()) != 0)
        return fail(system_error("cannot delete " + below, errno));
    }
    ::unlinkat(top_.get(), name.c_str(), AT_REMOVEDIR);  // not empty yet: then it is found again
    return {};
  }

  Fd top_;
  std::size_t left_;
};

}  // namespace

Result<bool> remove_some(const std::string& folder, std::size_t entries_max) {
  Fd top(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!top && errno == ENOENT) return false;
  if (!top) return fail(system_error("cannot open " + folder, errno));
  auto empty = Step(std::move(top), entries_max).run();
  if (!empty) return fail(empty.error());
  if (!*empty) return true;
  if (::rmdir(folder.c_str()) == 0 || errno == ENOENT) return false;
  if (errno == ENOTEMPTY || errno == EEXIST) return true;
  return fail(system_error("cannot delete " + folder, errno));
}

void remove_empty_folders(const std::string& folder) {
  const int top = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> open(top >= 0 ? ::fdopendir(top) : nullptr, ::closedir);
  if (!open) return;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") ::unlinkat(top, entry->d_name, AT_REMOVEDIR);
  }
  ::rmdir(folder.c_str());
}

}  // namespace slipway
