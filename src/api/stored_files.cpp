#include "api/stored_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/beneath.h"
#include "base/random.h"

namespace slipway::api {
namespace {

// What stands beside a file while it is written; never listed.
constexpr std::string_view part_mark = ".slipway-part-";

TimePoint modified(const struct stat& status) {
  return TimePoint(Duration(std::int64_t{status.st_mtim.tv_sec} * 1'000'000 + status.st_mtim.tv_nsec / 1000));
}

const char* kind_of(const struct stat& status) {
  return S_ISREG(status.st_mode)   ? "file"
         : S_ISDIR(status.st_mode) ? "folder"
         : S_ISLNK(status.st_mode) ? "link"
                                   : "other";
}

StoredFile described(const std::string& name, const struct stat& status) {
  return {name, kind_of(status), S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0,
          modified(status)};
}

// The parts of a path; "." and doubled slashes are left out.
Result<std::vector<std::string>> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    std::string part = path.substr(begin, end - begin);
    if (part == "..")
      return fail(ErrorCode::denied, fmt::format("'{}' leads out of the folder", path.substr(0, 200)),
                  "name a path inside it, without '..'");
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
    begin = end + 1;
  }
  return parts;
}

Result<Fd> opened_folder(const Fd& root, const std::vector<std::string>& parts) {
  return make_folder_beneath(root.get(), fmt::format("{}", fmt::join(parts, "/")));
}

Result<void> copy(const std::string& from, int to) {
  const Fd source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!source) return fail(system_error("cannot open the content just received", errno));
  std::string buffer(1 << 20, '\0');
  for (;;) {
    const ssize_t got = ::read(source.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_error("cannot read the content just received", errno));
    if (got == 0) return {};
    if (auto put = write_all(to, {buffer.data(), static_cast<std::size_t>(got)}, "the file"); !put)
      return put;
  }
}

// Moves the received file beside its final path; where that is another disk, copies it.
Result<void> bring_beside(const std::string& received, int folder, const std::string& beside) {
  if (received.empty()) {
    const Fd empty(::openat(folder, beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!empty || ::fsync(empty.get()) != 0)
      return fail(system_error("cannot create a file in the datastore", errno));
    return {};
  }
  const Fd file(::open(received.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail(system_error("cannot open the content just received", errno));
  if (::fchmod(file.get(), 0644) != 0 || ::fsync(file.get()) != 0)
    return fail(system_error("cannot sync the content just received", errno));
  if (::renameat(AT_FDCWD, received.c_str(), folder, beside.c_str()) == 0) return {};
  if (errno != EXDEV) return fail(system_error("cannot store the content just received", errno));
  const Fd target(::openat(folder, beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!target) return fail(system_error("cannot create a file in the datastore", errno));
  if (auto copied = copy(received, target.get()); !copied) return copied;
  if (::fsync(target.get()) != 0) return fail(system_error("cannot sync the file", errno));
  ::unlink(received.c_str());
  return {};
}

}  // namespace

Result<Fd> StoredFiles::root() const {
  Fd root(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root && check_) {
    std::error_code error;
    const auto real = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", root.get()), error);
    if (error) return fail(system_error("cannot find out where " + folder_ + " is", error.value()));
    if (auto checked = check_(real.string()); !checked) return fail(checked.error());
  }
  if (root) return root;
  if (errno == ENOENT || errno == ENOTDIR)
    return fail(ErrorCode::not_found, fmt::format("the datastore's folder {} is not there", folder_),
                "mount it on the service's machine, or make it");
  return fail(system_error("cannot open the datastore's folder " + folder_, errno));
}

Result<StoredFiles::Page> StoredFiles::list(const std::string& path, const std::string& after,
                                            std::size_t limit) const {
  Result<Fd> top = root();
  if (!top) return fail(top.error());
  const auto parts = parts_of(path);
  if (!parts) return fail(parts.error());
  Result<Fd> fd = open_beneath(top->get(), path, O_RDONLY | O_DIRECTORY);
  if (!fd) {
    if (open_beneath(top->get(), path, O_PATH))
      return fail(ErrorCode::invalid, fmt::format("'{}' is a file, not a folder", path), "fetch it instead");
    if (fd.error().code == ErrorCode::not_found)
      return fail(ErrorCode::not_found, fmt::format("there is no folder '{}'", path));
    return fail(fd.error());
  }
  DIR* folder = ::fdopendir(fd->release());
  if (folder == nullptr) return fail(system_error("cannot list '" + path + "'", errno));
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(folder)) {
    std::string name = entry->d_name;
    if (name != "." && name != ".." && name > after && !name.starts_with(part_mark))
      names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  Page page;
  for (const std::string& name : names) {
    if (page.files.size() == limit) {
      page.more = true;
      break;
    }
    struct stat status {};
    if (::fstatat(::dirfd(folder), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
      page.files.push_back(described(name, status));
  }
  ::closedir(folder);
  return page;
}

Result<StoredFiles::Opened> StoredFiles::open(const std::string& path) const {
  Result<Fd> top = root();
  if (!top) return fail(top.error());
  if (const auto parts = parts_of(path); !parts) return fail(parts.error());
  Result<Fd> fd = open_beneath(top->get(), path, O_RDONLY | O_NONBLOCK);
  if (!fd) return fail(fd.error());
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) return fail(system_error("cannot read '" + path + "'", errno));
  if (S_ISDIR(status.st_mode))
    return fail(ErrorCode::invalid, fmt::format("'{}' is a folder", path), "list it, or fetch its files");
  if (!S_ISREG(status.st_mode))
    return fail(ErrorCode::invalid, fmt::format("'{}' is not a plain file", path));
  return Opened{std::move(*fd), static_cast<std::uint64_t>(status.st_size)};
}

Result<void> StoredFiles::make_folder(const std::string& path) const {
  Result<Fd> top = root();
  if (!top) return fail(top.error());
  const auto parts = parts_of(path);
  if (!parts) return fail(parts.error());
  const Result<Fd> made = opened_folder(*top, *parts);
  if (!made) return fail(made.error());
  return {};
}

Result<StoredFile> StoredFiles::put(const std::string& path, const std::string& received) const {
  Result<Fd> top = root();
  if (!top) return fail(top.error());
  auto parts = parts_of(path);
  if (!parts) return fail(parts.error());
  if (parts->empty() || path.ends_with("/"))
    return fail(ErrorCode::invalid, "the path names no file", "end it with the file's name");
  const std::string name = parts->back();
  parts->pop_back();
  const Result<Fd> folder = opened_folder(*top, *parts);
  if (!folder) return fail(folder.error());
  const std::string beside = std::string(part_mark) + random_hex(8);
  Result<void> brought = bring_beside(received, folder->get(), beside);
  if (brought && ::renameat(folder->get(), beside.c_str(), folder->get(), name.c_str()) != 0)
    brought = errno == EISDIR
                  ? Result<void>(fail(ErrorCode::conflict, fmt::format("'{}' is a folder", path),
                                      "end the path with the file's name"))
                  : Result<void>(fail(system_error("cannot put the file at '" + path + "'", errno)));
  if (brought && ::fsync(folder->get()) != 0)
    brought = fail(system_error("cannot sync the folder of '" + path + "'", errno));
  if (!brought) {
    ::unlinkat(folder->get(), beside.c_str(), 0);
    return fail(brought.error());
  }
  struct stat status {};
  if (::fstatat(folder->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return fail(system_error("cannot read '" + path + "'", errno));
  return described(name, status);
}

Result<void> StoredFiles::remove(const std::string& path) const {
  Result<Fd> top = root();
  if (!top) return fail(top.error());
  auto parts = parts_of(path);
  if (!parts) return fail(parts.error());
  if (parts->empty())
    return fail(ErrorCode::invalid, "the path names no file", "delete the datastore to delete all of it");
  const std::string name = parts->back();
  parts->pop_back();
  std::string parent;
  for (const std::string& part : *parts) parent += (parent.empty() ? "" : "/") + part;
  const Result<Fd> folder = open_beneath(top->get(), parent, O_RDONLY | O_DIRECTORY);
  if (!folder) return fail(folder.error());
  // By the descriptor, so that nobody can put a link in the way; links inside are removed, not followed.
  std::error_code error;
  const auto removed =
      std::filesystem::remove_all(fmt::format("/proc/self/fd/{}/{}", folder->get(), name), error);
  if (error) return fail(system_error("cannot delete '" + path + "'", error.value()));
  if (removed == 0) return fail(ErrorCode::not_found, fmt::format("there is no file '{}'", path));
  return {};
}

}  // namespace slipway::api
