#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "base/check.h"
#include "base/encoding.h"

namespace slipway {

namespace {

// Looked up once: OpenSSL goes through its providers each time that EVP_sha256() is used.
const EVP_MD* sha256_method() {
  static const EVP_MD* const method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  SLIPWAY_CHECK(method != nullptr);
  return method;
}

}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SLIPWAY_CHECK(EVP_DigestInit_ex(state_->context, sha256_method(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::add(std::string_view bytes) {
  SLIPWAY_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  SLIPWAY_CHECK(EVP_DigestFinal_ex(state_->context, digest, &size) == 1);
  return format_hex({reinterpret_cast<const char*>(digest), size});
}

std::string sha256_bytes(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  SLIPWAY_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, sha256_method(), nullptr) ==
                1);
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string sha256_hex(std::string_view bytes) { return format_hex(sha256_bytes(bytes)); }

bool is_sha256_hex(std::string_view text) {
  if (text.size() != 64) return false;
  for (const char c : text)
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  return true;
}

}  // namespace slipway
