#pragma once
// The sum of the ranks' arrays, added up piece by piece as it is read: each piece is still in the nearest
// cache when its reader uses it, and no array is written only to be read again.
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace slipway::train {

class Sum {
 public:
  // Of arrays of `size` floats, added in the order given.
  Sum(std::vector<const float*> arrays, std::size_t size) : arrays_(std::move(arrays)), size_(size) {}
  // Already added up.
  explicit Sum(std::span<const float> ready) : arrays_{ready.data()}, size_(ready.size()) {}

  std::size_t size() const { return size_; }
  // The sum from `begin` on: what fits into `buffer`, where it is put, or all of it where it was added up
  // already.
  std::span<const float> from(std::size_t begin, std::span<float> buffer) const;

 private:
  std::vector<const float*> arrays_;
  std::size_t size_;
};

}  // namespace slipway::train
