#pragma once
// Fields of a message in protobuf's wire format, one after another. Views into the bytes, which must outlive
// it.
#include <cstdint>
#include <cstring>
#include <string_view>

namespace slipway::serve {

struct ProtoField {
  enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  std::uint64_t number = 0;
  Wire wire = Wire::varint;
  std::uint64_t integer = 0;  // of varint, fixed64 and fixed32
  std::string_view bytes;
};

class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : left_(bytes) {}

  // False at the end, or where the bytes are no message: then is_broken() is true.
  bool next(ProtoField& field) {
    if (left_.empty() || is_broken_) return false;
    std::uint64_t key = 0;
    if (!varint(key)) return false;
    field = {key >> 3, static_cast<ProtoField::Wire>(key & 7), 0, {}};
    switch (field.wire) {
      case ProtoField::Wire::varint: return varint(field.integer);
      case ProtoField::Wire::fixed64: return fixed(field.integer, 8);
      case ProtoField::Wire::fixed32: return fixed(field.integer, 4);
      case ProtoField::Wire::bytes: break;
      default: return broken();
    }
    std::uint64_t size = 0;
    if (!varint(size) || size > left_.size()) return broken();
    field.bytes = left_.substr(0, size);
    left_.remove_prefix(size);
    return true;
  }
  // Of packed values.
  bool varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return broken();
  }
  bool fixed(std::uint64_t& value, std::size_t size) {
    if (left_.size() < size) return broken();
    std::memcpy(&value, left_.data(), size);
    left_.remove_prefix(size);
    return true;
  }
  bool is_empty() const { return left_.empty(); }
  bool is_broken() const { return is_broken_; }

 private:
  bool broken() {
    is_broken_ = true;
    return false;
  }
  std::string_view left_;
  bool is_broken_ = false;
};

}  // namespace slipway::serve
