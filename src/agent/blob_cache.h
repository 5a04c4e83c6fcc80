#pragma once
// Bounds the contents a node has fetched (staging.h): the least recently used go first.
#include <set>
#include <string>

#include "base/clock.h"
#include "base/quantity.h"

namespace slipway::agent {

struct CacheLimits {
  Bytes size_max = 0;    // of all contents together
  Duration spare_for{};  // what was used within this time stays, as the service keeps what was sent lately
};

// 10 GiB, or a tenth of the disk where that is less.
CacheLimits default_cache_limits(const std::string& folder);

// Says that the content was just used. The time of last access would not do: many disks do not keep it.
void mark_used(int file);

struct Trimmed {
  std::size_t removed = 0;
  Bytes freed = 0;
  Bytes left = 0;
};
// Removes contents of `folder`, the least recently used first, until `size_max` is kept; never those `in_use`
// (by hash). Also what an interrupted fetch left.
Trimmed trim_cache(const std::string& folder, const std::set<std::string>& in_use, const CacheLimits& limits,
                   TimePoint now);

}  // namespace slipway::agent
