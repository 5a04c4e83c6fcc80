#include "oidc/id_token.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <functional>
#include <memory>

#include "base/encoding.h"

namespace slipway::oidc {
namespace {

const TimePoint now{std::chrono::hours(1'000)};
const Expected expected{"https://accounts.example", "slipway", "n-1", now};

// A key of a provider, with which tests sign.
class Signer {
 public:
  static Signer rsa() { return Signer(EVP_RSA_gen(2048)); }
  static Signer ec() { return Signer(EVP_EC_gen("P-256")); }

  bool is_rsa() const { return EVP_PKEY_is_a(key_.get(), "RSA") == 1; }
  SigningKey key(const std::string& id) const {
    if (is_rsa()) return {id, RsaKey{number(OSSL_PKEY_PARAM_RSA_N), number(OSSL_PKEY_PARAM_RSA_E)}};
    return {id, EcKey{number(OSSL_PKEY_PARAM_EC_PUB_X, 32), number(OSSL_PKEY_PARAM_EC_PUB_Y, 32)}};
  }
  std::string token(const std::string& header, const std::string& claims) const {
    const std::string signed_part = format_base64url(header) + "." + format_base64url(claims);
    return signed_part + "." + format_base64url(sign(signed_part));
  }

 private:
  explicit Signer(EVP_PKEY* key) : key_(key, EVP_PKEY_free) { EXPECT_NE(key, nullptr); }
  std::string number(const char* name, int size = 0) const {
    BIGNUM* value = nullptr;
    EXPECT_EQ(EVP_PKEY_get_bn_param(key_.get(), name, &value), 1);
    std::string bytes(static_cast<std::size_t>(size > 0 ? size : BN_num_bytes(value)), '\0');
    BN_bn2binpad(value, reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
    BN_free(value);
    return bytes;
  }
  std::string sign(const std::string& text) const {
    const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    EXPECT_EQ(EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()), 1);
    std::string made(1024, '\0');
    std::size_t size = made.size();
    EXPECT_EQ(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(made.data()), &size,
                             reinterpret_cast<const unsigned char*>(text.data()), text.size()),
              1);
    made.resize(size);
    if (is_rsa()) return made;
    const unsigned char* at = reinterpret_cast<const unsigned char*>(made.data());
    ECDSA_SIG* pair = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(made.size()));
    std::string plain(64, '\0');
    auto* bytes = reinterpret_cast<unsigned char*>(plain.data());
    BN_bn2binpad(ECDSA_SIG_get0_r(pair), bytes, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(pair), bytes + 32, 32);
    ECDSA_SIG_free(pair);
    return plain;
  }
  std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key_;
};

std::string claims(const std::string& more = {}) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  return fmt::format(
      R"({{"iss":"https://accounts.example","sub":"17","aud":"slipway","exp":{},"iat":{},"nonce":"n-1",)"
      R"("preferred_username":"ana","groups":["research","staff"]{}}})",
      seconds + 300, seconds, more);
}
std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(IdToken, OneOfTheProviderIsBelieved) {
  for (const bool is_rsa : {true, false}) {
    const Signer signer = is_rsa ? Signer::rsa() : Signer::ec();
    const std::string header = fmt::format(R"({{"alg":"{}","kid":"one"}})", is_rsa ? "RS256" : "ES256");
    const auto who = check_id_token(signer.token(header, claims()), {signer.key("one")}, expected);
    ASSERT_TRUE(who) << who.error().what;
    EXPECT_EQ(who->subject, "17");
    EXPECT_EQ(who->name, "ana");
    EXPECT_EQ(who->groups, (std::vector<std::string>{"research", "staff"}));
  }
}

TEST(IdToken, ClaimsThatDoNotFitAreRefused) {
  const Signer signer = Signer::ec();
  const std::string header = R"({"alg":"ES256"})";
  struct Row {
    const char* rule;
    std::string claims;
  };
  const Row rows[] = {
      {"another issuer", with(claims(), "https://accounts.example", "https://evil.example")},
      {"another client", with(claims(), R"("aud":"slipway")", R"("aud":"other")")},
      {"several clients, none this one", with(claims(), R"("aud":"slipway")", R"("aud":["a","b"])")},
      {"given to another client", claims(R"(,"azp":"other")")},
      {"another sign-in", with(claims(), "n-1", "n-2")},
      {"no nonce", with(claims(), R"("nonce":"n-1",)", "")},
      {"expired", with(claims(), R"("exp":3600300)", R"("exp":3599900)")},
      {"no expiry", with(claims(), R"("exp":3600300,)", "")},
      {"an expiry that is none", with(claims(), R"("exp":3600300)", R"("exp":1e300)")},
      {"of the future", with(claims(), R"("iat":3600000)", R"("iat":3600100)")},
      {"not good yet", claims(R"(,"nbf":3600100)")},
      {"nobody", with(claims(), R"("sub":"17")", R"("sub":"")")},
      {"no map", "[]"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    EXPECT_FALSE(check_id_token(signer.token(header, row.claims), {signer.key("one")}, expected));
  }
  EXPECT_TRUE(
      check_id_token(signer.token(header, with(claims(), R"("aud":"slipway")", R"("aud":["a","slipway"])")),
                     {signer.key("one")}, expected));
}

TEST(IdToken, SignaturesOfOthersAreRefused) {
  const Signer rsa = Signer::rsa(), ec = Signer::ec(), other = Signer::ec();
  const std::vector<SigningKey> keys{rsa.key("r"), ec.key("e")};
  struct Row {
    const char* rule;
    std::string token;
  };
  const std::string good = ec.token(R"({"alg":"ES256","kid":"e"})", claims());
  const std::string unsigned_token =
      format_base64url(R"({"alg":"none"})") + "." + format_base64url(claims()) + ".";
  const Row rows[] = {
      {"another key", other.token(R"({"alg":"ES256","kid":"e"})", claims())},
      {"not signed", unsigned_token},
      {"a key of another kind", ec.token(R"({"alg":"ES256","kid":"r"})", claims())},
      {"an algorithm of the other kind", ec.token(R"({"alg":"RS256","kid":"e"})", claims())},
      {"the public key as a secret", ec.token(R"({"alg":"HS256","kid":"e"})", claims())},
      {"other claims", with(good, good.substr(good.find('.') + 1, 40), std::string(40, 'A'))},
      {"a signature cut off", good.substr(0, good.size() - 10)},
      {"two parts", good.substr(0, good.rfind('.'))},
      {"four parts", good + ".x"},
      {"nothing", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    EXPECT_FALSE(check_id_token(row.token, keys, expected));
  }
  EXPECT_TRUE(check_id_token(good, keys, expected));
  EXPECT_EQ(check_id_token(good, {rsa.key("r")}, expected).error().code, ErrorCode::not_found)
      << "the provider may have new keys";
}

TEST(IdToken, AWeakKeyIsNone) {
  RsaKey weak{std::string(64, '\xff'), "\x01\x00\x01"};
  EXPECT_FALSE(is_signed(weak, "text", std::string(64, 'x')));
  EXPECT_FALSE(is_signed(EcKey{std::string(32, '\1'), std::string(32, '\1')}, "text", std::string(64, 'x')))
      << "a point that is not on the curve";
}

TEST(Discovery, IsThatOfTheIssuer) {
  const auto document = [](const std::string& issuer, const std::string& token = "https://a.example/token") {
    return fmt::format(
        R"({{"issuer":"{}","authorization_endpoint":"https://a.example/auth","token_endpoint":"{}",)"
        R"("jwks_uri":"https://a.example/keys"}})",
        issuer, token);
  };
  EXPECT_TRUE(parse_discovery(document("https://a.example"), "https://a.example"));
  EXPECT_FALSE(parse_discovery(document("https://b.example"), "https://a.example"));
  EXPECT_FALSE(parse_discovery(document("https://a.example", "http://a.example/token"), "https://a.example"))
      << "the code would go in clear";
  EXPECT_FALSE(parse_discovery(document("https://a.example", "file:///etc/passwd"), "https://a.example"));
  EXPECT_FALSE(parse_discovery("{}", "https://a.example"));
}

TEST(Keys, OfOtherKindsAndUsesAreLeftOut) {
  const auto keys = parse_keys(
      R"({"keys":[{"kty":"oct","k":"AA"},{"kty":"RSA","use":"enc","n":"AA","e":"AQAB"},{"kty":"EC","crv":"P-521"},)"
      R"({"kty":"RSA","kid":"a","use":"sig","n":"AAEC","e":"AQAB"},7]})");
  ASSERT_TRUE(keys);
  ASSERT_EQ(keys->size(), 1u);
  EXPECT_EQ(keys->front().id, "a");
  EXPECT_FALSE(parse_keys(R"({"keys":[]})"));
}

}  // namespace
}  // namespace slipway::oidc
