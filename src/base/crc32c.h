#pragma once
// CRC-32C (Castagnoli), by the processor's own instruction where it has one. Guards checkpoints, frames on
// the wire, TensorBoard records and the points of metrics.
#include <cstddef>
#include <cstdint>

namespace slipway {

// Continue with `before` = the value so far; 0 to begin.
std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t before = 0);
std::uint32_t crc32c_reference(const void* data, std::size_t size, std::uint32_t before = 0);

}  // namespace slipway
