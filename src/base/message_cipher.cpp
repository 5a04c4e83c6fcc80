#include "base/message_cipher.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>

#include "base/check.h"

namespace slipway {
namespace {

constexpr int message_tag_size = static_cast<int>(MessageCipher::overhead);

using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

const unsigned char* read_at(std::string_view text, std::size_t at = 0) {
  return reinterpret_cast<const unsigned char*>(text.data()) + at;
}
unsigned char* write_at(std::string& text, std::size_t at = 0) {
  return reinterpret_cast<unsigned char*>(text.data()) + at;
}

}  // namespace

MessageCipher::MessageCipher(std::string_view key) {
  SLIPWAY_CHECK(key.size() == key_.size());
  std::copy(key.begin(), key.end(), key_.begin());
}

std::array<unsigned char, 12> MessageCipher::next_nonce() {
  std::array<unsigned char, 12> nonce{};
  const std::uint64_t number = count_++;
  for (std::size_t i = 0; i < sizeof number; ++i) nonce[i] = static_cast<unsigned char>(number >> (8 * i));
  return nonce;
}

std::string MessageCipher::seal(unsigned char kind, std::string_view clear) {
  const CipherContext context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  const auto nonce = next_nonce();
  std::string sealed(clear.size() + overhead, '\0');
  const int length = static_cast<int>(clear.size());
  int size = 0;
  int rest = 0;
  SLIPWAY_CHECK(context != nullptr);
  EVP_CIPHER_CTX* c = context.get();
  SLIPWAY_CHECK(EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), nullptr, key_.data(), nonce.data()) == 1);
  SLIPWAY_CHECK(EVP_EncryptUpdate(c, nullptr, &rest, &kind, 1) == 1);
  SLIPWAY_CHECK(EVP_EncryptUpdate(c, write_at(sealed), &size, read_at(clear), length) == 1);
  SLIPWAY_CHECK(EVP_EncryptFinal_ex(c, write_at(sealed, clear.size()), &rest) == 1);
  SLIPWAY_CHECK(
      EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, message_tag_size, write_at(sealed, clear.size())) == 1);
  return sealed;
}

Result<std::string> MessageCipher::open(unsigned char kind, std::string_view sealed) {
  const auto broken = [] {
    return fail(ErrorCode::denied, "a message was changed on its way, or is not of this connection");
  };
  if (sealed.size() < overhead) return broken();
  const CipherContext context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  SLIPWAY_CHECK(context != nullptr);
  const auto nonce = next_nonce();
  const std::size_t length = sealed.size() - overhead;
  std::string tag(sealed.substr(length));
  std::string clear(length, '\0');
  unsigned char nothing[overhead];
  int size = 0;
  EVP_CIPHER_CTX* c = context.get();
  if (EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), nullptr, key_.data(), nonce.data()) != 1 ||
      EVP_DecryptUpdate(c, nullptr, &size, &kind, 1) != 1 ||
      EVP_DecryptUpdate(c, write_at(clear), &size, read_at(sealed), static_cast<int>(length)) != 1 ||
      EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, message_tag_size, tag.data()) != 1 ||
      EVP_DecryptFinal_ex(c, nothing, &size) != 1)
    return broken();
  return clear;
}

}  // namespace slipway
