#include "track/view.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "track/block.h"

namespace slipway::track {
namespace {

struct Bucket {
  std::optional<Point> lowest, highest, any;

  void add(const Stretch& stretch) {
    if (!any) any = stretch.first;
    if (!stretch.has_numbers) return;
    if (!lowest || stretch.lowest.value < lowest->value) lowest = stretch.lowest;
    if (!highest || stretch.highest.value > highest->value) highest = stretch.highest;
  }
  void give(std::vector<Point>& out) const {
    if (!lowest) return any ? out.push_back(*any) : void();
    const bool rises = is_before(*lowest, *highest);
    out.push_back(rises ? *lowest : *highest);
    if (!same_point(*lowest, *highest)) out.push_back(rises ? *highest : *lowest);
  }
};

}  // namespace

std::vector<std::size_t> sampled_rows(std::size_t rows, std::size_t limit) {
  std::vector<std::size_t> kept;
  if (rows == 0 || limit == 0) return kept;
  if (limit == 1) return {rows - 1};
  if (rows <= limit) {
    for (std::size_t row = 0; row < rows; ++row) kept.push_back(row);
    return kept;
  }
  const std::size_t longer = rows % limit;
  std::size_t row = 0;
  for (std::size_t bucket = 0; bucket < limit; ++bucket) {
    kept.push_back(row);
    row += rows / limit + (bucket < longer ? 1 : 0);
  }
  if (kept.back() != rows - 1) kept.back() = rows - 1;  // there are as many as may be
  return kept;
}

Stretch stretch_of(const Point& point) { return {1, !std::isnan(point.value), point, point, point, point}; }

std::vector<Point> peaks_of(const std::vector<Stretch>& stretches, std::size_t limit) {
  std::size_t rows = 0;
  for (const Stretch& stretch : stretches) rows += stretch.rows;
  std::vector<Point> out;
  if (rows == 0 || limit == 0) return out;
  if (rows <= limit && rows == stretches.size()) {
    for (const Stretch& stretch : stretches) out.push_back(stretch.first);
    return out;
  }
  if (limit < 4) return {stretches.back().last};
  const std::size_t buckets = (limit - 2) / 2;
  const std::size_t rows_each = std::max<std::size_t>(1, (rows + buckets - 1) / buckets);
  out.push_back(stretches.front().first);
  Bucket bucket;
  std::size_t in_bucket = 0, given = 0;
  for (const Stretch& stretch : stretches) {
    bucket.add(stretch);
    in_bucket += stretch.rows;
    if (in_bucket < rows_each || given + 1 == buckets) continue;
    bucket.give(out);
    bucket = {};
    in_bucket = 0;
    ++given;
  }
  bucket.give(out);
  out.push_back(stretches.back().last);
  // The first and the last may be extremes, too; each point once.
  std::stable_sort(out.begin() + 1, out.end() - 1, is_before);
  out.erase(std::unique(out.begin(), out.end(), same_point), out.end());
  return out;
}

}  // namespace slipway::track
