// Addresses of services, and text in paths and queries.
#include "net/client.h"
#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text(data, size);
  const auto url = net::parse_url(bytes);
  fuzz::check_explained(url);
  if (url) SLIPWAY_CHECK(!url->host.empty() && url->port != 0);
  if (const auto decoded = net::percent_decode(bytes))
    if (decoded->find('\0') == std::string::npos)
      SLIPWAY_CHECK(net::percent_decode(net::percent_encode(*decoded)) == decoded);
  return 0;
}
