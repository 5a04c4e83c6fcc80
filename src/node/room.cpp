#include "node/room.h"

#include <algorithm>

namespace slipway::node {

void Room::take(const AttemptKey& key, const Resources& needs) {
  holders_[key] = needs;
  held_ = held_ + needs;
}

void Room::wait(const AttemptKey& key, const Resources& needs, const Resources& total) {
  waiting_.push_back({key, needs, total});
}

std::optional<AttemptKey> Room::next() {
  if (waiting_.empty() || !fits(held_ + waiting_.front().needs, waiting_.front().total)) return std::nullopt;
  const Wish first = waiting_.front();
  waiting_.pop_front();
  take(first.key, first.needs);
  return first.key;
}

bool Room::release(const AttemptKey& key) {
  if (const auto holder = holders_.find(key); holder != holders_.end()) {
    held_ = held_ - holder->second;
    holders_.erase(holder);
    return false;
  }
  return std::erase_if(waiting_, [&](const Wish& wish) { return wish.key == key; }) > 0;
}

std::vector<AttemptKey> Room::waiting_keys() const {
  std::vector<AttemptKey> keys;
  for (const Wish& wish : waiting_) keys.push_back(wish.key);
  return keys;
}

}  // namespace slipway::node
