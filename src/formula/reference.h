#pragma once
// The language once more, as plainly as it can be written: a tree, walked. Shares no code with the product,
// so that a mistake has to be made twice to stay unseen. For tests; knows only formulas without syntax
// errors.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formula/formula.h"

namespace slipway::formula::reference {

struct Node {
  enum class Kind { number, text, name, unary, binary, choice, call, method, member, vector };
  Kind kind = Kind::number;
  std::string word;  // the literal, name or operator
  std::vector<Node> children;
  Position at;  // of the word, where it was written
};

struct Statement {
  std::string name;  // empty: a bare expression
  Position equals;
  Node value;
};

struct TreeValue {  // a value: `type` selects the member that counts
  enum class Type { number, vector, text, time, interval, metric };
  Type type = Type::number;
  double number = 0;
  std::vector<double> vector;
  std::string text;        // of a metric: its name
  std::int64_t ticks = 0;  // of 100 ns, for times since 1970
};

struct Result {
  NodeCounts targets;
  std::string option = "requeue";
  std::map<std::string, TreeValue> variables;
  std::optional<std::pair<FormulaErrorCode, Position>> error;
};

Result evaluate(const std::vector<Statement>& statements, const Inputs& inputs);

}  // namespace slipway::formula::reference
