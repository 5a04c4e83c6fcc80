#include "base/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/check.h"

namespace slipway {

std::string hmac_sha256(std::string_view key, std::string_view message) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  SLIPWAY_CHECK(HMAC(EVP_sha256(), key.empty() ? "" : key.data(), static_cast<int>(key.size()),
                     reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest,
                     &size) != nullptr);
  return {reinterpret_cast<const char*>(digest), size};
}

bool is_equal_in_constant_time(std::string_view left, std::string_view right) {
  if (left.size() != right.size()) return false;
  return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace slipway
