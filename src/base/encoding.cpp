#include "base/encoding.h"

#include <array>
#include <cstdint>

namespace slipway {
namespace {

constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> values = [] {
  std::array<std::int8_t, 256> table{};
  table.fill(-1);
  for (std::size_t i = 0; i < digits.size(); ++i)
    table[static_cast<unsigned char>(digits[i])] = static_cast<std::int8_t>(i);
  return table;
}();

std::uint32_t byte(char c) { return static_cast<unsigned char>(c); }

}  // namespace

std::string format_hex(std::string_view bytes) {
  static constexpr char hex[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    text.push_back(hex[byte(c) >> 4]);
    text.push_back(hex[byte(c) & 15]);
  }
  return text;
}

std::optional<std::string> parse_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(high << 4 | low));
  }
  return bytes;
}

std::string format_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    const std::uint32_t group =
        byte(bytes[i]) << 16 | (left > 1 ? byte(bytes[i + 1]) << 8 : 0) | (left > 2 ? byte(bytes[i + 2]) : 0);
    text.push_back(digits[group >> 18]);
    text.push_back(digits[group >> 12 & 63]);
    text.push_back(left > 1 ? digits[group >> 6 & 63] : '=');
    text.push_back(left > 2 ? digits[group & 63] : '=');
  }
  return text;
}

std::optional<std::string> parse_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_padding = i >= text.size() - padding;
    const int value = is_padding ? 0 : values[byte(text[i])];
    if (value < 0) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(value);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<char>(group >> shift & 255));
    group = 0;
  }
  for (std::size_t i = 0; i < padding; ++i) {
    if (bytes.back() != '\0') return std::nullopt;  // bits that say nothing must be zero
    bytes.pop_back();
  }
  return bytes;
}

std::string format_base64url(std::string_view bytes) {
  std::string text = format_base64(bytes);
  while (text.ends_with('=')) text.pop_back();
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text;
}

std::optional<std::string> parse_base64url(std::string_view text) {
  std::string usual(text);
  for (char& c : usual) {
    if (c == '+' || c == '/' || c == '=') return std::nullopt;
    c = c == '-' ? '+' : c == '_' ? '/' : c;
  }
  usual.append((4 - usual.size() % 4) % 4, '=');
  return parse_base64(usual);
}

}  // namespace slipway
