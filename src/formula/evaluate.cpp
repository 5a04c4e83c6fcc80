#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/suggest.h"
#include "formula/formula.h"
#include "formula/functions.h"
#include "formula/operators.h"
#include "formula/program.h"
#include "formula/sampling.h"
#include "formula/timestamp.h"

namespace slipway::formula {
namespace {

using Failed = std::optional<Problem>;  // nothing: it worked

class Machine {
 public:
  Machine(const Program& program, const Inputs& inputs)
      : program_(program), inputs_(inputs), random_(inputs.seed), variables_(program.variables.size()) {
    stack_.reserve(16);
  }

  Outcome run() {
    while (next_ < program_.code.size()) {
      const Instruction& instruction = program_.code[next_++];
      if (Failed failed = step(instruction))
        return unchanged(inputs_,
                         {failed->code, instruction.at, std::move(failed->message), std::move(failed->hint)});
    }
    return outcome();
  }

 private:
  Failed step(const Instruction& instruction) {
    const std::uint32_t operand = instruction.operand;
    switch (instruction.op) {
      case Op::constant: return push(program_.constants[operand]);
      case Op::metric: return push(static_cast<Metric>(operand));
      case Op::slots_per_node: return push(static_cast<double>(inputs_.slots_per_node));
      case Op::current_setting: return push(current_setting(operand));
      case Op::variable: return push(*variables_[operand]);
      case Op::undefined: return undefined(program_.undefined[operand]);
      case Op::unary: return unary(static_cast<Unary>(operand));
      case Op::binary: return binary(static_cast<Binary>(operand));
      case Op::vector: return call_function(Function::vec, instruction.count);
      case Op::function: return call_function(static_cast<Function>(operand), instruction.count);
      case Op::method: return call_method(static_cast<Method>(operand), instruction.count);
      case Op::member: return member(static_cast<Member>(operand));
      case Op::jump: next_ = operand; return {};
      case Op::jump_unless: return jump_unless(operand);
      case Op::jump_if_decided: return jump_if_decided(operand, instruction.count != 0);
      case Op::truth: return truth();
      case Op::assign: return assign(operand);
      case Op::discard: stack_.pop_back(); return {};
    }
    return {};
  }

  // Every vector passes here when it is made or taken up again, so that work and memory have a bound.
  Failed push(Value value) {
    if (const Numbers* numbers = std::get_if<Numbers>(&value)) {
      work_ += numbers->size();
      if (work_ > Limits::work_max)
        return Problem{FormulaErrorCode::evaluation,
                       fmt::format("the formula works on more than {} numbers", Limits::work_max),
                       "take fewer samples"};
    }
    stack_.push_back(std::move(value));
    return {};
  }
  Failed take(Expected<Value> result) {
    if (!result) return std::move(result.error());
    return push(std::move(*result));
  }
  Value pop() {
    Value value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }
  std::span<Value> last(std::size_t count) { return std::span(stack_).last(count); }
  void drop(std::size_t count) { stack_.resize(stack_.size() - count); }

  // Metrics among the last values become their numbers.
  Failed settle(std::size_t count) {
    for (Value& value : last(count)) {
      const Metric* metric = std::get_if<Metric>(&value);
      if (metric == nullptr) continue;
      const auto number = number_of(*metric, inputs_);
      if (!number) return number.error();
      value = *number;
    }
    return {};
  }
  // The last value has to be a number, and stays where it is.
  Failed need_number(std::string_view what) {
    if (Failed failed = settle(1)) return failed;
    const double* const number = as_number(stack_.back());
    if (number == nullptr)
      return Problem{FormulaErrorCode::evaluation,
                     fmt::format("{} a number, not {}", what, describe_type(stack_.back())),
                     std::holds_alternative<Numbers>(stack_.back())
                         ? "take one number of a vector with avg(), max() or val()"
                         : ""};
    stack_.back() = double{*number};
    return {};
  }

  Failed undefined(const UndefinedName& undefined) {
    std::vector<std::string> names(
        program_.variables.begin(),
        program_.variables.begin() + static_cast<std::ptrdiff_t>(undefined.variables_known));
    for (std::size_t i = 0; i < metric_count; ++i) names.emplace_back(to_string(static_cast<Metric>(i)));
    for (const IntervalName& interval : intervals()) names.emplace_back(interval.name);
    for (const Deallocation option : {Deallocation::requeue, Deallocation::terminate,
                                      Deallocation::task_completion, Deallocation::retained_data})
      names.emplace_back(word(option));
    names.emplace_back(slots_per_node_name);
    const std::string close = nearest(undefined.name, names);
    return Problem{
        FormulaErrorCode::evaluation, fmt::format("there is no variable {}", undefined.name.substr(0, 100)),
        close.empty() ? "assign it in a statement before" : fmt::format("did you mean {}?", close)};
  }

  Value current_setting(std::uint32_t setting) const {
    if (setting == node_deallocation_option) return std::string(word(Deallocation::requeue));
    return static_cast<double>(setting <= target_dedicated ? inputs_.targets.dedicated
                                                           : inputs_.targets.low_priority);
  }

  Failed unary(Unary op) {
    if (Failed failed = settle(1)) return failed;
    const Value operand = pop();
    return take(apply(op, operand));
  }
  Failed binary(Binary op) {
    if (Failed failed = settle(2)) return failed;
    const Value right = pop();
    const Value left = pop();
    return take(apply(op, left, right));
  }

  Failed call_function(Function function, std::size_t count) {
    if (function == Function::stop) {
      next_ = program_.code.size();
      return {};
    }
    if (Failed failed = settle(count)) return failed;
    auto result = call(function, last(count), {inputs_.now, random_});
    drop(count);
    return take(std::move(result));
  }
  Failed call_method(Method method, std::size_t count) {
    if (Failed failed = settle(count)) return failed;
    const Value& owner = last(count + 1).front();
    const Metric* const metric = std::get_if<Metric>(&owner);
    if (metric == nullptr)
      return Problem{FormulaErrorCode::evaluation,
                     fmt::format("only metrics have samples; this is {}", describe_type(owner)),
                     "write it like $PendingTasks.GetSample(1)"};
    auto result = call(method, *metric, last(count), inputs_);
    drop(count + 1);
    return take(std::move(result));
  }
  Failed member(Member member) {
    const Value owner = pop();
    if (const Timestamp* time = std::get_if<Timestamp>(&owner)) return push(member_of(*time, member));
    return Problem{FormulaErrorCode::evaluation,
                   fmt::format("only times have members; this is {}", describe_type(owner)),
                   "write it like time().hour"};
  }

  Failed jump_unless(std::uint32_t target) {
    if (Failed failed = need_number("the condition before ? is")) return failed;
    if (std::get<double>(pop()) == 0) next_ = target;
    return {};
  }
  Failed jump_if_decided(std::uint32_t target, bool deciding) {
    if (Failed failed = truth()) return failed;
    if ((std::get<double>(stack_.back()) != 0) == deciding)
      next_ = target;
    else
      stack_.pop_back();
    return {};
  }
  Failed truth() {
    if (Failed failed = need_number("&& and || take")) return failed;
    double& number = std::get<double>(stack_.back());
    number = number != 0 ? 1 : 0;
    return {};
  }

  Failed assign(std::uint32_t slot) {
    if (slot < node_deallocation_option) {
      if (Failed failed = need_number(fmt::format("{} is", setting_names[slot]))) return failed;
      const double target = std::get<double>(stack_.back());
      if (!(target <= Limits::target_max) || std::isinf(target))
        return Problem{FormulaErrorCode::evaluation,
                       fmt::format("{} cannot be {}", setting_names[slot], format(target)),
                       fmt::format("bound it, like min(100, …); at most {} is taken", Limits::target_max)};
    } else if (slot == node_deallocation_option) {
      const std::string* const text = std::get_if<std::string>(&stack_.back());
      const auto option = text != nullptr ? parse_deallocation(*text) : std::nullopt;
      if (!option)
        return Problem{
            FormulaErrorCode::evaluation,
            fmt::format("{} cannot be {}", setting_names[slot],
                        text != nullptr ? "\"" + text->substr(0, 100) + "\"" : describe_type(stack_.back())),
            "it is one of requeue, terminate, taskcompletion, retaineddata"};
      stack_.back() = std::string(word(*option));
    } else if (Failed failed = settle(1)) {
      return failed;
    }
    return keep(slot, pop());
  }

  Failed keep(std::uint32_t slot, Value value) {
    const auto size = [](const Value& of) {
      const Numbers* const numbers = std::get_if<Numbers>(&of);
      return numbers != nullptr ? numbers->size() : 0;
    };
    kept_ += size(value);
    if (variables_[slot]) kept_ -= size(*variables_[slot]);
    if (kept_ > Limits::kept_max)
      return Problem{FormulaErrorCode::evaluation,
                     fmt::format("the variables hold more than {} numbers", Limits::kept_max),
                     "keep avg() or another single number of the samples"};
    variables_[slot] = std::move(value);
    return {};
  }

  std::int32_t target(Setting setting, Setting alias, std::int32_t otherwise) const {
    const auto& assigned = variables_[setting] ? variables_[setting] : variables_[alias];
    return assigned ? static_cast<std::int32_t>(std::max(0.0, std::get<double>(*assigned))) : otherwise;
  }

  Outcome outcome() const {
    Outcome outcome;
    outcome.targets.dedicated = target(target_dedicated_nodes, target_dedicated, inputs_.targets.dedicated);
    outcome.targets.low_priority =
        target(target_low_priority_nodes, target_low_priority, inputs_.targets.low_priority);
    if (const auto& option = variables_[node_deallocation_option])
      outcome.deallocation = *parse_deallocation(std::get<std::string>(*option));
    for (std::size_t slot = setting_count; slot < variables_.size(); ++slot)
      if (variables_[slot])
        outcome.variables.push_back({program_.variables[slot], format(*variables_[slot])});
    std::sort(outcome.variables.begin(), outcome.variables.end(),
              [](const Variable& a, const Variable& b) { return a.name < b.name; });
    return outcome;
  }

  const Program& program_;
  const Inputs& inputs_;
  Random random_;
  std::size_t next_ = 0;
  std::size_t work_ = 0;
  std::size_t kept_ = 0;
  std::vector<Value> stack_;
  std::vector<std::optional<Value>> variables_;
};

}  // namespace

Outcome evaluate(const Formula& formula, const Inputs& inputs) {
  return Machine(formula.program(), inputs).run();
}

Outcome unchanged(const Inputs& inputs, FormulaError error) {
  Outcome outcome;
  outcome.targets = inputs.targets;
  outcome.error = std::move(error);
  return outcome;
}

std::string_view to_string(FormulaErrorCode code) {
  switch (code) {
    case FormulaErrorCode::too_long: return "too_long";
    case FormulaErrorCode::syntax: return "syntax";
    case FormulaErrorCode::evaluation: return "evaluation";
    case FormulaErrorCode::insufficient_samples: return "insufficient_samples";
  }
  return "";
}

std::string describe(const FormulaError& error) {
  return fmt::format("Line {}, Col {}: {}", error.at.line, error.at.column, error.message);
}

std::string format_results(const Outcome& outcome) {
  std::string text =
      fmt::format("$TargetDedicatedNodes={};$TargetLowPriorityNodes={};$NodeDeallocationOption={}",
                  outcome.targets.dedicated, outcome.targets.low_priority, word(outcome.deallocation));
  for (const Variable& variable : outcome.variables)
    text += fmt::format(";{}={}", variable.name, variable.value);
  return text;
}

}  // namespace slipway::formula
