// A link to a file of a job: nothing opens but what was signed.
#include "compat/batchai/links.h"
#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Sealer sealer = Sealer::for_now();
  const std::string_view text = fuzz::text(data, size);
  const TimePoint now(Duration(1'700'000'000'000'000));
  const TimePoint expiry = now + 1h;
  SLIPWAY_CHECK(!batchai::open_link(text, now, sealer));
  SLIPWAY_CHECK(!batchai::open_link("/batchai/download/" + std::string(text), now, sealer));
  if (text.empty() || text.find('\0') != std::string_view::npos) return 0;
  batchai::Link link{"default", JobId{7}, "stdouterr", std::string(text)};
  const std::string signed_path = batchai::sign_link(link, expiry, sealer);
  SLIPWAY_CHECK(!batchai::open_link(signed_path, expiry + 2s, sealer));
  std::string changed = signed_path;
  changed[changed.size() / 2] ^= 1;
  SLIPWAY_CHECK(!batchai::open_link(changed, now, sealer));
  return 0;
}
