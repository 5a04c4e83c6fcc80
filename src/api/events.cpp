#include "api/events.h"

namespace slipway::api {

std::shared_ptr<void> EventHub::watch(Watcher watcher) {
  const std::uint64_t id = ++last_;
  watchers_[id] = std::move(watcher);
  struct Handle {
    EventHub& hub;
    std::uint64_t id;
    ~Handle() { hub.watchers_.erase(id); }
  };
  return std::make_shared<Handle>(*this, id);
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
