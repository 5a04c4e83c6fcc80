#pragma once
// Which work runs under a lease (domain/lease.h), and when the lease was renewed last. Times are boot_time().
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "domain/work_key.h"

namespace slipway::keeper {

class Leases {
 public:
  // An older renewal changes nothing.
  void renew(Duration from) {
    if (!renewed_ || from > *renewed_) renewed_ = from;
  }
  void add(const WorkKey& key, Duration lease) { held_.emplace(lease, key); }
  void remove(const WorkKey& key) {
    std::erase_if(held_, [&](const auto& one) { return one.second == key; });
  }
  // Work that starts under such a lease would run while the service may start it elsewhere.
  bool is_over(Duration lease, Duration now) const { return !renewed_ || *renewed_ + lease <= now; }
  // When the first lease ends.
  std::optional<Duration> next() const {
    if (held_.empty()) return std::nullopt;
    return renewed_.value_or(Duration(0)) + held_.begin()->first;
  }
  Duration shortest() const { return held_.empty() ? Duration(0) : held_.begin()->first; }
  // Work whose lease has ended, which then is no longer held.
  std::vector<WorkKey> take_over(Duration now) {
    std::vector<WorkKey> over;
    while (!held_.empty() && is_over(held_.begin()->first, now)) {
      over.push_back(held_.begin()->second);
      held_.erase(held_.begin());
    }
    return over;
  }

 private:
  std::optional<Duration> renewed_;
  std::set<std::pair<Duration, WorkKey>> held_;  // by length
};

}  // namespace slipway::keeper
