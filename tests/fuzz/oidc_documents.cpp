// The documents of a provider: discovery, and its keys, which are then used.
#include "oidc/id_token.h"
#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text(data, size);
  fuzz::check_explained(oidc::parse_discovery(text, "https://a.example"));
  const auto keys = oidc::parse_keys(text);
  fuzz::check_explained(keys);
  if (!keys) return 0;
  for (const oidc::SigningKey& key : *keys) {
    if (const auto* rsa = std::get_if<RsaKey>(&key.key)) static_cast<void>(is_signed(*rsa, "text", text));
    if (const auto* ec = std::get_if<EcKey>(&key.key))
      static_cast<void>(is_signed(*ec, "text", std::string(64, '\1')));
  }
  return 0;
}
