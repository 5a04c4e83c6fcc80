#pragma once
// How the users of a pool share it: who holds how much, who has used how much lately, and what they may hold.
//
// Use is counted in node-seconds (see Share) and decays: what was used one half life ago counts half. It is
// computed on demand from two numbers per user, so nothing has to be done as time passes.
//
// Users are ordered by score, the lowest first: what was used, plus what is held now as if it were held
// forever, divided by the weight. Without the second part a user who has used a second less would be given
// the whole pool at once.
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "domain/policy.h"
#include "domain/quota.h"
#include "sched/queue.h"

namespace slipway::sched {

struct JobLimit {  // what a job sets for itself; 0: no limit
  std::uint32_t max_tasks = 0;
  std::uint32_t max_nodes = 0;
};

struct Held {
  std::uint32_t tasks = 0;
  Share share = 0;
  friend Held operator+(const Held& a, const Held& b) { return {a.tasks + b.tasks, a.share + b.share}; }
  friend bool operator==(const Held&, const Held&) = default;
};

// What a quota allows of what is held, over all pools: see domain/quota.h.
struct QuotaRoom {
  QuotaKind kind;
  std::uint64_t max = 0, used = 0;
};
using QuotaRooms = std::vector<QuotaRoom>;

enum class Limit : std::uint8_t {
  user_quota,
  workspace_quota,
  user_tasks,
  user_nodes,
  job_tasks,
  job_nodes,
  job_own_tasks,
  job_own_nodes
};
struct Block {  // why a task may not start although there may be capacity
  Limit limit;
  Held held;
  std::uint32_t max = 0;
  std::optional<QuotaRoom> room{};  // of a quota
};

// What tasks with this share and these resources hold, as quotas count it.
QuotaAmounts held_amounts(Share share, const Resources& per_node, std::uint64_t nodes);
void add(QuotaAmounts& to, const QuotaAmounts& more);

class Sharing {
 public:
  Sharing();
  void set_policy(const PoolPolicy& policy, TimePoint now);
  const PoolPolicy& policy() const { return policy_; }

  UserId user(const std::string& name);  // the same for the same name, as long as this object exists
  const std::string& name(UserId user) const { return users_[user.value()].name; }
  std::size_t users() const { return users_.size(); }

  void set_limit(JobId job, const JobLimit& limit);
  void forget(JobId job);  // it has ended

  // As of now, for what is asked next; users without one may hold any amount.
  void set_rooms(QuotaRooms of_workspace, std::unordered_map<std::size_t, QuotaRooms> of_users);
  // The quota that `more` would exceed, where so much was planned already.
  std::optional<Block> block_of_quota(UserId user, const QuotaAmounts& more,
                                      const QuotaAmounts& planned_by_user,
                                      const QuotaAmounts& planned_by_all) const;
  // How many nodes with so much each the quotas allow.
  std::uint64_t nodes_in_quota(UserId user, const QuotaAmounts& per_node, const QuotaAmounts& planned_by_user,
                               const QuotaAmounts& planned_by_all) const;

  // A task of it is placed; its parts hold their shares of nodes, from `at` on.
  void start(const PriorityKey& key);
  void end(const PriorityKey& key);
  void hold(const PriorityKey& key, Share share, TimePoint at);
  void release(const PriorityKey& key, Share share, TimePoint at);

  Held held(UserId user) const { return users_[user.value()].held; }
  Held held(JobId job) const;
  double used(UserId user, TimePoint now) const;  // node-seconds, decayed
  // `planned`: as if that share were held too, from now on.
  double score(UserId user, TimePoint now, Share planned = 0) const;
  std::vector<double> scores(TimePoint now) const;       // by user
  void restore(UserId user, double used, TimePoint at);  // as it was saved

  // The limit that one more task with that share in all would exceed. `planned`: as if that were held too.
  std::optional<Block> block_of_user(UserId user, Share more, const Held& planned = {}) const;
  std::optional<Block> block_of_job(JobId job, Share more, const Held& planned = {}) const;
  // How much more both may hold; nullopt: any amount.
  std::optional<Share> headroom(const PriorityKey& key, const Held& planned_by_user = {},
                                const Held& planned_by_job = {}) const;

 private:
  struct User {
    std::string name;
    double weight = 1;
    Held held;
    // used(t) = past * decay(t) + held * lasting_: holding from t1 on adds held * lasting_ to the second part
    // and takes the same, grown by 1 / decay(t1), from the first, so the sum is 0 at t1 and goes towards
    // held * lasting_.
    double past = 0;
  };
  struct Job {
    Held held;
    JobLimit limit;
  };
  double decay(TimePoint now) const;  // of what was used at `origin_`
  double used(const User& user, double decay) const;
  double score(const User& user, double decay) const;
  void move_origin(TimePoint now);
  void set_origin(TimePoint now);
  double weight_of(const std::string& name) const;
  void change_share(UserId user, double nodes, TimePoint at);

  QuotaRooms rooms_;                                            // of the workspace
  std::unordered_map<std::size_t, QuotaRooms> rooms_of_users_;  // by user
  PoolPolicy policy_;
  double lasting_ = 0;  // seconds: what one node that is held for good counts in the end
  TimePoint origin_{};
  mutable std::optional<TimePoint> decay_at_;  // the last time asked for: within a turn it is always the same
  mutable double decay_ = 1;
  std::vector<User> users_;
  std::unordered_map<std::string, UserId> by_name_;
  std::unordered_map<JobId, Job> jobs_;  // those that hold something or have a limit
};

}  // namespace slipway::sched
