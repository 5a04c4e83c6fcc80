#pragma once
// A request on its way out: the head, then the body from memory or, block by block, from a file.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "net/client.h"

namespace slipway::net {

class Upload {
 public:
  // Keeps a reference to the options. Error when the file cannot be opened or has no size.
  static Result<Upload> open(const Client::Options& options);

  std::uint64_t size() const { return size_; }  // of the body
  void start(std::string_view head);            // from the beginning, as often as needed
  // The next bytes to send; empty when all were. Error when the file ends before its time.
  Result<std::string_view> next();
  void advance(std::size_t sent) { sent_ += sent; }

 private:
  explicit Upload(const Client::Options& options) : options_(&options) {}

  const Client::Options* options_;
  Fd file_;
  std::uint64_t size_ = 0;
  std::uint64_t file_offset_ = 0;
  std::string block_;
  std::size_t sent_ = 0;  // of the block
};

}  // namespace slipway::net
