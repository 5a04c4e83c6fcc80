#pragma once
// The functions, of values in which a Metric has become its number before.
#include <span>

#include "base/random.h"
#include "formula/names.h"
#include "formula/value.h"

namespace slipway::formula {

struct CallContext {  // what is not among the arguments
  Timestamp now;
  Random& random;
};

// Not for stop(), which is the evaluator's.
Expected<Value> call(Function function, std::span<const Value> arguments, const CallContext& context);

}  // namespace slipway::formula
