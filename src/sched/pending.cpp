#include "sched/pending.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace slipway::sched {

Pending::Pending(const Queue& queue, const ShareScale& scale, const Sharing& sharing, TimePoint now)
    : queue_(queue), scale_(scale), sharing_(sharing), now_(now), scores_(sharing.scores(now)) {
  heads_.reserve(queue.shapes().size());
  for (const auto& [shape, pending] : queue.shapes()) {
    Head& head = heads_.emplace_back(Head{shape, share_of(shape), amounts_of(shape, shape.nodes), &pending});
    head.key = first_of(head);
  }
}

QuotaAmounts Pending::amounts_of(const Shape& shape, std::uint64_t nodes) const {
  return held_amounts(scale_.share(shape.per_node) * nodes, shape.per_node, nodes);
}

const QuotaAmounts& Pending::amounts_taken_by(UserId user) const {
  static const QuotaAmounts nothing;
  const auto found = amounts_by_user_.find(user.value());
  return found == amounts_by_user_.end() ? nothing : found->second;
}

bool Pending::is_user_at_limit(UserId user, Share share, const QuotaAmounts& amounts) const {
  return sharing_.block_of_user(user, share, taken_by(user)) ||
         sharing_.block_of_quota(user, amounts, amounts_taken_by(user), amounts_);
}

Held Pending::taken_by(JobId job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? Held{} : found->second;
}

bool Pending::is_before(const PriorityKey& a, const PriorityKey& b) const {
  const auto order = [&](const PriorityKey& key) {
    return std::tuple(-key.priority, scores_[key.user.value()], key.job);
  };
  return order(a) < order(b);
}

// The first job of a user that has tasks of the shape left and is not at a limit.
std::optional<JobId> Pending::next_in(Head& head, const PriorityKey& user_key,
                                      const Queue::UserQueue& queue) {
  const auto known = head.positions.empty() ? head.positions.end() : head.positions.find(&queue);
  Position position = known == head.positions.end() ? Position{queue.begin()} : known->second;
  bool has_moved = false;
  for (; position.at != queue.end(); has_moved = true, ++position.at, position.taken = 0) {
    const PriorityKey key{user_key.priority, position.at->first, user_key.user};
    if (has_moved && taken_early_ == QueueKey{head.shape, key}) position.taken = 1;
    if (position.taken >= position.at->second.tasks) continue;
    if (!sharing_.block_of_job(key.job, head.share, taken_by(key.job))) break;
    at_limit_.push_back({head.shape, key});
  }
  if (has_moved) head.positions.insert_or_assign(&queue, position);
  return position.at == queue.end() ? std::nullopt : std::optional(position.at->first);
}

std::optional<PriorityKey> Pending::first_of(Head& head) {
  std::optional<PriorityKey> best;
  for (const auto& [priority, level] : head.queue->levels) {
    for (const auto& [user, queue] : level) {
      if (best && scores_[user.value()] > scores_[best->user.value()]) continue;
      if (is_user_at_limit(user, head.share, head.amounts)) continue;
      PriorityKey key{priority, JobId{}, user};
      const auto job = next_in(head, key, queue);
      if (!job) continue;
      key.job = *job;
      if (!best || is_before(key, *best)) best = key;
    }
    if (best) break;
  }
  return best;
}

Pending::Head* Pending::first() {
  Head* best = nullptr;
  for (Head& head : heads_) {
    if (!head.key || head.skipped) continue;
    // Within one job the larger shape goes first: it is the harder one to place.
    if (!best || is_before(*head.key, *best->key) || (*head.key == *best->key && best->shape < head.shape))
      best = &head;
  }
  return best;
}

const Queue::Entry& Pending::entry(const Head& head) const {
  return head.queue->levels.at(head.key->priority).at(head.key->user).at(head.key->job);
}

TimePoint Pending::since(const Head& head) const {
  const auto known = head.positions.find(&head.queue->levels.at(head.key->priority).at(head.key->user));
  const bool was_taken_from = known != head.positions.end() && known->second.taken > 0;
  return was_taken_from ? now_ : entry(head).since;
}

std::uint64_t Pending::nodes_allowed(const Shape& shape, const PriorityKey& key) const {
  const auto headroom = sharing_.headroom(key, taken_by(key.user), taken_by(key.job));
  return std::min(
      headroom ? *headroom / scale_.share(shape.per_node) : UINT64_MAX,
      sharing_.nodes_in_quota(key.user, amounts_of(shape, 1), amounts_taken_by(key.user), amounts_));
}

bool Pending::is_at_limit(const Shape& shape, const PriorityKey& key) const {
  const Share share = share_of(shape);
  return is_user_at_limit(key.user, share, amounts_of(shape, shape.nodes)) ||
         sharing_.block_of_job(key.job, share, taken_by(key.job));
}

void Pending::unskip_all() {
  for (Head& head : heads_)
    if (std::exchange(head.skipped, false)) head.key = first_of(head);
}

void Pending::count_taken(Head& head, const PriorityKey& key) {
  const auto level = head.queue->levels.find(key.priority);
  if (level == head.queue->levels.end()) return;
  const auto found = level->second.find(key.user);
  if (found == level->second.end()) return;
  const Queue::UserQueue& queue = found->second;
  const auto [position, added] = head.positions.try_emplace(&queue, Position{queue.begin()});
  if (position->second.at != queue.end() && position->second.at->first == key.job)
    ++position->second.taken;
  else
    taken_early_ = QueueKey{head.shape, key};
}

void Pending::take(const QueueKey& which, std::size_t nodes) {
  const PriorityKey key = which.key;
  const Shape shape = which.shape;
  const Share share = scale_.share(shape.per_node) * nodes;
  users_.resize(sharing_.users());
  for (Held* held : {&users_[key.user.value()], &jobs_[key.job]}) {
    ++held->tasks;
    held->share += share;
  }
  const QuotaAmounts amounts = amounts_of(shape, nodes);
  add(amounts_by_user_[key.user.value()], amounts);
  add(amounts_, amounts);
  scores_[key.user.value()] = sharing_.score(key.user, now_, users_[key.user.value()].share);
  for (Head& head : heads_) {
    if (head.shape == shape) count_taken(head, key);
    // The order of other users' tasks stays the same; they may be beyond the quota of the workspace now.
    if (!head.skipped && head.key &&
        (head.key->user == key.user || is_user_at_limit(head.key->user, head.share, head.amounts)))
      head.key = first_of(head);
  }
}

}  // namespace slipway::sched
