#pragma once
// How gradients change parameters, and how the rate changes over the run. Works on any slice of the flat
// array, so that a parameter server can keep the part it owns.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/nn/layer.h"

namespace slipway::train {

enum class OptimizerKind : std::uint8_t { sgd, momentum, adam, adagrad };
enum class Schedule : std::uint8_t { constant, cosine, step };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::sgd;
  Schedule schedule = Schedule::constant;
  float rate = 0.5F;
  float decay = 0.9F;  // of momentum
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;
  std::uint64_t steps_total = 0;  // what the schedules stretch over; 0 when unknown
};
Result<OptimizerKind> parse_optimizer(std::string_view name);
Result<Schedule> parse_schedule(std::string_view name);

// The rate at a step. cosine falls to 0 at steps_total; step divides by 10 after half and after three
// quarters.
float rate_at(const OptimizerSpec& spec, std::uint64_t step);

// Ranges of the flat array that hold running means: averaged, not trained.
struct Range {
  std::size_t begin = 0, end = 0;
  friend bool operator==(const Range&, const Range&) = default;
};
std::vector<Range> statistic_ranges(const std::vector<Parameter>& parameters);

class Optimizer {
 public:
  // For the slice [slice.begin, slice.end) of the flat array; `statistics` are in the flat array's own
  // numbers.
  Optimizer(OptimizerSpec spec, Range slice, const std::vector<Range>& statistics);

  // values and gradients are the slice; the gradient is multiplied by `scale` (1 / samples it sums over).
  // `step` counts from 0.
  void apply(std::uint64_t step, float scale, std::span<float> values, std::span<const float> gradients);
  // The same for the values from `begin` of the slice on, as many as there are gradients. A step may be
  // applied part by part, in any order; the result is the same to the bit.
  void apply_part(std::uint64_t step, float scale, std::size_t begin, std::span<float> values,
                  std::span<const float> gradients);

  // What must be kept besides the values to go on exactly: none, one or two floats per value.
  std::span<float> state() { return state_; }
  std::span<const float> state() const { return state_; }
  static std::size_t state_floats(OptimizerKind kind, std::size_t values);
  const OptimizerSpec& spec() const { return spec_; }

 private:
  OptimizerSpec spec_;
  std::size_t size_;
  std::vector<Range> trained_, averaged_;  // within the slice
  std::vector<float> state_;
};

}  // namespace slipway::train
