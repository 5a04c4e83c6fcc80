#include "train/data/order.h"

#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace slipway::train {

std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t z = a * 0x9e3779b97f4a7c15ULL;
  for (const std::uint64_t word : {b, c}) {
    z ^= word + 0x632be59bd9b4e019ULL + (z << 6) + (z >> 2);
    z = (z ^ (z >> 31)) * 0xd6e8feb86659fd93ULL;
    z ^= z >> 32;
  }
  return z;
}

Order::Order(std::uint64_t seed, Sizes sizes)
    : seed_(seed),
      sizes_(sizes),
      steps_per_epoch_(sizes.samples / (sizes.batch * sizes.workers)),
      shuffled_epoch_(~std::uint64_t{0}),
      permutation_(sizes.samples) {
  SLIPWAY_CHECK(steps_per_epoch_ > 0);
}

std::span<const std::uint32_t> Order::at(std::uint64_t step, std::size_t worker) {
  SLIPWAY_CHECK(worker < sizes_.workers);
  if (const std::uint64_t now = epoch(step); now != shuffled_epoch_) {
    std::iota(permutation_.begin(), permutation_.end(), 0U);
    Random random(mix(seed_, now, 0x5348'5546));
    for (std::size_t i = permutation_.size(); i > 1; --i) {
      // The high half of a 64-bit product: no division, and the bias of 2^-40 does not matter here.
      const auto j = static_cast<std::size_t>(((random.next() >> 32) * i) >> 32);
      std::swap(permutation_[i - 1], permutation_[j]);
    }
    shuffled_epoch_ = now;
  }
  const std::size_t first = (step % steps_per_epoch_ * sizes_.workers + worker) * sizes_.batch;
  return std::span(permutation_).subspan(first, sizes_.batch);
}

}  // namespace slipway::train
