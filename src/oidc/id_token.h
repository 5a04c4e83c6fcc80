#pragma once
// OpenID Connect, what there is to read and to check: a provider's discovery document, its keys, and the id
// token by which it says who somebody is. Pure, and bounded: all of it comes from elsewhere.
//
// A token is believed when a key of the provider signed it (RS256 or ES256), and it names this issuer, this
// client, the nonce of this sign-in and a time that is not over (OpenID Connect Core, 3.1.3.7).
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/signature.h"

namespace slipway::oidc {

inline constexpr std::size_t document_size_max = 256 * 1024;

struct Discovery {
  std::string issuer;
  std::string authorization_endpoint;
  std::string token_endpoint;
  std::string keys_endpoint;
  std::string device_endpoint;  // empty: the provider has no device flow
};
// Of this issuer: another one's is refused.
Result<Discovery> parse_discovery(std::string_view json, const std::string& issuer);

struct SigningKey {
  std::string id;
  std::variant<RsaKey, EcKey> key;
};
// Keys of other kinds, or for something else than signatures, are left out.
Result<std::vector<SigningKey>> parse_keys(std::string_view json);

struct Expected {
  std::string issuer;
  std::string client_id;
  std::optional<std::string> nonce;  // absent: the flow has none (that of devices)
  TimePoint now{};
};
struct Identity {
  std::string subject;  // what the provider calls the user, for ever
  std::string name;     // what people call the user; empty: the provider does not say
  std::vector<std::string> groups;
};
// `not_found`: no key of this id; the provider may have new ones.
Result<Identity> check_id_token(std::string_view token, const std::vector<SigningKey>& keys,
                                const Expected& expected);

}  // namespace slipway::oidc
