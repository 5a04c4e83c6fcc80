// The body of PATCH /v1/quotas/….
#include "target.h"
#include "wire/quota.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::check_explained(wire::parse_quota_change(fuzz::text(data, size)));
  return 0;
}
