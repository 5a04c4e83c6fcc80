#include "wire/policy.h"

#include <fmt/format.h>

#include <charconv>

#include "wire/fields.h"

namespace slipway::wire {
namespace {

constexpr std::int64_t limit_max = 1'000'000'000;

Json quota_json(const Quota& quota) {
  return {{"max_nodes", quota.max_nodes}, {"max_running_tasks", quota.max_running_tasks}};
}

void read_quota(FieldReader& outer, std::string_view key, std::optional<std::uint32_t>& nodes,
                std::optional<std::uint32_t>& tasks) {
  read_inside(outer, key, [&](FieldReader& reader) {
    const auto limit = [&](const char* name, std::optional<std::uint32_t>& into) {
      if (reader.has(name)) into = static_cast<std::uint32_t>(reader.integer(name, 0, limit_max, 0));
    };
    limit("max_nodes", nodes);
    limit("max_running_tasks", tasks);
  });
}

}  // namespace

Json policy_json(const PoolPolicy& policy) {
  Json weights = Json::object();
  for (const auto& [user, weight] : policy.weights) weights[user] = weight;
  return {{"weights", std::move(weights)},
          {"half_life", seconds(policy.half_life)},
          {"per_user", quota_json(policy.per_user)},
          {"per_job", quota_json(policy.per_job)},
          {"reserve_after", policy.reserve_after ? Json(seconds(*policy.reserve_after)) : Json()}};
}

PolicyChange read_policy(FieldReader& outer) {
  PolicyChange change;
  read_inside(outer, "policy", [&](FieldReader& reader) {
    for (const auto& [user, text] : reader.text_map("weights")) {
      double weight = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
      if (error != std::errc() || end != text.data() + text.size())
        reader.problem(*reader.value("weights"),
                       fmt::format("the weight of {} is not a number: '{}'", user, text.substr(0, 100)),
                       "write it like {\"ana\": 2}");
      change.weights[user] = weight;
    }
    if (reader.has("half_life")) change.half_life = reader.duration("half_life", Duration(0));
    if (reader.value("reserve_after")) change.reserve_after = reader.duration("reserve_after", Duration(0));
    read_quota(reader, "per_user", change.user_max_nodes, change.user_max_running_tasks);
    read_quota(reader, "per_job", change.job_max_nodes, change.job_max_running_tasks);
  });
  return change;
}

}  // namespace slipway::wire
