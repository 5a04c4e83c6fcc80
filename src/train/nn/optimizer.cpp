#include "train/nn/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/suggest.h"

namespace slipway::train {
namespace {

constexpr float statistic_pace = 0.1F;  // share of a running mean that one batch replaces

Range common(const Range& range, const Range& limits) {  // empty where they do not meet
  return {std::clamp(range.begin, limits.begin, limits.end), std::clamp(range.end, limits.begin, limits.end)};
}

template <class Kind>
Result<Kind> choose(std::string_view word, const char* what,
                    const std::vector<std::pair<std::string, Kind>>& known) {
  std::vector<std::string> words;
  for (const auto& [name, kind] : known) {
    if (name == word) return kind;
    words.push_back(name);
  }
  std::string all;
  for (const std::string& name : words) all += (all.empty() ? "" : ", ") + name;
  const std::string near = nearest(word, words);
  return fail(ErrorCode::invalid, std::string("there is no ") + what + " " + std::string(word),
              near.empty() ? "known are " + all : "did you mean " + near + "?");
}

}  // namespace

Result<OptimizerKind> parse_optimizer(std::string_view name) {
  using enum OptimizerKind;
  return choose<OptimizerKind>(name, "optimizer",
                               {{"sgd", sgd}, {"momentum", momentum}, {"adam", adam}, {"adagrad", adagrad}});
}
Result<Schedule> parse_schedule(std::string_view name) {
  using enum Schedule;
  return choose<Schedule>(name, "schedule", {{"constant", constant}, {"cosine", cosine}, {"step", step}});
}

float rate_at(const OptimizerSpec& spec, std::uint64_t step) {
  if (spec.schedule == Schedule::constant || spec.steps_total == 0) return spec.rate;
  const double done = std::min(1.0, static_cast<double>(step) / static_cast<double>(spec.steps_total));
  if (spec.schedule == Schedule::cosine)
    return static_cast<float>(spec.rate * 0.5 * (1 + std::cos(std::numbers::pi * done)));
  return spec.rate * (done < 0.5 ? 1.0F : done < 0.75 ? 0.1F : 0.01F);
}

std::vector<Range> statistic_ranges(const std::vector<Parameter>& parameters) {
  std::vector<Range> ranges;
  std::size_t at = 0;
  for (const Parameter& parameter : parameters) {
    if (parameter.is_statistic()) {
      if (!ranges.empty() && ranges.back().end == at)
        ranges.back().end = at + parameter.floats;
      else
        ranges.push_back({at, at + parameter.floats});
    }
    at += parameter.floats;
  }
  return ranges;
}

std::size_t Optimizer::state_floats(OptimizerKind kind, std::size_t values) {
  if (kind == OptimizerKind::sgd) return 0;
  return kind == OptimizerKind::adam ? 2 * values : values;
}

Optimizer::Optimizer(OptimizerSpec spec, Range slice, const std::vector<Range>& statistics)
    : spec_(spec), size_(slice.end - slice.begin), state_(state_floats(spec.kind, size_), 0.0F) {
  std::size_t at = slice.begin;
  for (const Range& range : statistics) {
    const auto [begin, end] = common(range, slice);
    if (begin == end) continue;
    if (begin > at) trained_.push_back({at - slice.begin, begin - slice.begin});
    averaged_.push_back({begin - slice.begin, end - slice.begin});
    at = end;
  }
  if (at < slice.end) trained_.push_back({at - slice.begin, size_});
}

void Optimizer::apply(std::uint64_t step, float scale, std::span<float> values,
                      std::span<const float> gradients) {
  SLIPWAY_CHECK(values.size() == size_ && gradients.size() == size_);
  apply_part(step, scale, 0, values, gradients);
}

void Optimizer::apply_part(std::uint64_t step, float scale, std::size_t begin, std::span<float> values,
                           std::span<const float> gradients) {
  const Range part{begin, begin + gradients.size()};
  SLIPWAY_CHECK(values.size() == gradients.size() && part.end <= size_);
  const float rate = rate_at(spec_, step);
  for (const Range& whole : trained_) {
    const Range range = common(whole, part);
    if (range.begin == range.end) continue;
    float* w = values.data() + (range.begin - begin);
    const float* g = gradients.data() + (range.begin - begin);
    const std::size_t n = range.end - range.begin;
    float* state = state_.data() + range.begin;
    switch (spec_.kind) {
      case OptimizerKind::sgd: kernels().sgd(w, g, n, scale, rate); break;
      case OptimizerKind::momentum: kernels().momentum(w, g, state, n, scale, rate, spec_.decay); break;
      case OptimizerKind::adagrad: kernels().adagrad(w, g, state, n, scale, rate, 1e-7F); break;
      case OptimizerKind::adam: {
        const double t = static_cast<double>(step + 1);
        const double corrected = rate * std::sqrt(1 - std::pow(static_cast<double>(spec_.beta2), t)) /
                                 (1 - std::pow(static_cast<double>(spec_.beta1), t));
        kernels().adam(w, g, state, state_.data() + size_ + range.begin, n, scale,
                       {static_cast<float>(corrected), spec_.beta1, spec_.beta2, spec_.epsilon});
      }
    }
  }
  for (const Range& whole : averaged_) {
    const Range range = common(whole, part);
    for (std::size_t i = range.begin - begin; i < range.end - begin; ++i)
      values[i] += statistic_pace * (gradients[i] * scale - values[i]);
  }
}

}  // namespace slipway::train
