#pragma once
// A formula as a list of steps over a stack of values. The parser writes it, the evaluator walks it once,
// from the front to the back: there are no loops, jumps only skip what is not asked for.
#include <cstdint>
#include <string>
#include <vector>

#include "formula/names.h"
#include "formula/value.h"

namespace slipway::formula {

enum class Unary : std::uint8_t { plus, minus, negate };
enum class Binary : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
};

enum class Op : std::uint8_t {
  constant,         // push constants[operand]
  metric,           // push the Metric `operand`
  slots_per_node,   // push it
  current_setting,  // push what the Setting `operand` is before the formula assigns it
  variable,         // push variables[operand], which a statement before has assigned
  undefined,        // error: there is no undefined[operand]
  unary,            // Unary `operand`
  binary,           // Binary `operand`
  vector,           // the last `count` values become one
  function,         // Function `operand` of the last `count` values
  method,           // Method `operand` of a metric, with the last `count` values
  member,           // Member `operand` of a time
  jump,             // continue at `operand`
  jump_unless,      // take a number, continue at `operand` if it is zero
  jump_if_decided,  // of && and ||: take a number; if `count` (0 or 1) is its truth, push that and continue
                    // at `operand`
  truth,            // a number becomes 1 or 0
  assign,           // take a value into variables[operand]
  discard,          // take a value and forget it
};

struct Instruction {
  Op op = Op::discard;
  std::uint16_t count = 0;
  std::uint32_t operand = 0;
  Position at;  // where to point when this step fails
};

struct UndefinedName {
  std::string name;
  std::size_t variables_known;  // how many of the program's were assigned before
};

struct Program {
  std::vector<Instruction> code;
  std::vector<Value> constants;
  std::vector<std::string> variables;  // names; the first are the Settings, the others the formula's own
  std::vector<UndefinedName> undefined;
};

}  // namespace slipway::formula
