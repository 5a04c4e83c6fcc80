// How a pool is shared.
#include <fmt/format.h>

#include <cmath>

#include "base/quantity.h"
#include "cli/commands/commands.h"
#include "wire/records.h"

namespace slipway::cli {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

struct PolicyOptions {
  std::string pool;
  std::vector<std::string> weights;
  std::optional<Duration> half_life, reserve_after;
  std::optional<std::uint32_t> user_max_nodes, user_max_running_tasks;
  std::optional<std::uint32_t> job_max_nodes, job_max_running_tasks;
};

std::string quota(const std::optional<std::uint32_t>& nodes, const std::optional<std::uint32_t>& tasks) {
  Fields fields;
  if (nodes) fields.emplace_back("max_nodes", std::to_string(*nodes));
  if (tasks) fields.emplace_back("max_running_tasks", std::to_string(*tasks));
  return wire::format_object(fields);
}

Outcome<int> change(Context& context, const PolicyOptions& options) {
  Fields weights, policy;
  for (const std::string& text : options.weights) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      return misuse(fmt::format("--weight '{}' is not USER=WEIGHT", text), "write it like --weight ana=2");
    weights.emplace_back(text.substr(0, equals), wire::quote(text.substr(equals + 1)));
  }
  if (!weights.empty()) policy.emplace_back("weights", wire::format_object(weights));
  if (options.half_life) policy.emplace_back("half_life", fmt::format("{}", seconds(*options.half_life)));
  if (options.reserve_after)
    policy.emplace_back("reserve_after", fmt::format("{}", seconds(*options.reserve_after)));
  policy.emplace_back("per_user", quota(options.user_max_nodes, options.user_max_running_tasks));
  policy.emplace_back("per_job", quota(options.job_max_nodes, options.job_max_running_tasks));
  const Outcome<Value> pool =
      context.service().send("PATCH", resource({"pools", options.pool}),
                             wire::format_object({{"policy", wire::format_object(policy)}}));
  if (!pool) return give_up(pool);
  return print(context, *pool, pool->text_at("name"), [&] { return describe_policy(pool->at("policy")); });
}

std::string limits(const Value& quota) {
  std::vector<std::string> parts;
  if (const auto nodes = quota.count_at("max_nodes"); nodes > 0)
    parts.push_back(fmt::format("at most {} node{}", nodes, nodes == 1 ? "" : "s"));
  if (const auto tasks = quota.count_at("max_running_tasks"); tasks > 0)
    parts.push_back(fmt::format("at most {} task{} at a time", tasks, tasks == 1 ? "" : "s"));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string describe_policy(const Value& policy) {
  if (policy.is_null()) return {};  // of an older service
  std::string weights;
  const Value& all = policy.at("weights");
  for (const auto& [user, unused] : all.fields)
    weights += fmt::format("{}{} {:g}", weights.empty() ? "" : ", ", user, all.number_at(user).value_or(1));
  const auto duration = [&](const char* key) {  // the service's own default is a second
    return format_duration(Duration(std::llround(policy.number_at(key).value_or(1) * 1e6)));
  };
  const auto named = [](std::string text) { return text.empty() ? std::string("no limits") : text; };
  return format_fields({{"weights", weights.empty() ? "all users alike" : weights + "; all others 1"},
                        {"half life", duration("half_life")},
                        {"each user", named(limits(policy.at("per_user")))},
                        {"each job", named(limits(policy.at("per_job")))},
                        {"reserves", "capacity for tasks that have waited " + duration("reserve_after")}});
}

void add_policy(Command& pool, Context& context) {
  auto options = std::make_shared<PolicyOptions>();
  pool.verb("policy", "Say how users share a pool",
            "slipway pool policy lab --weight ana=2 --user-max-nodes 4")
      .argument("POOL", options->pool, "the pool")
      .texts("--weight USER=WEIGHT", options->weights,
             "ana=2 gives ana twice the share of others; 0: as others")
      .duration("--half-life TIME", options->half_life, "usage of this age counts half (default 1h)")
      .number("--user-max-nodes N", options->user_max_nodes, "capacity of each user, in nodes; 0: no limit")
      .number("--user-max-running-tasks N", options->user_max_running_tasks,
              "tasks of each user; 0: no limit")
      .number("--job-max-nodes N", options->job_max_nodes, "capacity of each job, in nodes; 0: no limit")
      .number("--job-max-running-tasks N", options->job_max_running_tasks, "tasks of each job; 0: no limit")
      .duration("--reserve-after TIME", options->reserve_after,
                "reserve capacity for tasks that have waited this long (default 1s)")
      .runs([&context, options] { return change(context, *options); });
}

void add_queue(CommandTree& tree, Context& context) {
  auto pool = std::make_shared<std::string>();
  tree.add("queue", "What waits, in order, and why", "slipway queue --pool lab")
      .lists()
      .text("--pool POOL", *pool, "only what waits in this pool")
      .runs([&context, pool] {
        const auto needs = [](const Value& line) {
          const Value& each = line.at("per_node");
          std::string text = each.text_at("cores") + (each.text_at("cores") == "1" ? " core" : " cores");
          if (each.count_at("memory") > 0) text += ", " + format_bytes(each.count_at("memory"));
          if (each.count_at("gpus") > 0) text += fmt::format(", {} GPU", each.count_at("gpus"));
          return line.count_at("nodes") > 1 ? fmt::format("{} x {}", line.count_at("nodes"), text) : text;
        };
        return print_list(
            context,
            {.target = with_query(resource({"queue"}), {{"pool", *pool}}),
             .columns = {drop(7, number_column("POSITION", "place")), drop(3, column("POOL", "pool")),
                         column("JOB", "job"), drop(2, column("NAME", "name")),
                         drop(6, column("USER", "user")), drop(1, number_column("PRIORITY", "priority")),
                         drop(4, number_column("TASKS", "tasks")), drop(5, {{"NEEDS"}, needs}),
                         drop(8, age_column(context, "WAITS", "since")), column("REASON", "reason")},
             .id = "job",
             .empty = "nothing waits"});
      });
}

}  // namespace slipway::cli
