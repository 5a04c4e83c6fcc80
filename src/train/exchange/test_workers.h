#pragma once
// What the tests of servers and of all-reduce share: workers whose gradients betray any mix-up.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "train/exchange/exchange.h"

namespace slipway::train {

inline constexpr std::size_t floats = 163;

// Gradients that depend on the values, the step and the worker: any mix-up shows in the result.
inline void fill(std::span<float> gradients, const WorkerState& state, std::uint32_t worker) {
  for (std::size_t i = 0; i < gradients.size(); ++i)
    gradients[i] = state.values[i] * 0.1F + std::sin(static_cast<float>(state.step * 31 + worker * 7 + i));
}

inline WorkerState fresh(const OptimizerSpec& spec) {
  WorkerState state{Flat(floats), Optimizer(spec, {0, floats}, {})};
  for (std::size_t i = 0; i < floats; ++i) state.values[i] = static_cast<float>(i) / 100;
  return state;
}

// Runs a worker to `steps`, joining again whenever a peer is lost. Returns its final values.
inline Flat run_worker(Exchange& exchange, const OptimizerSpec& spec, std::uint32_t worker,
                       std::uint64_t steps, const std::function<void(std::uint64_t)>& after = {},
                       std::uint64_t checkpoint_every = 0) {
  WorkerState state = fresh(spec);
  auto joined = exchange.join(state);
  EXPECT_TRUE(joined) << joined.error().what;
  while (joined && state.step < steps) {
    fill(exchange.gradients(state.step), state, worker);
    StepReport report{.tail = {.loss = 1, .samples = 2}};
    report.checkpoint = checkpoint_every > 0 && (state.step + 1) % checkpoint_every == 0;
    const auto outcome = exchange.step(state, report);
    if (!outcome) {
      EXPECT_EQ(outcome.error().code, ErrorCode::unavailable) << outcome.error().what;
      joined = exchange.join(state);
      EXPECT_TRUE(joined) << joined.error().what;
      continue;
    }
    if (after) after(state.step);
  }
  exchange.leave(true);
  return state.values;
}

// What a synchronous run must give: the sum in the order of the workers, applied by the optimizer.
inline Flat synchronous_reference(const OptimizerSpec& spec, std::uint32_t workers, std::uint64_t steps) {
  WorkerState state = fresh(spec);
  std::vector<float> sum(floats), part(floats);
  while (state.step < steps) {
    fill(sum, state, 0);
    for (std::uint32_t w = 1; w < workers; ++w) {
      fill(part, state, w);
      for (std::size_t i = 0; i < floats; ++i) sum[i] += part[i];
    }
    state.optimizer.apply(state.step, 1.0F / (2.0F * static_cast<float>(workers)), state.values, sum);
    ++state.step;
  }
  return state.values;
}

}  // namespace slipway::train
