#include <fmt/format.h>

#include "base/file.h"
#include "cli/commands.h"
#include "wire/records.h"

namespace slipway::cli {
namespace {

struct ScaleOptions {
  std::string name;
  bool demand = false;
  bool off = false;
  std::optional<std::uint32_t> min, max;
  std::string formula;
  std::optional<Duration> interval;
};

Outcome<std::string> read_formula(const std::string& file) {
  Result<std::string> text = read_file(file == "-" ? "/dev/stdin" : file);
  if (!text) return give_up(to_failure(text.error()));
  return std::move(*text);
}

Outcome<int> autoscale(Context& context, const ScaleOptions& options) {
  if (options.name.empty())
    return misuse("slipway pool autoscale needs a pool", "slipway pool list shows them");
  const int ways = options.demand + options.off + !options.formula.empty();
  if (ways != 1)
    return misuse(ways == 0 ? "say by what the pool is sized" : "a pool is sized by one thing at a time",
                  "--demand --min 0 --max 8, --formula FILE or --off");
  if (!options.demand && (options.min || options.max))
    return misuse("--min and --max belong to --demand", "a formula says its own bounds");
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
    if (options.interval) scale.emplace_back("interval", fmt::format("{}", seconds(*options.interval)));
  }
  const std::string body = wire::format_object({{"autoscale", wire::format_object(scale)}});
  const Outcome<Value> pool = context.service().send("PATCH", resource({"pools", options.name}), body);
  if (!pool) return give_up(pool);
  return print(context, *pool, pool->text("name"), [&] {
    const std::string by = pool->at("autoscale").text("by");
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
  const Outcome<int> printed = print(context, *result, result->text("results"), [&] {
    const Value targets = result->at("targets");
    std::vector<std::pair<std::string, std::string>> fields{{"dedicated", targets.text("dedicated")},
                                                            {"low priority", targets.text("low_priority")},
                                                            {"deallocation", result->text("deallocation")},
                                                            {"results", result->text("results")}};
    if (failed)
      fields.emplace_back("error", fmt::format("{}: {}", result->at("error").text("code"),
                                               result->at("error").text("message")));
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
      .duration("--interval TIME", options->interval, "between two evaluations (default 15s)")
      .flag("--off", options->off, "by hand again; it keeps the nodes it has")
      .runs([&context, options] { return autoscale(context, *options); });
  auto name = std::make_shared<std::string>();
  auto formula = std::make_shared<std::string>();
  verb.verb("evaluate", "What a formula says now; nothing is changed",
            "slipway pool autoscale evaluate lab --formula scale.txt")
      .argument("POOL", *name, "the pool whose samples are used")
      .text("--formula FILE", *formula, "default: the pool's own")
      .runs([&context, name, formula] { return evaluate(context, *name, *formula); });
}

}  // namespace slipway::cli
