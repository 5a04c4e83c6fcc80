#include "domain/lease.h"

namespace slipway {

std::string_view to_string(OnLeaseLoss rule) { return rule == OnLeaseLoss::stop ? "stop" : "keep"; }

std::optional<OnLeaseLoss> parse_on_lease_loss(std::string_view text) {
  for (const OnLeaseLoss rule : {OnLeaseLoss::stop, OnLeaseLoss::keep})
    if (text == to_string(rule)) return rule;
  return std::nullopt;
}

}  // namespace slipway
