#include "domain/policy.h"

#include <fmt/format.h>

#include "base/quantity.h"
#include "domain/job.h"

namespace slipway {
namespace {

constexpr double weight_min = 0.001, weight_max = 1'000'000;
constexpr Duration half_life_min = 1s, half_life_max = 24h * 365;
constexpr Duration reserve_after_max{std::chrono::hours(24 * 365)};
constexpr std::size_t users_max = 10'000;

}  // namespace

Result<PoolPolicy> changed(PoolPolicy policy, const PolicyChange& change) {
  for (const auto& [user, weight] : change.weights) {
    if (auto named = validate_name("user", user); !named) return fail(named.error());
    if (weight == 0) {
      policy.weights.erase(user);
    } else if (weight >= weight_min && weight <= weight_max) {
      policy.weights[user] = weight;
    } else {
      return fail(ErrorCode::invalid, fmt::format("the weight of {} cannot be {}", user, weight),
                  "weights are from 0.001 to 1000000; 1 is what everybody has, 0 takes a user's weight back");
    }
  }
  if (policy.weights.size() > users_max)
    return fail(ErrorCode::invalid,
                fmt::format("{} users would have weights of their own", policy.weights.size()),
                fmt::format("at most {} may; take some back with a weight of 0", users_max));
  if (change.half_life) {
    if (*change.half_life < half_life_min || *change.half_life > half_life_max)
      return fail(ErrorCode::invalid,
                  fmt::format("a half life of {} cannot be", format_duration(*change.half_life)),
                  "it is from 1s to 365d; 1h is the default");
    policy.half_life = *change.half_life;
  }
  if (change.reserve_after) {
    if (change.reserve_after->count() < 0 || *change.reserve_after > reserve_after_max)
      return fail(ErrorCode::invalid,
                  fmt::format("reserve_after cannot be {}", format_duration(*change.reserve_after)),
                  "it is from 0s to 365d; 1s is the default");
    policy.reserve_after = change.reserve_after;
  }
  const auto take = [](std::uint32_t& limit, const std::optional<std::uint32_t>& asked) {
    if (asked) limit = *asked;
  };
  take(policy.per_user.max_nodes, change.user_max_nodes);
  take(policy.per_user.max_running_tasks, change.user_max_running_tasks);
  take(policy.per_job.max_nodes, change.job_max_nodes);
  take(policy.per_job.max_running_tasks, change.job_max_running_tasks);
  return policy;
}

}  // namespace slipway
