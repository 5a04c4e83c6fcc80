#pragma once
// Chooses between two ways of doing the same thing over and over: the first, unless the second has lately
// taken less than a third of its time. The one not taken is tried now and then, for that may change.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

namespace slipway::train {

class CheaperWay {
 public:
  using Duration = std::chrono::steady_clock::duration;

  // Which to take this time, 0 or 1; say afterwards how long it took.
  std::size_t next() {
    const std::size_t better = cost(1) * 3 < cost(0) ? 1 : 0;
    way_ = turn_++ % turns_between_trials < turns_remembered ? 1 - better : better;
    return way_;
  }
  void took(Duration duration) { lately_[way_][remembered_[way_]++ % turns_remembered] = duration; }

 private:
  static constexpr std::size_t turns_between_trials = 512;
  static constexpr std::size_t turns_remembered = 4;

  // The least: whatever else happens on a machine only makes things slower.
  Duration cost(std::size_t way) const { return *std::min_element(lately_[way].begin(), lately_[way].end()); }

  std::array<std::array<Duration, turns_remembered>, 2> lately_{};
  std::array<std::size_t, 2> remembered_{};
  std::size_t turn_ = 0, way_ = 0;
};

}  // namespace slipway::train
