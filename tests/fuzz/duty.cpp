// What an agent left with the keeper for the next one, as it is in the keeper's journal.
#include "agent/duty.h"
#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Sealer sealer = Sealer::for_now();
  const auto get_sealer = []() -> Result<Sealer> { return sealer; };
  const auto duty = agent::parse_duty(fuzz::text(data, size), get_sealer);
  fuzz::check_explained(duty);
  if (duty) SLIPWAY_CHECK(*agent::parse_duty(*agent::format(*duty, get_sealer), get_sealer) == *duty);
  return 0;
}
