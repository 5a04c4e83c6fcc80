#include <fmt/format.h>

#include "base/file.h"
#include "cli/commands/commands.h"
#include "wire/records.h"
#include "wire/scenario.h"

namespace slipway::cli {
namespace {

struct ScaleOptions {
  std::string name;
  bool demand = false;
  bool off = false;
  std::optional<std::uint32_t> min, max;
  std::string formula;
  std::optional<Duration> interval;
  std::string scenario, scenario_file, bias_node_type, work_hours, weekdays, timezone, rules, deallocation;
  std::optional<std::uint32_t> min_dedicated, max_dedicated, min_low_priority, max_low_priority;
  std::optional<std::uint32_t> step_dedicated, step_low_priority;
  std::optional<Duration> lookback;
  std::optional<double> sample_percent, rebalance;
  bool no_bias_last_sample = false;
};

using Fields = std::vector<std::pair<std::string, std::string>>;

const std::vector<std::string> scenarios{"active_tasks", "pending_tasks",
                                         "workday",      "workday_with_offpeak_max_low_priority",
                                         "weekday",      "weekend"};

Outcome<std::string> read_formula(const std::string& file) {
  Result<std::string> text = read_file(file == "-" ? "/dev/stdin" : file);
  if (!text) return give_up(to_failure(text.error()));
  return std::move(*text);
}

// 8-17 of hours, 1-5 of weekdays.
Outcome<std::string> range_json(const std::string& flag, const std::string& text) {
  const std::size_t dash = text.find('-');
  const auto is_number = [](const std::string& part) {
    return !part.empty() && part.size() <= 2 && part.find_first_not_of("0123456789") == std::string::npos;
  };
  if (dash == std::string::npos || !is_number(text.substr(0, dash)) || !is_number(text.substr(dash + 1)))
    return misuse(fmt::format("{}: '{}' is not a range", flag, text), "write it like 8-17");
  return wire::format_object({{"start", std::to_string(std::stoi(text.substr(0, dash)))},
                              {"end", std::to_string(std::stoi(text.substr(dash + 1)))}});
}

Outcome<std::string> scenario_json(const ScaleOptions& options) {
  Fields fields{{"name", wire::quote(options.scenario)}};
  const auto counts = [&](const char* key, const auto& dedicated, const auto& low_priority) {
    if (!dedicated && !low_priority) return;
    fields.emplace_back(key,
                        wire::format_object({{"dedicated", std::to_string(dedicated.value_or(0))},
                                             {"low_priority", std::to_string(low_priority.value_or(0))}}));
  };
  counts("minimum_vm_count", options.min_dedicated, options.min_low_priority);
  counts("maximum_vm_count", options.max_dedicated, options.max_low_priority);
  counts("maximum_vm_increment_per_evaluation", options.step_dedicated, options.step_low_priority);
  const auto word = [&](const char* key, const std::string& value) {
    if (!value.empty()) fields.emplace_back(key, wire::quote(value));
  };
  word("bias_node_type", options.bias_node_type);
  word("timezone", options.timezone);
  word("rules", options.rules);
  word("node_deallocation_option", options.deallocation);
  if (options.lookback)
    fields.emplace_back("sample_lookback_interval", fmt::format("\"{}s\"", seconds(*options.lookback)));
  if (options.sample_percent)
    fields.emplace_back("required_sample_percentage", fmt::format("{}", *options.sample_percent));
  if (options.rebalance)
    fields.emplace_back("rebalance_preemption_percentage", fmt::format("{}", *options.rebalance));
  if (options.no_bias_last_sample) fields.emplace_back("bias_last_sample", "false");
  Fields ranges;
  for (const auto& [key, flag, text] : {std::tuple{"weekdays", "--weekdays", &options.weekdays},
                                        std::tuple{"work_hours", "--work-hours", &options.work_hours}}) {
    if (text->empty()) continue;
    const Outcome<std::string> range = range_json(flag, *text);
    if (!range) return give_up(range);
    ranges.emplace_back(key, *range);
  }
  if (!ranges.empty()) fields.emplace_back("time_ranges", wire::format_object(ranges));
  return wire::format_object(fields);
}

Outcome<int> autoscale(Context& context, const ScaleOptions& options) {
  if (options.name.empty())
    return misuse("slipway pool autoscale needs a pool", "slipway pool list shows them");
  const int ways = options.demand + options.off + !options.formula.empty() + !options.scenario.empty() +
                   !options.scenario_file.empty();
  if (ways != 1)
    return misuse(ways == 0 ? "name what sizes the pool" : "a pool is sized by one thing at a time",
                  "--demand --min 0 --max 8, --formula FILE, --scenario NAME or --off");
  if (!options.demand && (options.min || options.max))
    return misuse("--min and --max belong to --demand", "a formula has its own bounds");
  std::vector<std::pair<std::string, std::string>> scale;
  if (options.off) scale.emplace_back("by", "\"hand\"");
  if (options.demand) {
    if (!options.max) return misuse("--demand needs --max N", "the most nodes the pool may grow to");
    scale = {{"by", "\"demand\""},
             {"min", std::to_string(options.min.value_or(0))},
             {"max", std::to_string(*options.max)}};
  }
  if (!options.formula.empty()) {
    const Outcome<std::string> text = read_formula(options.formula);
    if (!text) return give_up(text);
    scale = {{"by", "\"formula\""}, {"formula", wire::quote(*text)}};
  }
  if (!options.scenario.empty()) {
    const Outcome<std::string> scenario = scenario_json(options);
    if (!scenario) return give_up(scenario);
    scale = {{"by", "\"scenario\""}, {"scenario", *scenario}};
  }
  if (!options.scenario_file.empty()) {
    const Outcome<std::string> text = read_formula(options.scenario_file);
    if (!text) return give_up(text);
    auto scenario = wire::parse_scenario_file(*text, options.scenario_file);
    if (!scenario) return give_up(to_failure(scenario.error()));
    scale = {{"by", "\"scenario\""}, {"scenario", wire::format(*scenario)}};
  }
  if (options.interval) scale.emplace_back("interval", fmt::format("{}", seconds(*options.interval)));
  const std::string body = wire::format_object({{"autoscale", wire::format_object(scale)}});
  const Outcome<Value> pool = context.service().send("PATCH", resource({"pools", options.name}), body);
  if (!pool) return give_up(pool);
  return print(context, *pool, pool->text_at("name"), [&] {
    const std::string by = pool->at("autoscale").text_at("by");
    return fmt::format("pool {} is sized by {} now\n", options.name, by);
  });
}

Outcome<int> evaluate(Context& context, const std::string& name, const std::string& formula) {
  std::string body = "{}";
  if (!formula.empty()) {
    const Outcome<std::string> text = read_formula(formula);
    if (!text) return give_up(text);
    body = wire::format_object({{"formula", wire::quote(*text)}});
  }
  const Outcome<Value> result =
      context.service().send("POST", resource({"pools", name, "autoscale", "evaluate"}), body);
  if (!result) return give_up(result);
  const bool failed = !result->at("error").is_null();
  const Outcome<int> printed = print(context, *result, result->text_at("results"), [&] {
    const Value& targets = result->at("targets");
    std::vector<std::pair<std::string, std::string>> fields{{"dedicated", targets.text_at("dedicated")},
                                                            {"low priority", targets.text_at("low_priority")},
                                                            {"deallocation", result->text_at("deallocation")},
                                                            {"results", result->text_at("results")}};
    if (failed)
      fields.emplace_back("error", fmt::format("{}: {}", result->at("error").text_at("code"),
                                               result->at("error").text_at("message")));
    return format_fields(fields);
  });
  if (!printed) return printed;
  return failed ? ExitCode::refused : ExitCode::done;
}

}  // namespace

void add_autoscale(Command& pool, Context& context) {
  auto options = std::make_shared<ScaleOptions>();
  Command verb = pool.verb("autoscale", "Let a pool be sized by its work or by a formula",
                           "slipway pool autoscale lab --demand --min 0 --max 8");
  verb.argument("POOL", options->name, "the pool", Need::optional)  // not of `evaluate`, which has its own
      .flag("--demand", options->demand, "by the work that waits")
      .number("--min N", options->min, "never fewer nodes (default 0)")
      .number("--max N", options->max, "never more")
      .text("--formula FILE", options->formula, "by an autoscale formula, see docs/guide/autoscale.md")
      .word("--scenario NAME", options->scenario, scenarios,
            "by one of Batch Shipyard's six ready-made rules")
      .text("--scenario-file FILE", options->scenario_file, "by one in a file, with Shipyard's keys")
      .number("--min-dedicated N", options->min_dedicated, "of a scenario")
      .number("--max-dedicated N", options->max_dedicated, "of a scenario")
      .number("--min-low-priority N", options->min_low_priority, "of a scenario")
      .number("--max-low-priority N", options->max_low_priority, "of a scenario")
      .number("--step-dedicated N", options->step_dedicated, "at most so many more at a time")
      .number("--step-low-priority N", options->step_low_priority, "at most so many more at a time")
      .word("--bias-node-type KIND", options->bias_node_type, {"auto", "dedicated", "low_priority"},
            "which kind of node a scenario asks for first")
      .flag("--no-bias-last-sample", options->no_bias_last_sample, "go by the mean of the look-back alone")
      .duration("--lookback TIME", options->lookback, "how far back samples count (default 10m)")
      .decimal("--sample-percent P", options->sample_percent,
               "of the samples that must be there (default 70)")
      .decimal("--rebalance P", options->rebalance, "percent of evicted nodes that brings dedicated ones")
      .text("--weekdays A-B", options->weekdays, "Sunday is 0 (default 1-5)")
      .text("--work-hours A-B", options->work_hours, "default 8-17")
      .text("--timezone OFFSET", options->timezone, "like +02:00 (default UTC)")
      .word("--rules WHOSE", options->rules, {"slipway", "shipyard"}, "shipyard: exactly as 3.9.1 computed")
      .word("--deallocation RULE", options->deallocation,
            {"requeue", "terminate", "task_completion", "retained_data"}, "of a scenario")
      .duration("--interval TIME", options->interval, "between two evaluations (default 15s)")
      .flag("--off", options->off, "by hand again; it keeps the nodes it has")
      .runs([&context, options] { return autoscale(context, *options); });
  auto name = std::make_shared<std::string>();
  auto formula = std::make_shared<std::string>();
  verb.verb("evaluate", "Evaluate a formula now; changes nothing",
            "slipway pool autoscale evaluate lab --formula scale.txt")
      .argument("POOL", *name, "the pool whose samples are used")
      .text("--formula FILE", *formula, "default: the pool's own")
      .runs([&context, name, formula] { return evaluate(context, *name, *formula); });
}

}  // namespace slipway::cli
