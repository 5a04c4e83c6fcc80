#pragma once
// Values as bytes: numbers in as few as they need, texts after their length. What is read may be any bytes:
// a reader that runs past the end has failed and gives zeros from then on.
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace slipway::track {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

// Small numbers of either sign as small numbers.
constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

class ByteWriter {
 public:
  ByteWriter() = default;
  explicit ByteWriter(std::string onto) : out_(std::move(onto)) {}

  void byte(std::uint8_t value) { out_ += static_cast<char>(value); }
  void fixed32(std::uint32_t value) { append(&value, 4); }
  void fixed64(std::uint64_t value) { append(&value, 8); }
  void real(double value) { append(&value, 8); }
  void count(std::uint64_t value) {  // LEB128
    for (; value >= 0x80; value >>= 7) byte(static_cast<std::uint8_t>(value | 0x80));
    byte(static_cast<std::uint8_t>(value));
  }
  void integer(std::int64_t value) { count(zigzag(value)); }
  void text(std::string_view value) {
    count(value.size());
    out_ += value;
  }
  void raw(std::string_view bytes) { out_ += bytes; }
  std::size_t size() const { return out_.size(); }
  std::string take() { return std::move(out_); }

 private:
  void append(const void* from, std::size_t size) { out_.append(static_cast<const char*>(from), size); }
  std::string out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t byte() {
    if (rest_.empty()) return lost();
    const auto value = static_cast<std::uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return value;
  }
  std::uint32_t fixed32() { return fixed<std::uint32_t>(); }
  std::uint64_t fixed64() { return fixed<std::uint64_t>(); }
  double real() { return fixed<double>(); }
  std::uint64_t count() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      value |= static_cast<std::uint64_t>(next & 0x7f) << shift;
      if (next < 0x80) return value;
    }
    return lost();
  }
  std::int64_t integer() { return unzigzag(count()); }
  std::string_view bytes(std::size_t size) {
    if (size > rest_.size()) {
      lost();
      return {};
    }
    const std::string_view value = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return value;
  }
  std::string_view view() { return bytes(count()); }
  std::string text() { return std::string(view()); }
  // Of things that follow, each of at least one byte: never more than there are bytes.
  std::size_t items() {
    const std::uint64_t value = count();
    if (value > rest_.size()) lost();
    return failed_ ? 0 : value;
  }

  bool at_end() const { return rest_.empty(); }
  bool failed() const { return failed_; }
  std::string_view rest() const { return rest_; }

 private:
  std::uint8_t lost() {
    failed_ = true;
    rest_ = {};
    return 0;
  }
  template <class T>
  T fixed() {
    T value{};
    if (rest_.size() < sizeof(T)) {
      lost();
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace slipway::track
