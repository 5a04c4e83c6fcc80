#include "train/exchange/sum.h"

#include <algorithm>

#include "base/check.h"
#include "train/nn/kernels.h"

namespace slipway::train {

std::span<const float> Sum::from(std::size_t begin, std::span<float> buffer) const {
  SLIPWAY_CHECK(begin <= size_);
  if (arrays_.size() == 1) return {arrays_[0] + begin, size_ - begin};
  const std::span<float> piece = buffer.first(std::min(buffer.size(), size_ - begin));
  kernels().sum(piece.data(), arrays_.data(), arrays_.size(), begin, piece.size());
  return piece;
}

}  // namespace slipway::train
