// The body of POST /v1/login/browser.
#include "target.h"
#include "wire/users.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::check_explained(wire::parse_browser_login(fuzz::text(data, size)));
  return 0;
}
