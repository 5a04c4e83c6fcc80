#pragma once
// Counts what things take of the disk, one at a time, on a thread of its own and in bounded steps, which take
// a quarter of the time at most: nobody waits for it, and disks have other work. On the network's thread.
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/worker.h"
#include "domain/quota.h"
#include "net/loop.h"

namespace slipway::api {

class DiskCounter {
 public:
  struct Thing {
    QuotaKey key;
    std::string name;      // as in DiskUse
    std::string path;      // a folder, or
    bool is_code = false;  // the manifest of a snapshot
  };
  // `counted` is given what is known of some of them; `idle` is called when all was counted.
  DiskCounter(net::Loop& loop, std::function<void(std::vector<DiskUse>)> counted, std::function<void()> idle)
      : loop_(loop), counted_(std::move(counted)), idle_(std::move(idle)) {}

  // What waits to be counted already is not counted twice. Over 10,000 that wait it is left to the next pass.
  void add(Thing thing);
  bool is_idle() const { return !is_busy_; }

 private:
  struct Count;
  void next();
  void step(const std::shared_ptr<Count>& count);
  void finish(const Count& count);

  net::Loop& loop_;
  std::function<void(std::vector<DiskUse>)> counted_;
  std::function<void()> idle_;
  std::deque<Thing> queue_;
  std::set<std::pair<QuotaKey, std::string>> queued_;
  std::vector<DiskUse> results_;
  bool is_busy_ = false;
  std::shared_ptr<net::Loop::Timer> pause_;
  Worker worker_;  // last: its work uses what is above
};

}  // namespace slipway::api
