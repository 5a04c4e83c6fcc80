#include "base/signature.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <memory>

namespace slipway {
namespace {

template <auto free_it>
struct Free {
  template <class T>
  void operator()(T* it) const {
    free_it(it);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Number = std::unique_ptr<BIGNUM, Free<BN_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Free<OSSL_PARAM_BLD_free>>;
using Parameters = std::unique_ptr<OSSL_PARAM, Free<OSSL_PARAM_free>>;

constexpr std::size_t number_size_max = 1024;  // bytes; 8192 bits
constexpr int rsa_bits_min = 2048;
constexpr std::size_t coordinate_size = 32;

const unsigned char* unsigned_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
Number number(std::string_view text) {
  return Number(BN_bin2bn(unsigned_bytes(text), static_cast<int>(text.size()), nullptr));
}

Key make_key(const char* kind, OSSL_PARAM_BLD* builder) {
  const Parameters parameters(OSSL_PARAM_BLD_to_param(builder));
  const std::unique_ptr<EVP_PKEY_CTX, Free<EVP_PKEY_CTX_free>> context(
      EVP_PKEY_CTX_new_from_name(nullptr, kind, nullptr));
  EVP_PKEY* key = nullptr;
  if (!parameters || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1)
    return nullptr;
  return Key(key);
}

bool verify(EVP_PKEY* key, std::string_view message, std::string_view signature) {
  const std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
  return context && EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
         EVP_DigestVerify(context.get(), unsigned_bytes(signature), signature.size(), unsigned_bytes(message),
                          message.size()) == 1;
}

}  // namespace

bool is_signed(const RsaKey& key, std::string_view message, std::string_view signature) {
  if (key.modulus.size() > number_size_max || key.exponent.size() > sizeof(std::uint64_t)) return false;
  const Builder builder(OSSL_PARAM_BLD_new());
  const Number n = number(key.modulus), e = number(key.exponent);
  if (!builder || !n || !e || BN_num_bits(n.get()) < rsa_bits_min ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1)
    return false;
  const Key made = make_key("RSA", builder.get());
  return made && verify(made.get(), message, signature);
}

bool is_signed(const EcKey& key, std::string_view message, std::string_view signature) {
  if (key.x.size() != coordinate_size || key.y.size() != coordinate_size ||
      signature.size() != 2 * coordinate_size)
    return false;
  const std::string point = "\x04" + key.x + key.y;
  const Builder builder(OSSL_PARAM_BLD_new());
  if (!builder ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) !=
          1)
    return false;
  const Key made = make_key("EC", builder.get());
  if (!made) return false;
  // OpenSSL wants the two numbers as DER.
  const std::unique_ptr<ECDSA_SIG, Free<ECDSA_SIG_free>> pair(ECDSA_SIG_new());
  Number r = number(signature.substr(0, coordinate_size)), s = number(signature.substr(coordinate_size));
  if (!pair || !r || !s || ECDSA_SIG_set0(pair.get(), r.get(), s.get()) != 1) return false;
  static_cast<void>(r.release());  // the pair has them now
  static_cast<void>(s.release());
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(pair.get(), &der);
  if (size <= 0) return false;
  const std::string encoded(reinterpret_cast<const char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return verify(made.get(), message, encoded);
}

}  // namespace slipway
