#include <cmath>

#include "train/exchange/exchange.h"

namespace slipway::train {
namespace {

class Alone final : public Exchange {
 public:
  Alone(std::size_t floats, std::uint32_t batch) : gradients_(floats), batch_(batch) {}

  Result<void> join(WorkerState&) override { return {}; }
  std::span<float> gradients(std::uint64_t) override { return gradients_; }

  Result<StepOutcome> step(WorkerState& state, const StepReport& report) override {
    StepOutcome outcome{.tail = report.tail,
                        .finish = report.tail.finish > 0,
                        .stop = report.tail.stop > 0,
                        .not_finite = !std::isfinite(report.tail.loss)};
    outcome.applied = !outcome.finish && !outcome.not_finite;
    if (outcome.applied)
      state.optimizer.apply(state.step++, 1.0F / static_cast<float>(batch_), state.values, gradients_);
    return outcome;
  }

 private:
  Flat gradients_;
  std::uint32_t batch_;
};

}  // namespace

std::unique_ptr<Exchange> make_alone(std::size_t floats, std::uint32_t batch) {
  return std::make_unique<Alone>(floats, batch);
}

}  // namespace slipway::train
