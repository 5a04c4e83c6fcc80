#pragma once
// Publishes events to their watchers. On the network's thread.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "domain/records.h"

namespace slipway::api {

class EventHub {
 public:
  using Watcher = std::function<void(const std::vector<EventRecord>&)>;
  // Called with every batch until the handle is dropped.
  std::shared_ptr<void> watch(Watcher watcher);
  void publish(const std::vector<EventRecord>& events);

 private:
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Watcher> watchers_;
};

inline bool is_job_end(const EventRecord& event) {
  return event.kind == "job.succeeded" || event.kind == "job.failed" || event.kind == "job.cancelled";
}

}  // namespace slipway::api
