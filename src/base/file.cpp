#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace slipway {

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Error system_error(std::string_view doing, int error_number) {
  Error error{ErrorCode::internal, fmt::format("{}: {}", doing, std::strerror(error_number)), ""};
  if (error_number == ENOENT) error.code = ErrorCode::not_found;
  if (error_number == EACCES || error_number == EPERM) error.code = ErrorCode::denied;
  if (error_number == ENOSPC || error_number == EDQUOT) {
    error.code = ErrorCode::unavailable;
    error.hint = "free some space on that file system";
  }
  return error;
}

Result<std::string> read_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(system_error("cannot open " + path, errno));
  std::string content;
  char buffer[65536];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_error("cannot read " + path, errno));
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
  }
}

Result<void> write_all(int fd, std::string_view content, const std::string& name) {
  while (!content.empty()) {
    const ssize_t put = ::write(fd, content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail(system_error("cannot write " + name, errno));
    content.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

namespace {

Result<void> replace_file(const std::string& path, std::string_view content, unsigned mode, bool sync) {
  const std::string beside = fmt::format("{}.{}.new", path, ::getpid());
  // Never through what lies there: the folder may be somebody else's.
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  Fd fd(::open(beside.c_str(), flags, mode));
  if (!fd && errno == EEXIST && ::unlink(beside.c_str()) == 0) fd = Fd(::open(beside.c_str(), flags, mode));
  if (!fd) return fail(system_error("cannot create " + beside, errno));
  if (auto written = write_all(fd.get(), content, beside); !written) {
    ::unlink(beside.c_str());
    return written;
  }
  if ((sync && ::fsync(fd.get()) != 0) || ::rename(beside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(beside.c_str());
    return fail(system_error("cannot write " + path, error));
  }
  return {};
}

}  // namespace

Result<void> write_file(const std::string& path, std::string_view content, unsigned mode) {
  return replace_file(path, content, mode, false);
}

Result<void> write_file_durably(const std::string& path, std::string_view content, unsigned mode) {
  if (auto written = replace_file(path, content, mode, true); !written) return written;
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Fd parent(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || ::fsync(parent.get()) != 0) return fail(system_error("cannot sync " + folder, errno));
  return {};
}

Result<void> write_file_over(const std::string& path, std::string_view content) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return fail(system_error("cannot open " + path, errno));
  if (auto written = write_all(fd.get(), content, path); !written) return written;
  if (::ftruncate(fd.get(), static_cast<off_t>(content.size())) != 0)
    return fail(system_error("cannot write " + path, errno));
  return {};
}

Result<void> make_folders(const std::string& path, unsigned mode) {
  if (::mkdir(path.c_str(), mode) == 0) return {};
  if (errno == ENOENT) {
    const std::string parent = std::filesystem::path(path).parent_path().string();
    if (parent.empty() || parent == path) return fail(system_error("cannot create " + path, ENOENT));
    if (auto made = make_folders(parent, mode); !made) return made;
    if (::mkdir(path.c_str(), mode) == 0) return {};
  }
  const int error = errno;
  struct stat status {};
  if (error == EEXIST && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return {};
  return fail(system_error("cannot create folder " + path, error));
}

std::string own_program() {
  char path[4096];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  std::string program = size > 0 ? std::string(path, static_cast<std::size_t>(size)) : "slipway";
  // So the system marks a file that was replaced, by an update, while it runs.
  constexpr std::string_view mark = " (deleted)";
  if (program.ends_with(mark)) program.resize(program.size() - mark.size());
  return program;
}

Result<FileLock> FileLock::take(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return fail(system_error("cannot open " + path, errno));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    char text[32] = {};
    const ssize_t got = ::pread(fd.get(), text, sizeof text - 1, 0);
    const std::string pid = got > 0 ? std::string(text, static_cast<std::size_t>(got)) : "unknown";
    return fail(ErrorCode::conflict, fmt::format("{} is held by process {}", path, pid));
  }
  // Written over what is there, and cut then: so it needs no space on a full disk.
  const std::string pid = std::to_string(::getpid());
  if (::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()) ||
      ::ftruncate(fd.get(), static_cast<off_t>(pid.size())) != 0)
    return fail(system_error("cannot write " + path, errno));
  return FileLock(std::move(fd));
}

int FileLock::holder(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return 0;
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) == 0) return 0;  // nobody holds it; released with fd
  char text[32] = {};
  return ::pread(fd.get(), text, sizeof text - 1, 0) > 0 ? std::atoi(text) : 0;
}

}  // namespace slipway
