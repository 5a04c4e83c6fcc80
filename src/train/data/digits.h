#pragma once
// Digits drawn by the program itself, so that it can train where no data set is to be had.
//
// Each digit is a few strokes, turned, sheared, scaled and moved at random, drawn with a pen of random width
// and sprinkled with noise: 28x28 bytes like MNIST. Same seed, same images. A plain network learns them to
// more than 98 %.
#include <cstdint>

#include "train/data/dataset.h"

namespace slipway::train {

struct DigitCounts {
  std::size_t train = 12'000;
  std::size_t test = 2'000;
};

DataPair draw_digits(std::uint64_t seed, DigitCounts counts = {});

}  // namespace slipway::train
