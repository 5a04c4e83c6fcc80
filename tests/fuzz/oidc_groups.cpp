// The file of `slipway up --oidc-groups`.
#include "oidc/groups.h"
#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::check_explained(oidc::GroupRules::parse(fuzz::text(data, size)));
  return 0;
}
