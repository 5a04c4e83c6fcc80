#include "api/events.h"

namespace slipway::api {

std::shared_ptr<void> EventHub::watch(Watcher watcher) {
  const std::uint64_t id = ++last_;
  watchers_[id] = std::move(watcher);
  return std::shared_ptr<void>(nullptr, [this, id](void*) { watchers_.erase(id); });
}

void EventHub::publish(const std::vector<EventRecord>& events) {
  if (events.empty()) return;
  // A watcher may drop itself or others, or add new ones, while it is called.
  std::vector<std::uint64_t> ids;
  for (const auto& [id, watcher] : watchers_) ids.push_back(id);
  for (const std::uint64_t id : ids)
    if (const auto found = watchers_.find(id); found != watchers_.end()) {
      const Watcher watcher = found->second;
      watcher(events);
    }
}

}  // namespace slipway::api
