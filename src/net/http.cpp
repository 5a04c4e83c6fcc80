#include "net/http.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace slipway::net {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (lower(c) >= 'a' && lower(c) <= 'f') return lower(c) - 'a' + 10;
  return -1;
}

bool is_unreserved(char c) {  // RFC 3986 §2.3
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' || c == '.' || c == '_' ||
         c == '~';
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

}  // namespace

BodyFile::~BodyFile() { ::unlink(path_.c_str()); }

std::optional<std::string> find_header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    const auto same = [](char a, char b) { return lower(a) == lower(b); };
    if (std::equal(key.begin(), key.end(), name.begin(), name.end(), same)) return value;
  }
  return std::nullopt;
}

std::optional<std::string> Request::parameter(std::string_view name) const {
  for (const auto& [key, value] : query)
    if (key == name) return value;
  return std::nullopt;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_value(text[i + 1]);
    const int low = hex_value(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

std::string percent_encode(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c))
      encoded += c;
    else
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

std::optional<std::vector<std::string>> split_path(std::string_view path) {
  std::vector<std::string> parts;
  if (path.starts_with('/')) path.remove_prefix(1);
  while (!path.empty()) {  // a slash at the end adds no part
    const std::size_t slash = std::min(path.find('/'), path.size());
    auto part = percent_decode(path.substr(0, slash));
    if (!part) return std::nullopt;
    parts.push_back(std::move(*part));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

Result<std::optional<ByteRange>> parse_range(std::string_view header, std::uint64_t size) {
  constexpr std::string_view unit = "bytes=";
  const std::optional<ByteRange> whole;
  if (!header.starts_with(unit)) return whole;
  header.remove_prefix(unit.size());
  const std::size_t dash = header.find('-');
  if (dash == std::string_view::npos) return whole;

  const auto outside = [&] {
    return fail(ErrorCode::invalid,
                fmt::format("the range {} lies outside the {} bytes there are", header, size));
  };
  const auto last = parse_number(header.substr(dash + 1));
  if (dash == 0) {  // the last so many
    if (!last) return whole;
    if (*last == 0 || size == 0) return outside();
    return ByteRange{size - std::min(*last, size), size - 1};
  }
  const auto first = parse_number(header.substr(0, dash));
  if (!first || (!last && dash + 1 != header.size()) || (last && *last < *first)) return whole;
  if (*first >= size) return outside();
  return ByteRange{*first, last ? std::min(*last, size - 1) : size - 1};
}

}  // namespace slipway::net
