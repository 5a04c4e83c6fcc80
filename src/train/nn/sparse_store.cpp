#include "train/nn/sparse_store.h"

#include <cstring>

namespace slipway::train {
namespace {
constexpr std::size_t block_bytes = std::size_t{1} << 20;
}

SparseStore::SparseStore(const Dataset& data)
    : data_(data), size_(static_cast<std::size_t>(data.shape().size())), samples_(data.count()) {}

const SparseStore::Sample& SparseStore::sample(std::uint32_t index) {
  Sample& sample = samples_[index];
  if (sample.column != nullptr) return sample;
  std::uint16_t columns[65536];
  std::uint8_t values[65536];
  const std::uint8_t* image = data_.image(index);
  std::uint32_t count = 0;
  const auto keep = [&](std::size_t i) {  // without branches: what follows the last one kept is overwritten
    columns[count] = static_cast<std::uint16_t>(i);
    values[count] = image[i];
    count += image[i] != 0 ? 1U : 0U;
  };
  std::size_t i = 0;
  for (std::uint64_t eight = 0; i + sizeof eight <= size_; i += sizeof eight) {
    std::memcpy(&eight, image + i, sizeof eight);
    if (eight == 0) continue;  // most are
    for (std::size_t j = i; j < i + sizeof eight; ++j) keep(j);
  }
  for (; i < size_; ++i) keep(i);
  const std::size_t bytes = (count * 3 + 3) / 2 * 2;
  if (bytes > block_left_) {
    block_left_ = std::max(block_bytes, bytes);
    blocks_.push_back(std::make_unique_for_overwrite<std::uint8_t[]>(block_left_));
    block_next_ = blocks_.back().get();
  }
  std::memcpy(block_next_, columns, count * 2);
  std::memcpy(block_next_ + count * 2, values, count);
  sample = {reinterpret_cast<const std::uint16_t*>(block_next_), block_next_ + count * 2, count};
  block_next_ += bytes;
  block_left_ -= bytes;
  return sample;
}

const SparseRows& SparseStore::rows(std::span<const std::uint32_t> indices) {
  row_start_.resize(indices.size() + 1);
  std::size_t total = 0;
  for (std::size_t r = 0; r < indices.size(); ++r) {
    row_start_[r] = static_cast<std::uint32_t>(total);
    total += sample(indices[r]).count;
  }
  row_start_[indices.size()] = static_cast<std::uint32_t>(total);
  if (column_.size() < total) {
    column_.resize(total * 5 / 4);
    value_.resize(total * 5 / 4);
  }
  for (std::size_t r = 0; r < indices.size(); ++r) {
    const Sample& from = samples_[indices[r]];
    std::memcpy(column_.data() + row_start_[r], from.column, from.count * 2);
    std::memcpy(value_.data() + row_start_[r], from.value, from.count);
  }
  rows_ = {row_start_.data(), column_.data(), value_.data(), indices.size()};
  return rows_;
}

const SparseColumns& SparseStore::columns() {
  const std::size_t total = row_start_.back();
  column_start_.resize(size_ + 1);
  if (row_.size() < total) {
    row_.resize(total * 5 / 4);
    scaled_.resize(total * 5 / 4);
  }
  transpose(rows_, size_, column_start_.data(), row_.data(), scaled_.data());
  columns_ = {column_start_.data(), row_.data(), scaled_.data(), size_};
  return columns_;
}

}  // namespace slipway::train
