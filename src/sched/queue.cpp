#include "sched/queue.h"

#include "base/check.h"

namespace slipway::sched {

void Queue::add(const Shape& shape, const PriorityKey& key, const Entry& entry) {
  Pending& pending = shapes_[shape];
  const auto blocked = pending.blocked.find(key.job);
  Entry& known = blocked != pending.blocked.end() ? blocked->second.second
                                                  : pending.levels[key.priority][key.user][key.job];
  if (known.tasks == 0) known.since = entry.since;
  known.tasks += entry.tasks;
  known.runtime = entry.runtime;
}

const Queue::Entry* Queue::find(const Shape& shape, const PriorityKey& key) const {
  const auto found = shapes_.find(shape);
  if (found == shapes_.end()) return nullptr;
  const Pending& pending = found->second;
  if (const auto blocked = pending.blocked.find(key.job); blocked != pending.blocked.end())
    return &blocked->second.second;
  const auto level = pending.levels.find(key.priority);
  if (level == pending.levels.end()) return nullptr;
  const auto user = level->second.find(key.user);
  if (user == level->second.end()) return nullptr;
  const auto job = user->second.find(key.job);
  return job == user->second.end() ? nullptr : &job->second;
}

void Queue::take_one(const Shape& shape, const PriorityKey& key, TimePoint now) {
  Entry* entry = const_cast<Entry*>(find(shape, key));
  SLIPWAY_CHECK(entry != nullptr && entry->tasks > 0);
  entry->since = now;
  if (--entry->tasks == 0) remove(shape, key);
}

void Queue::set_runtime(const Shape& shape, const PriorityKey& key, Duration runtime) {
  if (Entry* entry = const_cast<Entry*>(find(shape, key))) entry->runtime = runtime;
}

bool Queue::erase(Pending& pending, const PriorityKey& key) {
  const auto level = pending.levels.find(key.priority);
  if (level == pending.levels.end()) return false;
  const auto user = level->second.find(key.user);
  if (user == level->second.end() || user->second.erase(key.job) == 0) return false;
  if (user->second.empty()) level->second.erase(user);
  if (level->second.empty()) pending.levels.erase(level);
  return true;
}

void Queue::remove(const Shape& shape, const PriorityKey& key) {
  const auto found = shapes_.find(shape);
  if (found == shapes_.end()) return;
  if (!erase(found->second, key)) found->second.blocked.erase(key.job);
  if (found->second.levels.empty() && found->second.blocked.empty()) shapes_.erase(found);
}

void Queue::block(const Shape& shape, const PriorityKey& key) {
  const Entry* entry = find(shape, key);
  if (!entry) return;  // all its tasks were placed
  Pending& pending = shapes_.at(shape);
  if (pending.blocked.contains(key.job)) return;
  pending.blocked.emplace(key.job, std::pair(key, *entry));
  erase(pending, key);
}

void Queue::unblock(JobId job) {
  for (auto& [shape, pending] : shapes_)
    if (const auto found = pending.blocked.find(job); found != pending.blocked.end()) {
      const auto [key, entry] = found->second;
      pending.blocked.erase(found);
      pending.levels[key.priority][key.user].emplace(job, entry);
    }
}

void Queue::unblock_all() {
  for (auto& [shape, pending] : shapes_) {
    for (const auto& [job, entry] : pending.blocked)
      pending.levels[entry.first.priority][entry.first.user].emplace(job, entry.second);
    pending.blocked.clear();
  }
}

}  // namespace slipway::sched
