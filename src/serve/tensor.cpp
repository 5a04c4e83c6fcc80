#include "serve/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace slipway::serve {
namespace {

constexpr std::uint64_t elements_max = std::uint64_t{1} << 48;

constexpr TypeNames table[] = {
    {DataType::float32, "float", "DT_FLOAT", "FP32", 1, 4},
    {DataType::float64, "double", "DT_DOUBLE", "FP64", 2, 8},
    {DataType::float16, "half", "DT_HALF", "FP16", 19, 2},
    {DataType::bfloat16, "bfloat16", "DT_BFLOAT16", "BF16", 14, 2},
    {DataType::int8, "int8", "DT_INT8", "INT8", 6, 1},
    {DataType::int16, "int16", "DT_INT16", "INT16", 5, 2},
    {DataType::int32, "int32", "DT_INT32", "INT32", 3, 4},
    {DataType::int64, "int64", "DT_INT64", "INT64", 9, 8},
    {DataType::uint8, "uint8", "DT_UINT8", "UINT8", 4, 1},
    {DataType::uint16, "uint16", "DT_UINT16", "UINT16", 17, 2},
    {DataType::uint32, "uint32", "DT_UINT32", "UINT32", 22, 4},
    {DataType::uint64, "uint64", "DT_UINT64", "UINT64", 23, 8},
    {DataType::boolean, "bool", "DT_BOOL", "BOOL", 10, 1},
    {DataType::string, "string", "DT_STRING", "BYTES", 7, 0},
};

}  // namespace

const TypeNames& names(DataType type) { return table[static_cast<std::size_t>(type)]; }

std::optional<DataType> type_of_oip(std::string_view name) {
  for (const TypeNames& row : table)
    if (name == row.oip) return row.type;
  return std::nullopt;
}

std::optional<std::uint64_t> element_count(const Shape& shape) {
  std::uint64_t count = 1;
  bool is_empty = false;
  for (const std::int64_t side : shape) {
    if (side < 0) return std::nullopt;
    if (side == 0) {
      is_empty = true;
      continue;
    }
    if (static_cast<std::uint64_t>(side) > elements_max / count) return std::nullopt;
    count *= static_cast<std::uint64_t>(side);
  }
  return is_empty ? 0 : count;
}

std::string format_shape(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

Tensor float_tensor(Shape shape, std::span<const float> values) {
  Tensor tensor{DataType::float32, std::move(shape), std::vector<std::byte>(values.size_bytes()), {}};
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), values.size_bytes());
  return tensor;
}

Tensor slice_rows(const Tensor& tensor, std::int64_t first, std::int64_t rows) {
  SLIPWAY_CHECK(!tensor.shape.empty() && first >= 0 && rows >= 0 && first + rows <= tensor.shape[0]);
  Tensor part{tensor.type, tensor.shape, {}, {}};
  part.shape[0] = rows;
  if (tensor.shape[0] == 0) return part;
  if (tensor.type == DataType::string) {
    const auto row = static_cast<std::ptrdiff_t>(tensor.strings.size()) / tensor.shape[0];
    part.strings.assign(tensor.strings.begin() + first * row, tensor.strings.begin() + (first + rows) * row);
  } else {
    const auto row = static_cast<std::ptrdiff_t>(tensor.bytes.size()) / tensor.shape[0];
    part.bytes.assign(tensor.bytes.begin() + first * row, tensor.bytes.begin() + (first + rows) * row);
  }
  return part;
}

Answer<Tensor> concatenate_rows(std::span<const Tensor* const> parts) {
  SLIPWAY_CHECK(!parts.empty() && !parts.front()->shape.empty());
  Tensor whole = *parts.front();
  for (const Tensor* part : parts.subspan(1)) {
    const bool fits = part->type == whole.type && part->shape.size() == whole.shape.size() &&
                      std::equal(part->shape.begin() + 1, part->shape.end(), whole.shape.begin() + 1);
    if (!fits)
      return invalid(fmt::format("tensors of shapes {} and {} cannot share a batch",
                                 format_shape(whole.shape), format_shape(part->shape)));
    whole.shape[0] += part->shape[0];
    whole.bytes.insert(whole.bytes.end(), part->bytes.begin(), part->bytes.end());
    whole.strings.insert(whole.strings.end(), part->strings.begin(), part->strings.end());
  }
  return whole;
}

float half_to_float(std::uint16_t half) {
  const float sign = (half & 0x8000U) != 0 ? -1.0F : 1.0F;
  const int exponent = half >> 10 & 0x1F;
  const auto mantissa = static_cast<float>(half & 0x3FFU);
  if (exponent == 31)
    return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : sign * std::numeric_limits<float>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(mantissa + 1024.0F, exponent - 25);
}

float bfloat16_to_float(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

}  // namespace slipway::serve
