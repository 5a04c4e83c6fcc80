// The worker's side of an all-reduce: everyone adds up everyone's gradients and applies them alike.
#include <array>
#include <cmath>
#include <cstring>

#include "base/log.h"
#include "train/exchange/group.h"

namespace slipway::train {
namespace {

constexpr std::size_t piece_floats = 2048;  // of gradients: with their values they fit the first cache

class AllReduceExchange final : public Exchange {
 public:
  AllReduceExchange(AllReduceOptions options, std::unique_ptr<Rendezvous> rendezvous)
      : options_(std::move(options)), rendezvous_(std::move(rendezvous)) {}

  Result<void> join(WorkerState& state) override {
    group_.reset();
    const Steady::time_point deadline = Steady::now() + options_.wait_limit.timeout;
    for (;;) {
      auto group = rendezvous_->form(state.step);
      if (!group) return fail(group.error());
      group_ = std::move(*group);
      auto shared = group_->share(state.values);
      if (shared) shared = group_->share(state.optimizer.state());
      if (shared) {
        state.step = group_->table().step;
        return {};
      }
      group_.reset();
      const bool stopped = options_.wait_limit.stop != nullptr && options_.wait_limit.stop->requested();
      if (shared.error().code != ErrorCode::unavailable || stopped || Steady::now() >= deadline)
        return shared;
    }
  }

  std::span<float> gradients(std::uint64_t) override { return group_->own().subspan(tail_floats); }

  Result<StepOutcome> step(WorkerState& state, const StepReport& report) override {
    std::memcpy(group_->own().data(), &report.tail, sizeof report.tail);
    const auto sum = group_->reduce(report.meanwhile);
    if (!sum) return fail(sum.error());
    std::array<float, piece_floats> buffer;
    StepOutcome outcome{.tail = read_tail(sum->from(0, std::span(buffer).first(tail_floats)).data())};
    outcome.finish = outcome.tail.finish > 0;
    outcome.stop = outcome.tail.stop > 0;
    outcome.not_finite = !std::isfinite(outcome.tail.loss);
    outcome.applied = !outcome.finish && !outcome.not_finite;
    if (outcome.applied) {
      const float samples = static_cast<float>(options_.batch) * static_cast<float>(options_.ranks);
      for (std::size_t at = tail_floats; at < sum->size();) {
        const std::span<const float> piece = sum->from(at, buffer);
        const std::size_t begin = at - tail_floats;
        state.optimizer.apply_part(state.step, 1.0F / samples, begin,
                                   std::span(state.values).subspan(begin, piece.size()), piece);
        at += piece.size();
      }
      ++state.step;
    }
    return outcome;
  }

 private:
  AllReduceOptions options_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::unique_ptr<Group> group_;
};

}  // namespace

Result<std::unique_ptr<Exchange>> make_all_reduce_exchange(AllReduceOptions options) {
  auto rendezvous = Rendezvous::open(options);
  if (!rendezvous) return fail(rendezvous.error());
  return std::unique_ptr<Exchange>(
      std::make_unique<AllReduceExchange>(std::move(options), std::move(*rendezvous)));
}

}  // namespace slipway::train
