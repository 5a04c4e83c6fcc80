#include "train/nn/kernels.h"

#include <cstdlib>

namespace slipway::train {

namespace avx512 {
extern const Kernels set;
}
namespace avx2 {
extern const Kernels set;
}
namespace plain {
extern const Kernels set;
}

const Kernels* kernels_named(const std::string& name) {
  if (name == "avx512")
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
               ? &avx512::set
               : nullptr;
  if (name == "avx2")
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &avx2::set : nullptr;
  return name == "plain" ? &plain::set : nullptr;
}

const Kernels& kernels() {
  static const Kernels& chosen = []() -> const Kernels& {
    const char* asked = std::getenv("SLIPWAY_TRAIN_ISA");
    if (asked != nullptr)
      if (const Kernels* named = kernels_named(asked)) return *named;
    for (const char* name : {"avx512", "avx2"})
      if (const Kernels* found = kernels_named(name)) return *found;
    return plain::set;
  }();
  return chosen;
}

void transpose(const SparseRows& rows, std::size_t columns, std::uint32_t* start, std::uint16_t* row,
               float* value) {
  const std::uint32_t first = rows.row_start[0];
  const std::uint32_t end = rows.row_start[rows.rows];
  for (std::size_t k = 0; k <= columns; ++k) start[k] = 0;
  for (std::uint32_t q = first; q < end; ++q) ++start[rows.column[q]];
  std::uint32_t total = 0;
  for (std::size_t k = 0; k <= columns; ++k) {
    total += start[k];
    start[k] = total;  // one past the column's end; the loop below counts it down to the beginning
  }
  // Backwards, so that within a column the rows come out in order and sums are the same every time.
  for (std::size_t r = rows.rows; r-- > 0;)
    for (std::uint32_t q = rows.row_start[r + 1]; q-- > rows.row_start[r];) {
      const std::uint32_t at = --start[rows.column[q]];
      row[at] = static_cast<std::uint16_t>(r);
      value[at] = static_cast<float>(rows.value[q]) / 255.0F;
    }
}

}  // namespace slipway::train
