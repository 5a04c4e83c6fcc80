// How node time was used: computing, staging, waiting, lost, idle.
#include <fmt/format.h>

#include <cmath>

#include "base/quantity.h"
#include "cli/commands/commands.h"

namespace slipway::cli {
namespace {

std::string describe(const Value& usage) {
  const Value& seconds = usage.at("node_seconds");
  const double wall = seconds.number_at("wall").value_or(0);
  std::vector<std::pair<std::string, std::string>> fields;
  const auto add = [&](const char* name, const char* key, const char* about) {
    const double spent = seconds.number_at(key).value_or(0);
    const std::string time = format_duration(Duration(std::llround(spent * 1e6)));
    const std::string part = wall > 0 ? fmt::format("{:5.1f} %", 100 * spent / wall) : "";
    fields.emplace_back(name, fmt::format("{:<16} {:>8}  {}", time, part, about));
  };
  add("computing", "computing", "all processes had started");
  add("staging", "staging", "placed, not started yet");
  add("waiting", "waiting", "started, for other processes of the gang");
  add("lost", "lost", "since the last checkpoint of evicted or failed attempts");
  if (seconds.number_at("idle").value_or(0) > 0) add("idle", "idle", "nothing ran");
  fields.emplace_back("total", fmt::format("{:.{}f} node-seconds", wall, wall < 10 ? 1 : 0));
  return format_fields(fields);
}

void add_verb(Command& noun, Context& context, const char* what, const char* collection) {
  auto name = std::make_shared<std::string>();
  noun.verb("usage", fmt::format("Show how the node time of a {} was used", what),
            fmt::format("slipway {} usage {}", what, std::string_view(what) == "pool" ? "lab" : "job_1"))
      .argument(std::string_view(what) == "pool" ? "POOL" : "JOB", *name, fmt::format("the {}", what))
      .runs([&context, name, collection]() -> Outcome<int> {
        const Outcome<Value> usage = context.service().get(resource({collection, *name, "usage"}));
        if (!usage) return give_up(usage);
        return print(context, *usage, *name, [&] { return describe(*usage); });
      });
}

}  // namespace

void add_pool_usage(Command& pool, Context& context) { add_verb(pool, context, "pool", "pools"); }
void add_job_usage(Command& job, Context& context) { add_verb(job, context, "job", "jobs"); }

}  // namespace slipway::cli
