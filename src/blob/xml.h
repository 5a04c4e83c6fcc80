#pragma once
// The few answers in XML that a blob store gives: lists of blobs, and errors. At most 32 MiB and 32 levels; a
// DOCTYPE is refused.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipway::blob {

inline constexpr std::size_t xml_size_max = 32u << 20;
inline constexpr int xml_depth_max = 32;

struct BlobInfo {
  std::string name;
  std::string etag;  // without quotes
  std::uint64_t size = 0;
  std::string md5{};  // base64; empty when the store does not know it
  friend bool operator==(const BlobInfo&, const BlobInfo&) = default;
};
struct BlobPage {
  std::vector<BlobInfo> blobs;
  std::string next_marker;  // empty: this is the last page
};
Result<BlobPage> parse_blob_page(std::string_view xml);

struct StoreError {
  std::string code;     // AuthenticationFailed; empty when the text is no such answer
  std::string message;  // its first line
};
StoreError parse_store_error(std::string_view xml);

}  // namespace slipway::blob
