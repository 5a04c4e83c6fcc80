#pragma once
// What was seen of a pool: a metric as a number, and its methods.
#include <span>

#include "formula/names.h"
#include "formula/value.h"

namespace slipway::formula {

// The live count of nodes, or the newest sample.
Expected<double> number_of(Metric metric, const Inputs& inputs);

Expected<Value> call(Method method, Metric metric, std::span<const Value> arguments, const Inputs& inputs);

}  // namespace slipway::formula
