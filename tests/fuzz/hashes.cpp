// The body that asks which contents are missing: what is accepted becomes names of files.
#include "base/sha256.h"
#include "target.h"
#include "wire/records.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto hashes = wire::parse_hashes(fuzz::text(data, size));
  fuzz::check_explained(hashes);
  if (hashes)
    for (const std::string& hash : *hashes) SLIPWAY_CHECK(is_sha256_hex(hash));
  return 0;
}
