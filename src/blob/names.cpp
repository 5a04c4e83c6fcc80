#include "blob/names.h"

#include <algorithm>

#include "net/http.h"

namespace slipway::blob {
namespace {

constexpr std::size_t name_size_max = 1024;  // the store's own limit
constexpr std::size_t part_size_max = 255;   // the file system's

// Bytes of the character that begins here; 0 when it is broken, overlong, a surrogate or too large.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90))
    return 0;
  return size;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::optional<std::string> trouble_with_part(std::string_view part) {
  if (part.empty()) return "it has an empty part";
  if (part == "." || part == "..") return "it has a part '" + std::string(part) + "'";
  if (part.size() > part_size_max) return "a part of it has more than 255 bytes";
  if (part.starts_with(partial_prefix)) return "names like it are kept for files that are being written";
  if (part.ends_with('.')) return "a part of it ends with a dot, which stores drop";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> trouble_with_name(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.size() > name_size_max) return "it has more than 1024 bytes";
  if (name.front() == '/') return "it is an absolute path";
  if (!is_utf8(name)) return "it is not UTF-8";
  if (std::any_of(name.begin(), name.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
    return "it has a control character";
  if (name.find('\\') != std::string_view::npos) return "it has a backslash, which stores turn into '/'";
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    if (auto trouble = trouble_with_part(name.substr(begin, end - begin))) return trouble;
    begin = end + 1;
  }
  return std::nullopt;
}

std::string encode_path(std::string_view name) {
  std::string path;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    if (begin > 0) path += '/';
    path += net::percent_encode(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return path;
}

}  // namespace slipway::blob
