#pragma once
// HTTP requests and responses as values, for server and client alike.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace slipway::net {

using Headers = std::vector<std::pair<std::string, std::string>>;
// First value of a header, names compared without case.
std::optional<std::string> find_header(const Headers& headers, std::string_view name);

// A body that was put into a file; removed with the last who holds it, unless it was moved away.
class BodyFile {
 public:
  explicit BodyFile(std::string path) : path_(std::move(path)) {}
  BodyFile(const BodyFile&) = delete;
  BodyFile& operator=(const BodyFile&) = delete;
  ~BodyFile();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Request {
  std::string peer_name;  // in the certificate the client showed; empty without TLS or one
  std::string method;     // GET
  std::string target;     // as sent: /v1/jobs?limit=3
  std::string path;       // before '?', still percent-encoded
  std::vector<std::pair<std::string, std::string>> query;  // decoded
  Headers headers;
  std::string body;                           // empty when it was spooled
  std::shared_ptr<const BodyFile> body_file;  // where a large body was put; else nullptr
  std::uint64_t body_size = 0;
  std::string peer;  // address of the client

  std::optional<std::string> header(std::string_view name) const { return find_header(headers, name); }
  std::optional<std::string> parameter(std::string_view name) const;
};

struct Response {
  int status = 200;
  Headers headers{};
  std::string body{};
};

// Percent-decoding; nullopt for a broken escape or an encoded NUL.
std::optional<std::string> percent_decode(std::string_view text);
std::string percent_encode(std::string_view text);  // everything but unreserved characters
// The parts of a path between slashes, decoded: /v1/jobs/job_1 → v1, jobs, job_1. nullopt when one is broken.
std::optional<std::vector<std::string>> split_path(std::string_view path);

struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // included
};
// A single range of a Range header ("bytes=0-99", "bytes=100-", "bytes=-500") for a body of `size` bytes.
// nullopt when the header asks for something else (then the whole is sent); an error when it lies outside.
Result<std::optional<ByteRange>> parse_range(std::string_view header, std::uint64_t size);

}  // namespace slipway::net
