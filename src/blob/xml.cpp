#include "blob/xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "net/http.h"

namespace slipway::blob {
namespace {

constexpr std::size_t depth_max = 32;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':'; }
bool is_in_name(char c) { return starts_name(c) || (c >= '0' && c <= '9') || c == '-' || c == '.'; }

void append_utf8(std::string& text, std::uint32_t point) {
  const auto put = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | point >> 6);
  } else {
    if (point < 0x10000) {
      put(0xe0 | point >> 12);
    } else {
      put(0xf0 | point >> 18);
      put(0x80 | (point >> 12 & 63));
    }
    put(0x80 | (point >> 6 & 63));
  }
  put(0x80 | (point & 63));
}

// The text that an entity between & and ; stands for.
bool append_entity(std::string& text, std::string_view entity) {
  constexpr std::pair<std::string_view, char> named[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [name, c] : named)
    if (entity == name) {
      text.push_back(c);
      return true;
    }
  if (!entity.starts_with('#')) return false;
  entity.remove_prefix(1);
  const int base = entity.starts_with('x') ? 16 : 10;
  if (base == 16) entity.remove_prefix(1);
  std::uint32_t point = 0;
  const char* const end = entity.data() + entity.size();
  const auto [stop, error] = std::from_chars(entity.data(), end, point, base);
  if (entity.empty() || error != std::errc{} || stop != end) return false;
  if (point == 0 || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
  append_utf8(text, point);
  return true;
}

}  // namespace

XmlReader::XmlReader(std::string_view text) : all_(text), rest_(text) {
  if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
}

tl::unexpected<Error> XmlReader::broken(std::string_view why) const {
  return fail(ErrorCode::invalid,
              fmt::format("the XML is broken at byte {}: {}", all_.size() - rest_.size(), why));
}

void XmlReader::take_spaces() {
  while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
}

std::string_view XmlReader::take_name() {
  if (rest_.empty() || !starts_name(rest_.front())) return {};
  const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_in_name);
  const std::string_view name(rest_.begin(), end);
  rest_.remove_prefix(name.size());
  return name;
}

Result<std::string> XmlReader::decode(std::string_view raw) const {
  std::string text;
  while (!raw.empty()) {
    const std::size_t mark = std::min(raw.find('&'), raw.size());
    text += raw.substr(0, mark);
    raw.remove_prefix(mark);
    if (raw.empty()) break;
    const std::size_t end = raw.substr(0, 16).find(';');
    if (end == std::string_view::npos || !append_entity(text, raw.substr(1, end - 1)))
      return broken("an entity that is not known");
    raw.remove_prefix(end + 1);
  }
  return text;
}

Result<void> XmlReader::take_text(std::string_view raw) {
  if (open_.empty()) {
    if (std::all_of(raw.begin(), raw.end(), is_space)) return {};
    return broken("text outside of the element");
  }
  auto text = decode(raw);
  if (!text) return fail(std::move(text.error()));
  open_.back().second += *text;
  return {};
}

// Skips a comment or an instruction, when one begins here.
bool XmlReader::skip(std::string_view begin, std::string_view end, bool& closed) {
  if (!rest_.starts_with(begin)) return false;
  const std::size_t at = rest_.find(end, begin.size());
  closed = at != std::string_view::npos;
  if (closed) rest_.remove_prefix(at + end.size());
  return true;
}

Result<XmlReader::Event> XmlReader::next() {
  if (closes_itself_) {
    Event event{.kind = Kind::close, .name = std::move(*closes_itself_)};
    closes_itself_.reset();
    return event;
  }
  for (;;) {
    const std::size_t mark = std::min(rest_.find('<'), rest_.size());
    if (auto taken = take_text(rest_.substr(0, mark)); !taken) return fail(std::move(taken.error()));
    rest_.remove_prefix(mark);
    if (rest_.empty()) {
      if (!open_.empty() || !had_root_) return broken("it ends too early");
      return Event{};
    }
    bool closed = true;
    if (skip("<?", "?>", closed) || skip("<!--", "-->", closed)) {
      if (!closed) return broken("it ends too early");
      continue;
    }
    if (constexpr std::string_view cdata = "<![CDATA["; rest_.starts_with(cdata)) {
      const std::size_t end = rest_.find("]]>");
      if (end == std::string_view::npos || open_.empty())
        return broken("a CDATA section that does not belong");
      open_.back().second += rest_.substr(cdata.size(), end - cdata.size());
      rest_.remove_prefix(end + 3);
      continue;
    }
    if (rest_.starts_with("<!")) return broken("a DOCTYPE, which is not read");
    return rest_.starts_with("</") ? close_tag() : open_tag();
  }
}

Result<XmlReader::Event> XmlReader::open_tag() {
  if (open_.empty() && had_root_) return broken("a second element");
  had_root_ = true;
  if (open_.size() >= depth_max) return broken("too many levels");
  rest_.remove_prefix(1);
  Event event{.kind = Kind::open, .name = std::string(take_name())};
  if (event.name.empty()) return broken("a '<' without a name");
  for (;;) {
    take_spaces();
    if (rest_.starts_with("/>")) {
      rest_.remove_prefix(2);
      closes_itself_ = event.name;
      return event;
    }
    if (rest_.starts_with('>')) {
      rest_.remove_prefix(1);
      open_.emplace_back(event.name, "");
      return event;
    }
    std::string name(take_name());
    take_spaces();
    if (name.empty() || !rest_.starts_with('=')) return broken("an attribute without a value");
    rest_.remove_prefix(1);
    take_spaces();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    const std::size_t end = quote == '"' || quote == '\'' ? rest_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) return broken("an attribute without quotes");
    const std::string_view raw = rest_.substr(1, end - 1);
    if (raw.find('<') != std::string_view::npos) return broken("a '<' in an attribute");
    auto value = decode(raw);
    if (!value) return fail(std::move(value.error()));
    event.attributes.emplace_back(std::move(name), std::move(*value));
    rest_.remove_prefix(end + 1);
  }
}

Result<XmlReader::Event> XmlReader::close_tag() {
  rest_.remove_prefix(2);
  const std::string_view name = take_name();
  take_spaces();
  if (open_.empty() || open_.back().first != name || !rest_.starts_with('>'))
    return broken("a tag closes that is not open");
  rest_.remove_prefix(1);
  Event event{.kind = Kind::close, .name = std::string(name), .text = std::move(open_.back().second)};
  open_.pop_back();
  return event;
}

Result<BlobPage> parse_blob_page(std::string_view xml) {
  XmlReader reader(xml);
  BlobPage page;
  std::string path;  // of the element that is open: /EnumerationResults/Blobs/Blob
  std::optional<BlobInfo> blob;
  bool is_encoded = false, has_size = false;
  const std::string in_blob = "/EnumerationResults/Blobs/Blob";
  const auto odd = [](std::string_view what) {
    return fail(ErrorCode::invalid, fmt::format("the list of blobs cannot be read: {}", what));
  };
  for (;;) {
    auto event = reader.next();
    if (!event) return fail(std::move(event.error()));
    if (event->kind == XmlReader::Kind::end) return page;
    if (event->kind == XmlReader::Kind::open) {
      path += "/" + event->name;
      if (!path.starts_with("/EnumerationResults")) return odd("it is another answer");
      if (path == in_blob) {
        blob.emplace();
        is_encoded = has_size = false;
      }
      if (path == in_blob + "/Name")
        is_encoded = std::count(event->attributes.begin(), event->attributes.end(),
                                std::pair<std::string, std::string>("Encoded", "true")) > 0;
      continue;
    }
    std::string& text = event->text;
    if (path == in_blob) {
      if (blob->name.empty() || !has_size) return odd("a blob has no name or no size");
      page.blobs.push_back(std::move(*blob));
      blob.reset();
    } else if (path == in_blob + "/Name") {
      auto name = is_encoded ? net::percent_decode(text) : std::optional(std::move(text));
      if (!name) return odd("a name is not percent-encoded as it says");
      blob->name = std::move(*name);
    } else if (path == in_blob + "/Properties/Etag") {
      std::erase(text, '"');
      blob->etag = std::move(text);
    } else if (path == in_blob + "/Properties/Content-MD5") {
      blob->md5 = std::move(text);
    } else if (path == in_blob + "/Properties/Content-Length") {
      const char* const end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, blob->size);
      if (error != std::errc{} || stop != end) return odd(fmt::format("'{}' is not a size", text));
      has_size = true;
    } else if (path == "/EnumerationResults/NextMarker") {
      page.next_marker = std::move(text);
    }
    path.resize(path.size() - event->name.size() - 1);
  }
}

StoreError parse_store_error(std::string_view xml) {
  XmlReader reader(xml);
  StoreError error;
  for (;;) {
    const auto event = reader.next();
    if (!event || event->kind == XmlReader::Kind::end) return error;
    if (event->kind != XmlReader::Kind::close) continue;
    if (event->name == "Code") error.code = event->text;
    if (event->name == "Message") error.message = event->text.substr(0, event->text.find('\n'));
  }
}

}  // namespace slipway::blob
