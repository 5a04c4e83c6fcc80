#include "blob/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/beneath.h"
#include "blob/names.h"

namespace slipway::blob {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

LocalFile describe(const std::string& name, const struct stat& status) {
  return {name, static_cast<std::uint64_t>(status.st_size),
          static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec};
}

std::string parent_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}
std::string last_part(const std::string& name) { return name.substr(name.rfind('/') + 1); }

}  // namespace

Result<Folder> Folder::open(const std::string& path) {
  Fd root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root) return Folder(std::move(root));
  Error error = system_error("cannot open the folder " + path, errno);
  if (errno == ENOENT) error = {ErrorCode::not_found, "there is no folder " + path, "make it first"};
  return fail(std::move(error));
}

std::uint64_t Folder::identity() const {
  struct stat status {};
  return ::fstat(root_.get(), &status) == 0 ? status.st_ino : 0;
}

// visit(name, parent's descriptor, last part, status) for everything that is not a folder.
template <class Visit>
Result<void> Folder::walk(const Visit& visit) const {
  std::vector<std::string> folders = {""};
  while (!folders.empty()) {
    const std::string folder = std::move(folders.back());
    folders.pop_back();
    auto opened = open_beneath(root_.get(), folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!opened) {
      if (opened.error().code == ErrorCode::not_found) continue;  // removed meanwhile
      return fail(std::move(opened.error()));
    }
    const int fd = opened->get();
    const std::unique_ptr<DIR, CloseFolder> entries(::fdopendir(opened->release()));
    if (!entries) return fail(system_error("cannot read the folder " + folder, errno));
    while (const dirent* entry = ::readdir(entries.get())) {
      const std::string part = entry->d_name;
      if (part == "." || part == "..") continue;
      const std::string name = folder.empty() ? part : folder + "/" + part;
      struct stat status {};
      if (::fstatat(fd, part.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) continue;
        return fail(system_error("cannot look at " + name, errno));
      }
      if (S_ISDIR(status.st_mode))
        folders.push_back(name);
      else
        visit(name, fd, part, status);
    }
  }
  return {};
}

Result<std::vector<LocalFile>> Folder::list(std::vector<Skipped>& not_files) const {
  std::vector<LocalFile> files;
  auto walked = walk([&](const std::string& name, int, const std::string& part, const struct stat& status) {
    if (part.starts_with(partial_prefix)) return;
    if (S_ISREG(status.st_mode))
      files.push_back(describe(name, status));
    else
      not_files.push_back({name, S_ISLNK(status.st_mode) ? "it is a link" : "it is not a file"});
  });
  if (!walked) return fail(std::move(walked.error()));
  return files;
}

Result<void> Folder::flush() const {
  if (::syncfs(root_.get()) != 0) return fail(system_error("cannot write the folder to disk", errno));
  return {};
}

void Folder::remove_partial_files() const {
  const auto visit = [](const std::string&, int parent, const std::string& part, const struct stat&) {
    if (part.starts_with(partial_prefix)) ::unlinkat(parent, part.c_str(), 0);
  };
  // What cannot be removed costs disk space and nothing else; a list names what cannot be read.
  static_cast<void>(walk(visit));
}

Result<Fd> Folder::open_file(const std::string& name) const {
  return open_beneath(root_.get(), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
}

Result<LocalFile> Folder::look(const std::string& name) const {
  auto file = open_file(name);
  if (!file) return fail(std::move(file.error()));
  struct stat status {};
  if (::fstat(file->get(), &status) != 0) return fail(system_error("cannot look at " + name, errno));
  return describe(name, status);
}

Result<void> Folder::remove(const std::string& name) const {
  std::string path = name;
  int flags = 0;
  for (;;) {
    const auto parent = open_beneath(root_.get(), parent_of(path), O_RDONLY | O_DIRECTORY);
    if (!parent) {
      if (parent.error().code == ErrorCode::not_found) return {};
      return fail(parent.error());
    }
    const bool removed = ::unlinkat(parent->get(), last_part(path).c_str(), flags) == 0;
    if (!removed && flags == 0 && errno != ENOENT) return fail(system_error("cannot remove " + name, errno));
    path = parent_of(path);
    if (!removed || path.empty()) return {};  // a folder that is not empty stays
    flags = AT_REMOVEDIR;
  }
}

Result<Fd> Folder::make_parent(const std::string& name) const {
  const std::string parent = parent_of(name);
  for (std::size_t end = parent.find('/');; end = parent.find('/', end + 1)) {
    const std::string path = parent.substr(0, end);
    auto folder = open_beneath(root_.get(), path, O_RDONLY | O_DIRECTORY);
    if (!folder && folder.error().code == ErrorCode::not_found) {
      const auto above = open_beneath(root_.get(), parent_of(path), O_RDONLY | O_DIRECTORY);
      if (!above) return fail(above.error());
      if (::mkdirat(above->get(), last_part(path).c_str(), 0777) != 0 && errno != EEXIST)
        return fail(system_error(fmt::format("cannot make the folder {}", path), errno));
      folder = open_beneath(root_.get(), path, O_RDONLY | O_DIRECTORY);
      if (!folder && folder.error().code == ErrorCode::not_found)
        return fail(ErrorCode::conflict, fmt::format("{} cannot be written: {} is a file here", name, path),
                    fmt::format("move or remove {}", path));
    }
    if (!folder || end == std::string::npos) return folder;
  }
}

Result<Folder::NewFile> Folder::create(const std::string& name) const {
  if (const auto trouble = trouble_with_name(name))
    return fail(ErrorCode::denied, fmt::format("{} is not written: {}", name, *trouble));
  auto parent = make_parent(name);
  if (!parent && parent.error().code == ErrorCode::denied)
    return fail(ErrorCode::denied, fmt::format("{} is not written: {}", name, parent.error().what),
                "remove the link from the folder, or the blob from the container");
  if (!parent) return fail(std::move(parent.error()));
  static std::atomic<unsigned> count = 0;
  NewFile file;
  file.parent_ = std::move(*parent);
  file.name_ = name;
  file.partial_ = fmt::format("{}{}-{}", partial_prefix, ::getpid(), ++count);
  file.file_ = Fd(::openat(file.parent_.get(), file.partial_.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file.file_) return file;
  return fail(system_error("cannot write " + name, errno));
}

Folder::NewFile::~NewFile() {
  if (file_ && !finished_) ::unlinkat(parent_.get(), partial_.c_str(), 0);
}

Result<LocalFile> Folder::NewFile::finish() {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0 ||
      ::renameat(parent_.get(), partial_.c_str(), parent_.get(), last_part(name_).c_str()) != 0)
    return fail(system_error("cannot write " + name_, errno));
  finished_ = true;
  return describe(name_, status);
}

}  // namespace slipway::blob
