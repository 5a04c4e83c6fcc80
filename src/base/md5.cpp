#include "base/md5.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace slipway {

struct Md5::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Md5::Md5() : state_(std::make_unique<State>()) {
  SLIPWAY_CHECK(EVP_DigestInit_ex(state_->context, EVP_md5(), nullptr) == 1);
}
Md5::~Md5() = default;
Md5::Md5(Md5&&) noexcept = default;
Md5& Md5::operator=(Md5&&) noexcept = default;

void Md5::add(std::string_view bytes) {
  SLIPWAY_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Md5::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  SLIPWAY_CHECK(EVP_DigestFinal_ex(state_->context, digest, &size) == 1);
  return {reinterpret_cast<const char*>(digest), size};
}

}  // namespace slipway
