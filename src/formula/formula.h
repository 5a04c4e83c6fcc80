#pragma once
// The autoscale formula language: a text that says, from what was lately seen of a pool, how many nodes it
// should have. Pure: no clock, no files, no state; same formula and inputs, same outcome.
//
//   const auto formula = formula::parse("$TargetDedicatedNodes = min(10, $PendingTasks.GetSample(1));");
//   const formula::Outcome outcome = formula::evaluate(*formula, inputs);  // as often as you like
//
// Bounded by Limits, so that no formula can hold up the service for more than some milliseconds.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "base/clock.h"
#include "formula/metrics.h"

namespace slipway::formula {

struct Limits {
  static constexpr std::size_t characters_max = 8192;
  static constexpr std::size_t statements_max = 100;
  static constexpr std::size_t nesting_max = 100;
  static constexpr std::size_t work_max = 1'250'000;  // numbers in the vectors made during one evaluation
  static constexpr std::size_t kept_max = 50'000;     // numbers in the variables' vectors, which are saved
  static constexpr double target_max = 2'147'483'647;
};

enum class FormulaErrorCode : std::uint8_t {
  too_long,
  syntax,                // the text is no formula
  evaluation,            // it asks for something that cannot be: an unknown name, a wrong type, 1/0
  insufficient_samples,  // it would work, had the pool been watched for longer
};
std::string_view to_string(FormulaErrorCode code);

struct Position {  // both from 1; columns count characters, not bytes
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  friend bool operator==(const Position&, const Position&) = default;
};

struct FormulaError {
  FormulaErrorCode code = FormulaErrorCode::syntax;
  Position at;
  std::string message;
  std::string hint;  // what the writer can do; empty when nothing helps
};
std::string describe(const FormulaError& error);  // "Line 1, Col 23: …"

struct Program;
class Formula {  // ready to be evaluated; cheap to copy
 public:
  explicit Formula(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  const Program& program() const { return *program_; }

 private:
  std::shared_ptr<const Program> program_;
};

// Finds what is wrong with the text itself: syntax, unknown functions, methods and members, how many
// arguments they take, and assignments to what cannot be assigned.
tl::expected<Formula, FormulaError> parse(std::string_view text);

struct Sample {
  TimePoint time;
  double value = 0;
};
struct NodeCounts {
  std::int32_t dedicated = 0;
  std::int32_t low_priority = 0;
  friend bool operator==(const NodeCounts&, const NodeCounts&) = default;
};

constexpr Duration sample_period = 30s;  // unless Inputs say otherwise

struct Inputs {
  TimePoint now;
  NodeCounts targets;
  NodeCounts current;
  std::uint32_t slots_per_node = 1;
  // By Metric, each oldest first. Samples later than `now` are not seen.
  std::array<std::span<const Sample>, metric_count> samples{};
  std::uint64_t seed = 0;           // of rand()
  Duration period = sample_period;  // between two samples; above 0
};

enum class Deallocation : std::uint8_t { requeue, terminate, task_completion, retained_data };
std::string_view to_string(Deallocation option);  // task_completion, as the rest of the project writes it
std::string_view word(Deallocation option);       // taskcompletion, as formulas do
std::optional<Deallocation> parse_deallocation(std::string_view text);  // a formula's word, in any case

struct Variable {
  std::string name;   // as written in the formula
  std::string value;  // 7.9, [1,2,3], 00:00:30, …
  friend bool operator==(const Variable&, const Variable&) = default;
};

// After an error the targets are those of the inputs, and there are no variables: nothing is applied.
struct Outcome {
  NodeCounts targets;
  Deallocation deallocation = Deallocation::requeue;
  std::vector<Variable> variables;  // the formula's own, by name
  std::optional<FormulaError> error;
};

Outcome evaluate(const Formula& formula, const Inputs& inputs);

// What an outcome looks like when nothing was evaluated because the text did not parse.
Outcome unchanged(const Inputs& inputs, FormulaError error);

// $TargetDedicatedNodes=7;$TargetLowPriorityNodes=2;$NodeDeallocationOption=requeue;x=7.9
std::string format_results(const Outcome& outcome);

}  // namespace slipway::formula
