#pragma once
// Which samples a worker sees at which step: a pure function of the seed.
//
// Every epoch is a new permutation of the training set. Step s takes the next workers x batch samples of it;
// worker w gets the w-th batch of those, so workers never overlap and one worker with the global batch sees
// the same samples per step. What does not fill a whole step is left out of that epoch. A resumed run asks
// for step s and gets what the undisturbed run would have got.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace slipway::train {

class Order {
 public:
  struct Sizes {
    std::size_t samples;
    std::size_t batch;
    std::size_t workers = 1;
  };
  Order(std::uint64_t seed, Sizes sizes);

  // At least 1 when samples >= workers x batch, which the caller has checked.
  std::uint64_t steps_per_epoch() const { return steps_per_epoch_; }
  std::uint64_t epoch(std::uint64_t step) const { return step / steps_per_epoch_; }
  // `batch` indices for `worker` at `step`, valid until the next call. Cheap within an epoch; O(samples)
  // when the epoch changes.
  std::span<const std::uint32_t> at(std::uint64_t step, std::size_t worker);

 private:
  std::uint64_t seed_;
  Sizes sizes_;
  std::uint64_t steps_per_epoch_;
  std::uint64_t shuffled_epoch_;
  std::vector<std::uint32_t> permutation_;
};

// A well-mixed 64-bit value from three: seeds for things that must be repeatable one by one.
std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0);

}  // namespace slipway::train
