#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "base/random.h"
#include "cli/commands/commands.h"
#include "wire/formula.h"

namespace slipway::cli {
namespace {

struct EvalOptions {
  std::string file;
  std::string samples;
  std::string now;
};

struct Source {
  std::string name;  // what messages call it
  std::string text;
};

Outcome<Source> read_source(const std::string& file) {
  const bool standard_input = file == "-";
  Result<std::string> text = read_file(standard_input ? "/dev/stdin" : file);
  if (!text) return give_up(to_failure(text.error()));
  return Source{standard_input ? "standard input" : file, std::move(*text)};
}

Outcome<formula::Inputs> read_inputs(const Context& context, const EvalOptions& options,
                                     wire::FormulaSamples& samples) {
  TimePoint now = context.now();
  if (!options.now.empty()) {
    const Result<TimePoint> parsed = parse_time(options.now);
    if (!parsed) return misuse("--now: " + parsed.error().what, parsed.error().hint);
    now = *parsed;
  }
  if (!options.samples.empty()) {
    const Outcome<Source> source = read_source(options.samples);
    if (!source) return give_up(source);
    auto parsed = wire::parse_formula_samples(source->text, source->name);
    if (!parsed) return give_up(to_failure(parsed.error()));
    samples = std::move(*parsed);
  }
  formula::Inputs inputs = samples.at(now);
  inputs.seed = random_seed();
  return inputs;
}

// The line an error is in, with a mark under the place.
std::string show_place(const std::string& text, formula::Position at) {
  std::size_t begin = 0;
  for (std::uint32_t line = 1; line < at.line; ++line) begin = text.find('\n', begin) + 1;
  const std::string line = printable(text.substr(begin, text.find_first_of("\r\n", begin) - begin));
  return fmt::format("{}\n{}^", line, std::string(at.column - 1, ' '));
}

Failure explain(const Source& source, const formula::FormulaError& error) {
  Failure failure{
      ExitCode::refused,
      fmt::format("{} line {}, column {}: {}", source.name, error.at.line, error.at.column, error.message),
      {},
      error.hint};
  if (error.code != formula::FormulaErrorCode::too_long) failure.why = show_place(source.text, error.at);
  return failure;
}

std::string describe_target(std::int32_t now, std::int32_t before) {
  return now == before ? fmt::format("{} nodes, as before", now)
                       : fmt::format("{} nodes, were {}", now, before);
}

std::string for_people(const formula::Outcome& outcome, const formula::NodeCounts& before) {
  std::string text =
      format_fields({{"dedicated", describe_target(outcome.targets.dedicated, before.dedicated)},
                     {"low priority", describe_target(outcome.targets.low_priority, before.low_priority)},
                     {"deallocation", std::string(to_string(outcome.deallocation))}});
  if (outcome.variables.empty()) return text;
  Table table({{"VARIABLE"}, {"VALUE"}}, render_options(STDOUT_FILENO));
  for (const formula::Variable& variable : outcome.variables) table.add({variable.name, variable.value});
  return text + "\n" + table.format();
}

Outcome<int> eval(const Context& context, const EvalOptions& options) {
  if (options.file == "-" && options.samples == "-")
    return misuse("standard input holds the formula or the samples, not both", "put one of them into a file");
  wire::FormulaSamples samples;
  const Outcome<formula::Inputs> inputs = read_inputs(context, options, samples);
  if (!inputs) return give_up(inputs);
  const Outcome<Source> source = read_source(options.file);
  if (!source) return give_up(source);

  const auto parsed = formula::parse(source->text);
  const formula::Outcome outcome =
      parsed ? formula::evaluate(*parsed, *inputs) : formula::unchanged(*inputs, parsed.error());
  if (outcome.error && !context.is_json()) return give_up(explain(*source, *outcome.error));
  const std::string short_form =
      fmt::format("{} {}", outcome.targets.dedicated, outcome.targets.low_priority);
  Outcome<int> printed = print(context, *wire::parse_answer(wire::format(outcome)), short_form,
                               [&] { return for_people(outcome, inputs->targets); });
  // A program reads the error in the JSON; a person beside it wants the hint too.
  if (outcome.error) return give_up(explain(*source, *outcome.error));
  return printed;
}

}  // namespace

void add_formula(CommandTree& tree, Context& context) {
  Command formula = tree.add("formula", "Autoscale formulas: try them without a service",
                             "slipway formula evaluate scale.formula --samples samples.json");
  auto options = std::make_shared<EvalOptions>();
  formula
      .verb("evaluate", "Say what a formula makes of some samples",
            "slipway formula evaluate scale.formula --samples samples.json --now 2026-03-02T10:00:00Z")
      .alias("eval")
      .argument("FILE", options->file, "the formula; - for standard input")
      .text("--samples FILE", options->samples,
            "JSON with targets, current nodes and metrics (default: none at all)")
      .text("--now TIME", options->now, "the value of time(), like 2026-03-02T10:00:00Z (default: now)")
      .runs([&context, options] { return eval(context, *options); });
}

}  // namespace slipway::cli
