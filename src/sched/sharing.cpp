#include "sched/sharing.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace slipway::sched {
namespace {

constexpr double half_lives_max = 16;  // from the origin: numbers stay small, so sums stay exact enough

double nodes_of(Share share) { return static_cast<double>(share) / whole_node; }
Share share_of(std::uint32_t nodes) { return Share{nodes} * whole_node; }

std::optional<Block> exceeded(const Held& held, Share more, std::uint32_t max_tasks, Limit tasks,
                              std::uint32_t max_nodes, Limit nodes) {
  if (max_tasks > 0 && held.tasks >= max_tasks) return Block{tasks, held, max_tasks};
  if (max_nodes > 0 && held.share + more > share_of(max_nodes)) return Block{nodes, held, max_nodes};
  return std::nullopt;
}

}  // namespace

Sharing::Sharing() { set_policy({}, {}); }

double Sharing::decay(TimePoint now) const {
  if (now != decay_at_) {
    decay_ = std::exp2(-seconds(now - origin_) / seconds(policy_.half_life));
    decay_at_ = now;
  }
  return decay_;
}

void Sharing::move_origin(TimePoint now) {
  const double decayed = decay(now);
  for (User& user : users_) user.past *= decayed;
  set_origin(now);
}

void Sharing::set_origin(TimePoint now) {
  origin_ = now;
  decay_at_.reset();
}

double Sharing::weight_of(const std::string& name) const {
  const auto found = policy_.weights.find(name);
  return found == policy_.weights.end() ? 1 : found->second;
}

void Sharing::set_policy(const PoolPolicy& policy, TimePoint now) {
  // What each has used so far stays, whatever the new half life is.
  std::vector<double> used_until_now;
  used_until_now.reserve(users_.size());
  for (std::size_t i = 0; i < users_.size(); ++i) used_until_now.push_back(used(UserId{i}, now));
  policy_ = policy;
  lasting_ = seconds(policy.half_life) / std::numbers::ln2;
  set_origin(now);
  for (std::size_t i = 0; i < users_.size(); ++i) {
    users_[i].weight = weight_of(users_[i].name);
    users_[i].past = used_until_now[i] - nodes_of(users_[i].held.share) * lasting_;
  }
}

UserId Sharing::user(const std::string& name) {
  const auto [found, added] = by_name_.emplace(name, UserId{users_.size()});
  if (added) users_.push_back({name, weight_of(name), {}, 0});
  return found->second;
}

void Sharing::set_limit(JobId job, const JobLimit& limit) {
  if (limit.max_nodes > 0 || limit.max_tasks > 0)
    jobs_[job].limit = limit;
  else if (const auto found = jobs_.find(job); found != jobs_.end())
    found->second.limit = {};
}

void Sharing::forget(JobId job) { jobs_.erase(job); }

Held Sharing::held(JobId job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? Held{} : found->second.held;
}

void Sharing::start(const PriorityKey& key) {
  ++users_[key.user.value()].held.tasks;
  ++jobs_[key.job].held.tasks;
}

void Sharing::end(const PriorityKey& key) {
  Job& job = jobs_.at(key.job);
  SLIPWAY_CHECK(users_[key.user.value()].held.tasks > 0 && job.held.tasks > 0);
  --users_[key.user.value()].held.tasks;
  --job.held.tasks;
}

void Sharing::change_share(UserId user, double nodes, TimePoint at) {
  if (seconds(at - origin_) > half_lives_max * seconds(policy_.half_life)) move_origin(at);
  users_[user.value()].past -= nodes * lasting_ / decay(at);
}

void Sharing::hold(const PriorityKey& key, Share share, TimePoint at) {
  change_share(key.user, nodes_of(share), at);
  users_[key.user.value()].held.share += share;
  jobs_[key.job].held.share += share;
}

void Sharing::release(const PriorityKey& key, Share share, TimePoint at) {
  Held& user = users_[key.user.value()].held;
  Held& job = jobs_.at(key.job).held;
  SLIPWAY_CHECK(user.share >= share && job.share >= share);
  change_share(key.user, -nodes_of(share), at);
  user.share -= share;
  job.share -= share;
}

double Sharing::used(const User& user, double decayed) const {
  // Never below 0, whatever the last digits say.
  return std::max(0.0, user.past * decayed + nodes_of(user.held.share) * lasting_);
}

double Sharing::score(const User& user, double decayed) const {
  return (used(user, decayed) + nodes_of(user.held.share) * lasting_) / user.weight;
}

double Sharing::used(UserId user, TimePoint now) const { return used(users_[user.value()], decay(now)); }
double Sharing::score(UserId id, TimePoint now, Share planned) const {
  const User& user = users_[id.value()];
  return score(user, decay(now)) + nodes_of(planned) * lasting_ / user.weight;
}

std::vector<double> Sharing::scores(TimePoint now) const {
  const double decayed = decay(now);
  std::vector<double> scores;
  scores.reserve(users_.size());
  for (const User& user : users_) scores.push_back(score(user, decayed));
  return scores;
}

void Sharing::restore(UserId user, double used, TimePoint at) {
  if (seconds(at - origin_) > half_lives_max * seconds(policy_.half_life)) move_origin(at);
  users_[user.value()].past += used / decay(at);
}

std::optional<Block> Sharing::block_of_user(UserId user, Share more, const Held& planned) const {
  const Quota& quota = policy_.per_user;
  return exceeded(held(user) + planned, more, quota.max_running_tasks, Limit::user_tasks, quota.max_nodes,
                  Limit::user_nodes);
}

std::optional<Block> Sharing::block_of_job(JobId id, Share more, const Held& planned) const {
  const Quota& quota = policy_.per_job;
  const auto found = jobs_.find(id);
  const Job job = found == jobs_.end() ? Job{} : found->second;
  const Held held = job.held + planned;
  if (auto block = exceeded(held, more, job.limit.max_tasks, Limit::job_own_tasks, job.limit.max_nodes,
                            Limit::job_own_nodes))
    return block;
  return exceeded(held, more, quota.max_running_tasks, Limit::job_tasks, quota.max_nodes, Limit::job_nodes);
}

std::optional<Share> Sharing::headroom(const PriorityKey& key, const Held& planned_by_user,
                                       const Held& planned_by_job) const {
  std::optional<Share> least;
  const auto at_most = [&](std::uint32_t max_nodes, Share holds) {
    if (max_nodes == 0) return;
    const Share left = share_of(max_nodes) - std::min(share_of(max_nodes), holds);
    if (!least || left < *least) least = left;
  };
  at_most(policy_.per_user.max_nodes, held(key.user).share + planned_by_user.share);
  const Share held_by_job = held(key.job).share + planned_by_job.share;
  at_most(policy_.per_job.max_nodes, held_by_job);
  if (const auto job = jobs_.find(key.job); job != jobs_.end())
    at_most(job->second.limit.max_nodes, held_by_job);
  return least;
}

// ── quotas ──

QuotaAmounts held_amounts(Share share, const Resources& per_node, std::uint64_t nodes) {
  QuotaAmounts amounts;
  amounts[QuotaKind::nodes] = share;
  amounts[QuotaKind::cores] = per_node.cores * nodes;
  amounts[QuotaKind::gpus] = per_node.gpus * nodes;
  return amounts;
}

void add(QuotaAmounts& to, const QuotaAmounts& more) {
  for (const QuotaKind kind : all_quota_kinds) to[kind] += more[kind];
}

void Sharing::set_rooms(QuotaRooms of_workspace, std::unordered_map<std::size_t, QuotaRooms> of_users) {
  rooms_ = std::move(of_workspace);
  rooms_of_users_ = std::move(of_users);
}

std::optional<Block> Sharing::block_of_quota(UserId user, const QuotaAmounts& more,
                                             const QuotaAmounts& planned_by_user,
                                             const QuotaAmounts& planned_by_all) const {
  const auto exceeded_of = [&](const QuotaRooms& rooms, const QuotaAmounts& planned,
                               Limit limit) -> std::optional<Block> {
    for (QuotaRoom room : rooms) {
      room.used += planned[room.kind];
      if (more[room.kind] > 0 && room.used + more[room.kind] > room.max) return Block{limit, {}, 0, room};
    }
    return std::nullopt;
  };
  if (const auto own = rooms_of_users_.find(user.value()); own != rooms_of_users_.end())
    if (auto block = exceeded_of(own->second, planned_by_user, Limit::user_quota)) return block;
  return exceeded_of(rooms_, planned_by_all, Limit::workspace_quota);
}

std::uint64_t Sharing::nodes_in_quota(UserId user, const QuotaAmounts& per_node,
                                      const QuotaAmounts& planned_by_user,
                                      const QuotaAmounts& planned_by_all) const {
  std::uint64_t nodes = UINT64_MAX;
  const auto look = [&](const QuotaRooms& rooms, const QuotaAmounts& planned) {
    for (const QuotaRoom& room : rooms) {
      const std::uint64_t used = std::min(room.max, room.used + planned[room.kind]);
      if (per_node[room.kind] > 0) nodes = std::min(nodes, (room.max - used) / per_node[room.kind]);
    }
  };
  if (const auto own = rooms_of_users_.find(user.value()); own != rooms_of_users_.end())
    look(own->second, planned_by_user);
  look(rooms_, planned_by_all);
  return nodes;
}

}  // namespace slipway::sched
