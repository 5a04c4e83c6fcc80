#pragma once
// Random numbers from a seed, so that a run can be repeated; and secrets from the kernel.
#include <cstdint>
#include <string>

namespace slipway {

class Random {  // xoshiro256**, seeded by splitmix64
 public:
  explicit Random(std::uint64_t seed);
  std::uint64_t next();
  // Uniform in [low, high], both included.
  std::int64_t between(std::int64_t low, std::int64_t high);
  // Uniform in [0, 1).
  double unit();
  bool chance(double probability) { return unit() < probability; }

 private:
  std::uint64_t state_[4];
};

// Lower-case hexadecimal of `bytes` bytes from getrandom(2): for tokens and names that nobody may guess.
std::string random_hex(std::size_t bytes);
std::uint64_t random_seed();

}  // namespace slipway
