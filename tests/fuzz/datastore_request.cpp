// The body of PUT /v1/datastores/{name}.
#include "target.h"
#include "wire/datastore.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = wire::parse_datastore(fuzz::text(data, size));
  fuzz::check_explained(parsed);
  if (parsed) SLIPWAY_CHECK(wire::format(*parsed).find("\"key\"") == std::string::npos);
  return 0;
}
