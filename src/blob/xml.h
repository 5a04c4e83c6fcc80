#pragma once
// The few answers in XML that a blob store gives, read piece by piece: lists of blobs, and errors.
//
// A small, strict part of XML: elements, attributes, text, CDATA, comments, the five entities and character
// references. A DOCTYPE is refused, so no entity can grow. At most 32 levels; nothing is copied twice.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace slipway::blob {

class XmlReader {
 public:
  enum class Kind : std::uint8_t { open, close, end };
  struct Event {
    Kind kind = Kind::end;
    std::string name{};
    std::vector<std::pair<std::string, std::string>> attributes{};  // of an element that opens
    std::string text{};  // of one that closes: what stands in it, without what stands in its elements
  };

  explicit XmlReader(std::string_view text);  // borrows it
  Result<Event> next();

 private:
  Result<Event> open_tag();
  Result<Event> close_tag();
  Result<void> take_text(std::string_view raw);
  Result<std::string> decode(std::string_view raw) const;
  bool skip(std::string_view begin, std::string_view end, bool& closed);
  std::string_view take_name();
  void take_spaces();
  tl::unexpected<Error> broken(std::string_view why) const;

  std::string_view all_;
  std::string_view rest_;
  std::vector<std::pair<std::string, std::string>> open_;  // names and the text so far
  std::optional<std::string> closes_itself_;               // <name/> is an open, then a close
  bool had_root_ = false;
};

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
