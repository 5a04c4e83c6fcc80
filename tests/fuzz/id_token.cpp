// An id token: with no key it is read as far as its signature; its claims, under a key that anyone has, by
// the tests of oidc.
#include "oidc/id_token.h"
#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<oidc::SigningKey> keys{{"", RsaKey{std::string(256, '\xff'), "\x01\x00\x01"}},
                                           {"", EcKey{std::string(32, '\1'), std::string(32, '\2')}}};
  const auto who =
      oidc::check_id_token(fuzz::text(data, size), keys, {"https://a.example", "slipway", "n", {}});
  if (who) __builtin_trap();  // nobody signed it
  return 0;
}
