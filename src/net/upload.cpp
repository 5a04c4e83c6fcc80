#include "net/upload.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace slipway::net {
namespace {

constexpr std::size_t block_size = 256 * 1024;

}  // namespace

Result<Upload> Upload::open(const Client::Options& options) {
  Upload upload(options);
  upload.size_ = options.body.size();
  if (options.body_file.empty()) return upload;
  const std::string& path = options.body_file;
  upload.file_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!upload.file_) return fail(system_error("cannot open " + path, errno));
  struct stat status {};
  if (::fstat(upload.file_.get(), &status) != 0) return fail(system_error("cannot read " + path, errno));
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid, path + " is not a file");
  upload.size_ = static_cast<std::uint64_t>(status.st_size);
  return upload;
}

void Upload::start(std::string_view head) {
  block_ = head;
  if (!file_) block_ += options_->body;
  sent_ = 0;
  file_offset_ = 0;
}

Result<std::string_view> Upload::next() {
  if (sent_ < block_.size()) return std::string_view(block_).substr(sent_);
  if (!file_ || file_offset_ == size_) return std::string_view();
  block_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(block_size, size_ - file_offset_)));
  ssize_t got = 0;
  do got = ::pread(file_.get(), block_.data(), block_.size(), static_cast<off_t>(file_offset_));
  while (got < 0 && errno == EINTR);
  if (got < 0) return fail(system_error("cannot read " + options_->body_file, errno));
  if (got == 0)
    return fail(ErrorCode::conflict, fmt::format("{} shrank to {} bytes while it was being sent",
                                                 options_->body_file, file_offset_));
  block_.resize(static_cast<std::size_t>(got));
  file_offset_ += static_cast<std::uint64_t>(got);
  sent_ = 0;
  return std::string_view(block_);
}

}  // namespace slipway::net
