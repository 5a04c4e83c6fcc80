#pragma once
// The capacity of a node: what started attempts hold of it, and which wait for some. Pure; the keeper and the
// simulation count with this same class.
//
// Those that wait are first come, first served: the oldest starts as soon as it fits, and none overtakes it.
// What does not wait starts at once, for the service has counted its capacity already.
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "domain/job.h"
#include "domain/work_key.h"

namespace slipway::keeper {

class Capacity {
 public:
  void take(const WorkKey& key, const Resources& needs);
  void wait(const WorkKey& key, const Resources& needs, const Resources& total);

  // The oldest that waits, if it fits now: its capacity is taken.
  std::optional<WorkKey> next();
  // An attempt has ended here as a whole, or will not start. True when it still waited.
  bool release(const WorkKey& key);

  Resources held() const { return held_; }
  std::size_t waiting() const { return waiting_.size(); }
  std::vector<WorkKey> waiting_keys() const;  // in the order they will start

 private:
  struct Request {
    WorkKey key;
    Resources needs;
    Resources total;
  };
  std::deque<Request> waiting_;
  std::map<WorkKey, Resources> holders_;
  Resources held_;
};

}  // namespace slipway::keeper
