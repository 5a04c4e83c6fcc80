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

double Sharing::fade(TimePoint now) const {
  return std::exp2(-seconds(now - origin_) / seconds(policy_.half_life));
}

void Sharing::move_origin(TimePoint now) {
  const double faded = fade(now);
  for (User& user : users_) user.past *= faded;
  origin_ = now;
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
  origin_ = now;
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
  if (limit.max_nodes > 0 || limit.max_tasks > 0) jobs_[job].limit = limit;
}

void Sharing::forget(JobId job) { jobs_.erase(job); }

Held Sharing::held(JobId job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? Held{} : found->second.held;
}

void Sharing::start(const Turn& turn) {
  ++users_[turn.user.value()].held.tasks;
  ++jobs_[turn.job].held.tasks;
}

void Sharing::end(const Turn& turn) {
  Job& job = jobs_.at(turn.job);
  SLIPWAY_CHECK(users_[turn.user.value()].held.tasks > 0 && job.held.tasks > 0);
  --users_[turn.user.value()].held.tasks;
  --job.held.tasks;
}

void Sharing::change_share(UserId user, double nodes, TimePoint at) {
  if (seconds(at - origin_) > half_lives_max * seconds(policy_.half_life)) move_origin(at);
  users_[user.value()].past -= nodes * lasting_ / fade(at);
}

void Sharing::hold(const Turn& turn, Share share, TimePoint at) {
  change_share(turn.user, nodes_of(share), at);
  users_[turn.user.value()].held.share += share;
  jobs_[turn.job].held.share += share;
}

void Sharing::release(const Turn& turn, Share share, TimePoint at) {
  Held& user = users_[turn.user.value()].held;
  Held& job = jobs_.at(turn.job).held;
  SLIPWAY_CHECK(user.share >= share && job.share >= share);
  change_share(turn.user, -nodes_of(share), at);
  user.share -= share;
  job.share -= share;
}

double Sharing::used(const User& user, double faded) const {
  // Never below 0, whatever the last digits say.
  return std::max(0.0, user.past * faded + nodes_of(user.held.share) * lasting_);
}

double Sharing::score(const User& user, double faded) const {
  return (used(user, faded) + nodes_of(user.held.share) * lasting_) / user.weight;
}

double Sharing::used(UserId user, TimePoint now) const { return used(users_[user.value()], fade(now)); }
double Sharing::score(UserId user, TimePoint now) const { return score(users_[user.value()], fade(now)); }

std::vector<double> Sharing::scores(TimePoint now) const {
  const double faded = fade(now);
  std::vector<double> scores;
  scores.reserve(users_.size());
  for (const User& user : users_) scores.push_back(score(user, faded));
  return scores;
}

void Sharing::restore(UserId user, double used, TimePoint at) {
  if (seconds(at - origin_) > half_lives_max * seconds(policy_.half_life)) move_origin(at);
  users_[user.value()].past += used / fade(at);
}

std::optional<Block> Sharing::block_of_user(UserId user, Share more) const {
  const Quota& quota = policy_.per_user;
  return exceeded(held(user), more, quota.max_running_tasks, Limit::user_tasks, quota.max_nodes,
                  Limit::user_nodes);
}

std::optional<Block> Sharing::block_of_job(JobId id, Share more) const {
  const Quota& quota = policy_.per_job;
  const auto found = jobs_.find(id);
  const Job job = found == jobs_.end() ? Job{} : found->second;
  if (auto block = exceeded(job.held, more, job.limit.max_tasks, Limit::job_own_tasks, job.limit.max_nodes,
                            Limit::job_own_nodes))
    return block;
  return exceeded(job.held, more, quota.max_running_tasks, Limit::job_tasks, quota.max_nodes,
                  Limit::job_nodes);
}

std::optional<Share> Sharing::room(const Turn& turn) const {
  std::optional<Share> least;
  const auto at_most = [&](std::uint32_t max_nodes, Share holds) {
    if (max_nodes == 0) return;
    const Share left = share_of(max_nodes) - std::min(share_of(max_nodes), holds);
    if (!least || left < *least) least = left;
  };
  at_most(policy_.per_user.max_nodes, held(turn.user).share);
  const auto job = jobs_.find(turn.job);
  at_most(policy_.per_job.max_nodes, job == jobs_.end() ? 0 : job->second.held.share);
  if (job != jobs_.end()) at_most(job->second.limit.max_nodes, job->second.held.share);
  return least;
}

}  // namespace slipway::sched
