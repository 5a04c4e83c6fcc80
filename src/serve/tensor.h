#pragma once
// Tensors as values, and the names their element types have in the protocols.
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/failure.h"

namespace slipway::serve {

enum class DataType {
  float32,
  float64,
  float16,
  bfloat16,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean,
  string,
};

struct TypeNames {
  DataType type;
  const char* tensorflow;       // float: as TensorFlow's messages say it
  const char* tensorflow_enum;  // DT_FLOAT
  const char* oip;              // FP32; Open Inference Protocol
  int tensorflow_number;
  std::size_t size;  // bytes of an element; 0: they differ
};
const TypeNames& names(DataType type);
std::optional<DataType> type_of_oip(std::string_view name);

using Shape = std::vector<std::int64_t>;  // in a signature, -1 stands for any size
// The number of elements; `nullopt` for a negative side or a product that does not fit 48 bits.
std::optional<std::uint64_t> element_count(const Shape& shape);
std::string format_shape(const Shape& shape);  // [2,784]

struct Tensor {
  DataType type = DataType::float32;
  Shape shape;
  std::vector<std::byte> bytes;      // little-endian, row-major; empty for strings
  std::vector<std::string> strings;  // of type string only

  template <class T>
  std::span<T> values() {
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  std::uint64_t count() const {
    return type == DataType::string ? strings.size() : bytes.size() / names(type).size;
  }
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

Tensor float_tensor(Shape shape, std::span<const float> values);
// Rows [first, first + rows) along the first dimension.
Tensor slice_rows(const Tensor& tensor, std::int64_t first, std::int64_t rows);
// The same number of bytes, and no more, in every element of each row; they must agree in all but the first
// dimension and the type.
Answer<Tensor> concatenate_rows(std::span<const Tensor* const> parts);

using Tensors = std::map<std::string, Tensor, std::less<>>;  // by name

float half_to_float(std::uint16_t half);
float bfloat16_to_float(std::uint16_t bits);

}  // namespace slipway::serve
