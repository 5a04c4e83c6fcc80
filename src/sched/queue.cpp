#include "sched/queue.h"

namespace slipway::sched {

void Queue::add(const Shape& shape, const Turn& turn, TimePoint since) {
  Waiting& waiting = shapes_[shape];
  if (!waiting.aside.contains(turn.job)) waiting.levels[turn.priority][turn.user].emplace(turn.job, since);
}

void Queue::renew(const Shape& shape, const Turn& turn, TimePoint since) {
  Waiting& waiting = shapes_.at(shape);
  if (const auto aside = waiting.aside.find(turn.job); aside != waiting.aside.end())
    aside->second.second = since;
  else
    waiting.levels.at(turn.priority).at(turn.user).at(turn.job) = since;
}

bool Queue::erase_from_line(Waiting& waiting, const Turn& turn) {
  const auto level = waiting.levels.find(turn.priority);
  if (level == waiting.levels.end()) return false;
  const auto line = level->second.find(turn.user);
  if (line == level->second.end() || line->second.erase(turn.job) == 0) return false;
  if (line->second.empty()) level->second.erase(line);
  if (level->second.empty()) waiting.levels.erase(level);
  return true;
}

void Queue::remove(const Shape& shape, const Turn& turn) {
  const auto found = shapes_.find(shape);
  if (found == shapes_.end()) return;
  if (!erase_from_line(found->second, turn)) found->second.aside.erase(turn.job);
  if (found->second.levels.empty() && found->second.aside.empty()) shapes_.erase(found);
}

std::optional<TimePoint> Queue::since(const Shape& shape, const Turn& turn) const {
  const auto found = shapes_.find(shape);
  if (found == shapes_.end()) return std::nullopt;
  const Waiting& waiting = found->second;
  if (const auto aside = waiting.aside.find(turn.job); aside != waiting.aside.end())
    return aside->second.second;
  const auto level = waiting.levels.find(turn.priority);
  if (level == waiting.levels.end()) return std::nullopt;
  const auto line = level->second.find(turn.user);
  if (line == level->second.end()) return std::nullopt;
  const auto job = line->second.find(turn.job);
  return job == line->second.end() ? std::nullopt : std::optional(job->second);
}

void Queue::set_aside(const Shape& shape, const Turn& turn) {
  const std::optional<TimePoint> waits_since = since(shape, turn);
  Waiting& waiting = shapes_.at(shape);
  if (waits_since && erase_from_line(waiting, turn))
    waiting.aside.emplace(turn.job, std::pair(turn, *waits_since));
}

void Queue::take_back(JobId job) {
  for (auto& [shape, waiting] : shapes_)
    if (const auto found = waiting.aside.find(job); found != waiting.aside.end()) {
      const auto [turn, since] = found->second;
      waiting.aside.erase(found);
      waiting.levels[turn.priority][turn.user].emplace(job, since);
    }
}

void Queue::take_back_all() {
  for (auto& [shape, waiting] : shapes_) {
    for (const auto& [job, entry] : waiting.aside)
      waiting.levels[entry.first.priority][entry.first.user].emplace(job, entry.second);
    waiting.aside.clear();
  }
}

}  // namespace slipway::sched
