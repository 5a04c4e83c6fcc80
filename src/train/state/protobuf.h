#pragma once
// Just enough of the protocol-buffer wire format to write messages others have defined.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace slipway::train {

class Message {  // fields in the order they are added
 public:
  Message& integer(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  Message& real(int field, double value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 1);
    return raw(&value, sizeof value);
  }
  Message& real(int field, float value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 5);
    return raw(&value, sizeof value);
  }
  Message& bytes(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& inner) { return bytes(field, inner.bytes_); }

  const std::string& str() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  Message& raw(const void* data, std::size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    return *this;
  }
  std::string bytes_;
};

}  // namespace slipway::train
