#include "keeper/capacity.h"

#include <algorithm>

namespace slipway::keeper {

void Capacity::take(const WorkKey& key, const Resources& needs) {
  holders_[key] = needs;
  held_ = held_ + needs;
}

void Capacity::wait(const WorkKey& key, const Resources& needs, const Resources& total) {
  waiting_.push_back({key, needs, total});
}

std::optional<WorkKey> Capacity::next() {
  if (waiting_.empty() || !fits(held_ + waiting_.front().needs, waiting_.front().total)) return std::nullopt;
  const Request first = waiting_.front();
  waiting_.pop_front();
  take(first.key, first.needs);
  return first.key;
}

bool Capacity::release(const WorkKey& key) {
  if (const auto holder = holders_.find(key); holder != holders_.end()) {
    held_ = held_ - holder->second;
    holders_.erase(holder);
    return false;
  }
  return std::erase_if(waiting_, [&](const Request& request) { return request.key == key; }) > 0;
}

std::vector<WorkKey> Capacity::waiting_keys() const {
  std::vector<WorkKey> keys;
  for (const Request& request : waiting_) keys.push_back(request.key);
  return keys;
}

}  // namespace slipway::keeper
