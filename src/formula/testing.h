#pragma once
// For tests of formulas: a pool that was watched for ten minutes before a Monday morning, ten o'clock.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "formula/formula.h"

namespace slipway::formula {

class SampledPool {  // a sample every 30 s, the newest at `now`
 public:
  SampledPool() {
    inputs.now = *parse_time("2026-03-02T10:00:00Z");
    inputs.targets = {4, 2};
    inputs.current = {4, 2};
    inputs.slots_per_node = 4;
    std::vector<double> pending;
    for (int i = 1; i <= 20; ++i) pending.push_back(i);
    set(Metric::pending_tasks, pending);
    set(Metric::active_tasks, std::vector<double>(10, 8));
    set(Metric::running_tasks, std::vector<double>(10, 2));
    set(Metric::cpu_percent, std::vector<double>(20, 0.9));
    set(Metric::preempted_node_count, std::vector<double>(6, 1));
  }
  SampledPool(const SampledPool&) = delete;
  SampledPool& operator=(const SampledPool&) = delete;

  void set(Metric metric, const std::vector<double>& values) {
    std::vector<Sample>& samples = kept_[static_cast<std::size_t>(metric)];
    samples.clear();
    for (std::size_t i = 0; i < values.size(); ++i)
      samples.push_back({inputs.now - sample_period * static_cast<int>(values.size() - 1 - i), values[i]});
    inputs.samples[static_cast<std::size_t>(metric)] = samples;
  }

  Outcome run(std::string_view text) const {
    const auto formula = parse(text);
    return formula ? evaluate(*formula, inputs) : unchanged(inputs, formula.error());
  }

  // The formula's own variables, "a=1;b=[2,3]", or where and how it fails: "evaluation 1:5".
  std::string result_of(std::string_view text) const {
    const Outcome outcome = run(text);
    if (const auto& error = outcome.error)
      return std::string(to_string(error->code)) + " " + std::to_string(error->at.line) + ":" +
             std::to_string(error->at.column);
    std::string result;
    for (const Variable& variable : outcome.variables)
      result += (result.empty() ? "" : ";") + variable.name + "=" + variable.value;
    return result;
  }

  Inputs inputs;

 private:
  std::array<std::vector<Sample>, metric_count> kept_;
};

}  // namespace slipway::formula
