#pragma once
// File descriptors that close themselves, and the few whole-file operations several folders need.
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace slipway {

class Fd {  // owns a file descriptor
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset();
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// "cannot open x/y: No such file or directory", from errno.
Error system_error(std::string_view doing, int error_number);

Result<std::string> read_file(const std::string& path);
// Written beside, synced, renamed into place, folder synced: after a crash there is the old file or the new
// one.
Result<void> write_file_durably(const std::string& path, std::string_view content, unsigned mode = 0644);
// Written beside and renamed into place: who looks finds the whole of it or nothing.
Result<void> write_file(const std::string& path, std::string_view content, unsigned mode = 0644);
// Writes over a file that is there, which mostly needs no space on a full disk. A crash may leave half of it.
Result<void> write_file_over(const std::string& path, std::string_view content);
// Writes everything or says why not.
Result<void> write_all(int fd, std::string_view content, const std::string& name);
Result<void> make_folders(const std::string& path, unsigned mode = 0755);

// Where this program lies, for commands that run a part of it.
std::string own_program();

// A lock on a file, held while the object exists; the file names the holder's pid.
class FileLock {
 public:
  // Error `conflict` with the holder's pid in the message when another process holds it.
  static Result<FileLock> take(const std::string& path);
  // The pid that holds the lock, or 0.
  static int holder(const std::string& path);

 private:
  explicit FileLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace slipway
