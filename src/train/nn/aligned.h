#pragma once
// Floats on cache-line boundaries: oneDNN's Winograd kernels store with instructions that demand it.
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace slipway::train {

template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(64)));
  }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, std::align_val_t(64)); }
  template <class U>
  bool operator==(const LineAllocator<U>&) const {
    return true;
  }
};

// Every flat array of parameters or gradients.
using Flat = std::vector<float, LineAllocator<float>>;

}  // namespace slipway::train
