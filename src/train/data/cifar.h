#pragma once
// The binary form of CIFAR-10: records of one label byte and 3072 bytes, the red, green and blue planes.
#include <cstdint>
#include <span>
#include <string>

#include "train/data/dataset.h"

namespace slipway::train {

inline constexpr std::size_t cifar_record_bytes = 1 + 3 * 32 * 32;

// The number of records, at least one. Checks length and labels.
Result<std::size_t> parse_cifar(std::span<const std::uint8_t> bytes, const std::string& name);

// data_batch_1.bin to data_batch_5.bin (as many as are there, from 1) and test_batch.bin, mapped.
Result<DataPair> read_cifar_folder(const std::string& folder);

}  // namespace slipway::train
