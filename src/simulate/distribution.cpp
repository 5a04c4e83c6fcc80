#include "simulate/distribution.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace slipway::simulate {
namespace {

// Box and Muller. 1 - unit() is never 0.
double normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
  return radius * std::cos(2 * std::numbers::pi * random.unit());
}

// What is longer than any simulation is cut, so that times can be added up.
constexpr double seconds_max = 1e10;

double drawn(const Distribution& distribution, Random& random) {
  const double first = distribution.first, second = distribution.second;
  switch (distribution.kind) {
    case Distribution::Kind::fixed: return first;
    case Distribution::Kind::uniform: return first + (second - first) * random.unit();
    case Distribution::Kind::normal: return std::max(0.0, first + second * normal(random));
    case Distribution::Kind::lognormal: return first * std::exp(second * normal(random));
    case Distribution::Kind::exponential: return -first * std::log(1 - random.unit());
  }
  return first;
}

}  // namespace

double draw(const Distribution& distribution, Random& random) {
  return std::min(drawn(distribution, random), seconds_max);
}

std::uint64_t mixed(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
  for (const std::uint64_t part : parts) {
    hash = (hash ^ part) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
    hash = (hash ^ (hash >> 29)) * 0xc4ceb9fe1a85ec53ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

std::uint64_t hashed(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace slipway::simulate
