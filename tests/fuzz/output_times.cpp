// The list of times beside the streams of a process, which the process itself may write to.
#include "domain/output_times.h"
#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const OutputTime& entry : parse_output_times(fuzz::text(data, size)))
    SLIPWAY_CHECK(entry.stream == 1 || entry.stream == 2);
  return 0;
}
