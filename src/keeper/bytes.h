#pragma once
// Integers (little-endian) and strings as bytes, for the keeper's socket and its journal.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace slipway::keeper {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "integers are written as they lie in memory");

class ByteWriter {  // appends to a string
 public:
  explicit ByteWriter(std::string& out) : out_(out) {}
  template <class Integer>
  void number(Integer value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    out_.append(value);
  }

 private:
  std::string& out_;
};

class ByteReader {  // past the end everything reads as zero or empty, and is_ok() is false from then on
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
  template <class Integer>
  Integer number() {
    Integer value{};
    if (const std::string_view raw = take(sizeof value); raw.size() == sizeof value)
      std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number<std::uint32_t>())); }
  // A count of things that take at least one byte each, so that a wrong one cannot ask for much memory.
  std::uint32_t count() {
    const auto value = number<std::uint32_t>();
    if (value <= bytes_.size()) return value;
    ok_ = false;
    return 0;
  }
  // One byte that names something from 0 up to `last`.
  template <class Enum>
  Enum choice(Enum last) {
    const auto value = number<std::uint8_t>();
    if (value <= static_cast<std::uint8_t>(last)) return static_cast<Enum>(value);
    ok_ = false;
    return Enum{};
  }
  bool is_ok() const { return ok_; }
  bool is_done() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view take(std::size_t size) {
    if (!ok_ || size > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace slipway::keeper
