#include "base/random.h"

#include <sys/random.h>

#include <vector>

#include "base/check.h"

namespace slipway {
namespace {

void fill_random(void* data, std::size_t size) {
  auto* bytes = static_cast<unsigned char*>(data);
  while (size > 0) {
    const ssize_t got = getrandom(bytes, size, 0);
    if (got < 0) continue;  // interrupted by a signal
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
}

}  // namespace

Random::Random(std::uint64_t seed) {
  for (std::uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    word = z ^ (z >> 31);
  }
}

std::uint64_t Random::next() {
  const auto rotate = [](std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); };
  const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotate(state_[3], 45);
  return result;
}

std::int64_t Random::between(std::int64_t low, std::int64_t high) {
  SLIPWAY_CHECK(low <= high);
  const std::uint64_t range = static_cast<std::uint64_t>(high - low) + 1;
  return low + static_cast<std::int64_t>(range == 0 ? next() : next() % range);
}

double Random::unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

std::string random_hex(std::size_t bytes) {
  std::vector<unsigned char> raw(bytes);
  fill_random(raw.data(), raw.size());
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes * 2);
  for (const unsigned char byte : raw) {
    text.push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15]);
  }
  return text;
}

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  fill_random(&seed, sizeof seed);
  return seed;
}

}  // namespace slipway
