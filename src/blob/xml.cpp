#include "blob/xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <pugixml.hpp>

#include "net/http.h"

namespace slipway::blob {
namespace {

class LimitCheck final : public pugi::xml_tree_walker {
 public:
  bool for_each(pugi::xml_node& node) override {
    if (depth() >= xml_depth_max) problem_ = "too many levels";
    if (node.type() == pugi::node_doctype) problem_ = "a DOCTYPE";
    return problem_ == nullptr;
  }
  const char* problem() const { return problem_; }

 private:
  const char* problem_ = nullptr;
};

Result<void> load(pugi::xml_document& document, std::string_view xml) {
  if (xml.size() > xml_size_max)
    return fail(ErrorCode::too_large,
                fmt::format("the XML has {} bytes, more than {}", xml.size(), xml_size_max));
  const auto parsed = document.load_buffer(
      xml.data(), xml.size(), pugi::parse_default | pugi::parse_doctype | pugi::parse_ws_pcdata_single,
      pugi::encoding_utf8);
  if (!parsed)
    return fail(ErrorCode::invalid,
                fmt::format("the XML is broken at byte {}: {}", parsed.offset, parsed.description()));
  LimitCheck check;
  document.traverse(check);
  if (check.problem() != nullptr)
    return fail(ErrorCode::invalid, fmt::format("the XML is refused: {}", check.problem()));
  return {};
}

// Text and CDATA of an element, without those of the elements in it.
std::string text_of(const pugi::xml_node& node) {
  std::string text;
  for (const pugi::xml_node& child : node)
    if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata) text += child.value();
  return text;
}

tl::unexpected<Error> unreadable(std::string_view what) {
  return fail(ErrorCode::invalid, fmt::format("the list of blobs cannot be read: {}", what));
}

Result<BlobInfo> parse_blob(const pugi::xml_node& node) {
  const pugi::xml_node name_node = node.child("Name"), properties = node.child("Properties");
  BlobInfo blob;
  blob.name = text_of(name_node);
  if (std::string_view(name_node.attribute("Encoded").value()) == "true") {
    auto decoded = net::percent_decode(blob.name);
    if (!decoded) return unreadable("a name is not percent-encoded as it says");
    blob.name = std::move(*decoded);
  }
  const std::string size = text_of(properties.child("Content-Length"));
  if (blob.name.empty() || size.empty()) return unreadable("a blob has no name or no size");
  const auto [stop, error] = std::from_chars(size.data(), size.data() + size.size(), blob.size);
  if (error != std::errc{} || stop != size.data() + size.size())
    return unreadable(fmt::format("'{}' is not a size", size));
  blob.etag = text_of(properties.child("Etag"));
  std::erase(blob.etag, '"');
  blob.md5 = text_of(properties.child("Content-MD5"));
  return blob;
}

}  // namespace

Result<BlobPage> parse_blob_page(std::string_view xml) {
  pugi::xml_document document;
  if (auto loaded = load(document, xml); !loaded) return fail(std::move(loaded.error()));
  const pugi::xml_node results = document.child("EnumerationResults");
  if (!results) return unreadable("it is another answer");
  BlobPage page;
  for (const pugi::xml_node& node : results.child("Blobs").children("Blob")) {
    auto blob = parse_blob(node);
    if (!blob) return fail(std::move(blob.error()));
    page.blobs.push_back(std::move(*blob));
  }
  page.next_marker = text_of(results.child("NextMarker"));
  return page;
}

StoreError parse_store_error(std::string_view xml) {
  pugi::xml_document document;
  if (!load(document, xml)) return {};
  const pugi::xml_node error = document.document_element();
  const std::string message = text_of(error.child("Message"));
  return {text_of(error.child("Code")), message.substr(0, message.find('\n'))};
}

}  // namespace slipway::blob
