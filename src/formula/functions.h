#pragma once
// The functions, of values in which a Metric has become its number before.
#include <span>

#include "base/random.h"
#include "formula/names.h"
#include "formula/value.h"

namespace slipway::formula {

struct Surroundings {  // what is not among the arguments
  Timestamp now;
  Random& random;
};

// Not for stop(), which is the evaluator's.
Expected<Value> call(Function function, std::span<const Value> arguments, const Surroundings& surroundings);

}  // namespace slipway::formula
