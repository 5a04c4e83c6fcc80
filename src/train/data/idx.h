#pragma once
// The IDX format of MNIST and Fashion-MNIST: big-endian header, then one byte per pixel or label.
#include <cstdint>
#include <span>
#include <string>

#include "train/data/bytes.h"
#include "train/data/dataset.h"

namespace slipway::train {

struct IdxImages {
  std::size_t count = 0;
  int height = 0;
  int width = 0;
  std::span<const std::uint8_t> pixels;
};

// Check magic, sizes and length; `name` is the file, for the message. Nothing is copied.
Result<IdxImages> parse_idx_images(std::span<const std::uint8_t> bytes, const std::string& name);
Result<std::span<const std::uint8_t>> parse_idx_labels(std::span<const std::uint8_t> bytes,
                                                       const std::string& name);

// The four files of MNIST's layout (train-images-idx3-ubyte, …, plain or .gz) in `folder`.
Result<DataPair> read_idx_folder(const std::string& folder, const std::string& name,
                                 const std::string& cache_folder);

}  // namespace slipway::train
