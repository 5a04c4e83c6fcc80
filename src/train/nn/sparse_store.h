#pragma once
// Samples without their zero bytes, made when first asked for and kept: four fifths of an MNIST picture are
// zeros that need neither be read nor multiplied.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "train/data/dataset.h"
#include "train/nn/kernels.h"

namespace slipway::train {

class SparseStore {
 public:
  explicit SparseStore(const Dataset& data);

  // The batch by rows; valid until the next call.
  const SparseRows& rows(std::span<const std::uint32_t> indices);
  // The batch last asked for, by columns.
  const SparseColumns& columns();

 private:
  struct Sample {
    const std::uint16_t* column = nullptr;
    const std::uint8_t* value = nullptr;
    std::uint32_t count = 0;
  };
  const Sample& sample(std::uint32_t index);

  Dataset data_;
  std::size_t size_;
  std::vector<Sample> samples_;
  std::vector<std::unique_ptr<std::uint8_t[]>> blocks_;  // where the samples' columns and values lie
  std::size_t block_left_ = 0;
  std::uint8_t* block_next_ = nullptr;

  std::vector<std::uint32_t> row_start_;
  std::vector<std::uint16_t> column_;
  std::vector<std::uint8_t> value_;
  std::vector<std::uint32_t> column_start_;
  std::vector<std::uint16_t> row_;
  std::vector<float> scaled_;
  SparseRows rows_{};
  SparseColumns columns_{};
};

}  // namespace slipway::train
