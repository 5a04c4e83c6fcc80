#include "oidc/id_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/encoding.h"
#include "wire/document.h"

namespace slipway::oidc {
namespace {

using wire::Value;

constexpr std::size_t token_size_max = 64 * 1024;
constexpr std::size_t keys_max = 100, groups_max = 1'000;
constexpr Duration clocks_differ = std::chrono::minutes(1);

Error refused(std::string why) {
  return {ErrorCode::denied, "the id token of the provider is refused: " + std::move(why), "sign in again"};
}

Result<Value> read_part(std::string_view part, std::string_view what) {
  const auto text = parse_base64url(part);
  if (!text) return fail(refused(fmt::format("its {} is not base64url", what)));
  auto json = wire::parse_json(*text, what);
  if (!json || json->kind != Value::Kind::map) return fail(refused(fmt::format("its {} is not JSON", what)));
  return json;
}

bool is_web_address(const std::string& text) {
  return text.starts_with("https://") || text.starts_with("http://");
}

std::optional<SigningKey> read_key(const Value& key) {
  if (const std::string use = key.text_at("use"); !use.empty() && use != "sig") return std::nullopt;
  const auto number = [&](const char* name) { return parse_base64url(key.text_at(name)).value_or(""); };
  const std::string kind = key.text_at("kty");
  if (kind == "RSA") return SigningKey{key.text_at("kid"), RsaKey{number("n"), number("e")}};
  if (kind == "EC" && key.text_at("crv") == "P-256")
    return SigningKey{key.text_at("kid"), EcKey{number("x"), number("y")}};
  return std::nullopt;
}

// The kind of the key says how it signs: what the token says has to agree, and never decides.
bool is_signed_by(const SigningKey& key, const std::string& algorithm, std::string_view message,
                  std::string_view signature) {
  if (const auto* rsa = std::get_if<RsaKey>(&key.key))
    return algorithm == "RS256" && is_signed(*rsa, message, signature);
  return algorithm == "ES256" && is_signed(std::get<EcKey>(key.key), message, signature);
}

Result<void> check_signature(std::string_view token, std::string_view signature, const Value& header,
                             const std::vector<SigningKey>& keys) {
  const std::string algorithm = header.text_at("alg"), id = header.text_at("kid");
  if (algorithm != "RS256" && algorithm != "ES256")
    return fail(refused(fmt::format("it is signed by '{}', not by RS256 or ES256", algorithm.substr(0, 20))));
  bool is_known = false;
  for (const SigningKey& key : keys) {
    if (!id.empty() && key.id != id) continue;
    is_known = true;
    if (is_signed_by(key, algorithm, token, signature)) return {};
  }
  if (!is_known)
    return fail(ErrorCode::not_found, fmt::format("the provider has no key '{}'", id.substr(0, 100)), "");
  return fail(refused("its signature is not the provider's"));
}

std::optional<TimePoint> time_of(const Value& claims, std::string_view name) {
  const auto seconds = claims.number_at(name);
  constexpr double year_9999 = 253'402'300'799;
  if (!seconds || !(*seconds >= 0 && *seconds <= year_9999)) return std::nullopt;
  return TimePoint(std::chrono::seconds(static_cast<std::int64_t>(*seconds)));
}

Result<void> check_claims(const Value& claims, const Expected& expected) {
  if (claims.text_at("iss") != expected.issuer) return fail(refused("it is another issuer's"));
  const Value& audience = claims.at("aud");
  bool is_for_us = audience.kind == Value::Kind::list ? false : audience.scalar() == expected.client_id;
  for (const Value& one : audience.items) is_for_us = is_for_us || one.scalar() == expected.client_id;
  if (!is_for_us) return fail(refused("it is for another client"));
  if (const std::string party = claims.text_at("azp"); !party.empty() && party != expected.client_id)
    return fail(refused("it was given to another client"));
  const auto expires = time_of(claims, "exp");
  if (!expires || *expires + clocks_differ <= expected.now) return fail(refused("it has expired"));
  if (const auto issued = time_of(claims, "iat"); !issued || *issued - clocks_differ > expected.now)
    return fail(refused("it was issued in the future: see to the clocks"));
  if (const auto from = time_of(claims, "nbf"); from && *from - clocks_differ > expected.now)
    return fail(refused("it is not good yet"));
  if (expected.nonce && claims.text_at("nonce") != *expected.nonce)
    return fail(refused("it belongs to another sign-in"));
  if (claims.text_at("sub").empty()) return fail(refused("it names nobody"));
  return {};
}

}  // namespace

Result<Discovery> parse_discovery(std::string_view json, const std::string& issuer) {
  const auto broken = [&](const std::string& why) {
    return fail(ErrorCode::unavailable,
                fmt::format("the discovery document of {} cannot be used: {}", issuer, why),
                "check --oidc-issuer");
  };
  if (json.size() > document_size_max) return broken("it is too large");
  const auto document = wire::parse_json(json, "the discovery document");
  if (!document || document->kind != Value::Kind::map) return broken("it is not JSON");
  Discovery discovery{document->text_at("issuer"), document->text_at("authorization_endpoint"),
                      document->text_at("token_endpoint"), document->text_at("jwks_uri"),
                      document->text_at("device_authorization_endpoint")};
  if (discovery.issuer != issuer)
    return broken(fmt::format("it is that of '{}'", discovery.issuer.substr(0, 200)));
  for (const std::string& endpoint :
       {discovery.authorization_endpoint, discovery.token_endpoint, discovery.keys_endpoint})
    if (!is_web_address(endpoint)) return broken("an endpoint is missing");
  // What goes in clear where the issuer does not, is not the issuer's.
  if (issuer.starts_with("https://") &&
      (!discovery.token_endpoint.starts_with("https://") || !discovery.keys_endpoint.starts_with("https://")))
    return broken("an endpoint has no https");
  return discovery;
}

Result<std::vector<SigningKey>> parse_keys(std::string_view json) {
  const auto broken = [](const std::string& why) {
    return fail(ErrorCode::unavailable, "the keys of the provider cannot be used: " + why, "try again later");
  };
  if (json.size() > document_size_max) return broken("they are too large");
  const auto document = wire::parse_json(json, "the keys");
  if (!document || document->kind != Value::Kind::map) return broken("they are not JSON");
  std::vector<SigningKey> keys;
  for (const Value& item : document->items_at("keys")) {
    if (keys.size() == keys_max) break;
    if (item.kind != Value::Kind::map) continue;
    if (auto key = read_key(item)) keys.push_back(std::move(*key));
  }
  if (keys.empty()) return broken("none is of a kind that is known");
  return keys;
}

Result<Identity> check_id_token(std::string_view token, const std::vector<SigningKey>& keys,
                                const Expected& expected) {
  if (token.size() > token_size_max) return fail(refused("it is too large"));
  const std::size_t first = token.find('.');
  const std::size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos)
    return fail(refused("it does not have three parts"));
  const auto header = read_part(token.substr(0, first), "header");
  if (!header) return fail(header.error());
  const auto signature = parse_base64url(token.substr(second + 1));
  if (!signature) return fail(refused("its signature is not base64url"));
  // Nothing of the claims is looked at before.
  if (auto sound = check_signature(token.substr(0, second), *signature, *header, keys); !sound)
    return fail(sound.error());
  const auto claims = read_part(token.substr(first + 1, second - first - 1), "claims");
  if (!claims) return fail(claims.error());
  if (auto sound = check_claims(*claims, expected); !sound) return fail(sound.error());
  Identity identity{claims->text_at("sub"), claims->text_at("preferred_username"), {}};
  if (identity.name.empty() && claims->is_true_at("email_verified")) identity.name = claims->text_at("email");
  for (const Value& group : claims->items_at("groups"))
    if (identity.groups.size() < groups_max) identity.groups.push_back(group.scalar());
  return identity;
}

}  // namespace slipway::oidc
