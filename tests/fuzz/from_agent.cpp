// What a node's agent says to the service.
#include "target.h"
#include "wire/protocol.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = wire::parse_from_agent(fuzz::text(data, size));
  fuzz::check_explained(message);
  if (message)
    fuzz::check_round_trip(
        *message, [](const FromAgent& one) { return wire::format(one); }, wire::parse_from_agent);
  return 0;
}
