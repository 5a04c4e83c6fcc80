#pragma once
// Fewer points of a long series: the rows that MLflow's charts ask for, and views that keep peaks. Pure.
#include <cstddef>
#include <vector>

#include "track/values.h"

namespace slipway::track {

// Of n rows at most `limit`: the first row of each of `limit` runs of rows of nearly equal length (the longer
// ones first), and the last row in any case. Rows of a series are by step, timestamp, value.
std::vector<std::size_t> sampled_rows(std::size_t rows, std::size_t limit);

// What is known of some rows that follow one another: a point, or a block of them.
struct Stretch {
  std::size_t rows = 1;
  bool has_numbers = true;  // else lowest and highest mean nothing
  Point lowest, highest, first, last;
};
Stretch stretch_of(const Point& point);

// At most `limit` points: of each of about limit / 2 buckets of as many rows its lowest and its highest, and
// the first and last of all. A peak is never lost. Stretches are in the order of rows; none is cut in two, so
// they should be short beside a bucket.
std::vector<Point> peaks_of(const std::vector<Stretch>& stretches, std::size_t limit);

}  // namespace slipway::track
