#include "train/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>

namespace slipway::train {

std::string to_string(const Shape& shape) {
  if (shape.height == 1 && shape.width == 1) return std::to_string(shape.channels);
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

Dataset::Dataset(Shape shape, int classes, std::vector<Piece> pieces)
    : shape_(shape), classes_(classes), pieces_(std::move(pieces)) {
  for (const Piece& piece : pieces_) count_ += piece.count;
}

Result<void> Dataset::check_labels(const std::string& name) const {
  for (std::size_t i = 0; i < count_; ++i)
    if (label(i) >= classes_)
      return fail(ErrorCode::invalid,
                  fmt::format("{}: the label of sample {} is {}, and there are {} classes (0 to {})", name, i,
                              label(i), classes_, classes_ - 1),
                  "check that images and labels belong together, or unpack the files again");
  return {};
}

double Dataset::density() const {
  const std::size_t samples = std::min<std::size_t>(count_, 200);
  if (samples == 0) return 0;
  const auto size = static_cast<std::size_t>(shape_.size());
  std::size_t filled = 0;
  for (std::size_t i = 0; i < samples; ++i)
    filled += size - static_cast<std::size_t>(std::count(image(i), image(i) + size, std::uint8_t{0}));
  return static_cast<double>(filled) / static_cast<double>(samples * size);
}

}  // namespace slipway::train
