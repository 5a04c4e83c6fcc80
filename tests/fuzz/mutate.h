#pragma once
// Inputs a little beside good ones, from a seed: the same seed gives the same inputs.
#include <string>
#include <vector>

#include "base/random.h"

namespace slipway::fuzz {

constexpr std::size_t input_size_max = 16 * 1024;

// One of `corpus`, changed in one to eight places: bits, bytes, pieces removed, doubled, swapped or taken
// from another one, numbers made extreme, words of other inputs put in.
std::string mutate(const std::vector<std::string>& corpus, Random& random);

}  // namespace slipway::fuzz
