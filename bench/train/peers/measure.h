#pragma once
// Medians, as the other side takes them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

using Clock = std::chrono::steady_clock;
inline double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}
inline double place_of(std::vector<double> values, std::size_t place) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(place), values.end());
  return values[place];
}
inline double median(const std::vector<double>& values) { return place_of(values, values.size() / 2); }
inline double tenth(const std::vector<double>& values) { return place_of(values, values.size() / 10); }
inline void print_us(const std::vector<double>& values) {
  std::printf("{\"us\": %.1f, \"us_p10\": %.1f}\n", median(values) * 1e6, tenth(values) * 1e6);
}
