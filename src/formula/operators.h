#pragma once
// What operators make of their operands. A Metric has become its number before.
#include "formula/program.h"

namespace slipway::formula {

Expected<Value> apply(Unary op, const Value& operand);
Expected<Value> apply(Binary op, const Value& left, const Value& right);

}  // namespace slipway::formula
