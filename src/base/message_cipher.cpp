#include "base/message_cipher.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace slipway {
namespace {

constexpr int message_tag_size = static_cast<int>(MessageCipher::overhead);

std::span<unsigned char> bytes_of(std::string& text) {
  return {reinterpret_cast<unsigned char*>(text.data()), text.size()};
}

}  // namespace

void MessageCipher::FreeContext::operator()(evp_cipher_ctx_st* context) const {
  EVP_CIPHER_CTX_free(context);
}

MessageCipher::MessageCipher(std::string_view key) : context_(EVP_CIPHER_CTX_new()) {
  SLIPWAY_CHECK(context_ != nullptr && key.size() == 32);
  const auto* bytes = reinterpret_cast<const unsigned char*>(key.data());
  SLIPWAY_CHECK(EVP_EncryptInit_ex(context_.get(), EVP_aes_256_gcm(), nullptr, bytes, nullptr) == 1);
}

std::array<unsigned char, 12> MessageCipher::next_nonce() {
  std::array<unsigned char, 12> nonce{};
  const std::uint64_t number = count_++;
  for (std::size_t i = 0; i < sizeof number; ++i) nonce[i] = static_cast<unsigned char>(number >> (8 * i));
  return nonce;
}

void MessageCipher::seal_in_place(unsigned char kind, std::span<unsigned char> message) {
  SLIPWAY_CHECK(message.size() >= overhead);
  const auto nonce = next_nonce();
  const std::span<unsigned char> text = message.first(message.size() - overhead);
  unsigned char* tag = text.data() + text.size();
  int size = 0;
  EVP_CIPHER_CTX* c = context_.get();
  SLIPWAY_CHECK(EVP_EncryptInit_ex(c, nullptr, nullptr, nullptr, nonce.data()) == 1);
  SLIPWAY_CHECK(EVP_EncryptUpdate(c, nullptr, &size, &kind, 1) == 1);
  SLIPWAY_CHECK(EVP_EncryptUpdate(c, text.data(), &size, text.data(), static_cast<int>(text.size())) == 1);
  SLIPWAY_CHECK(EVP_EncryptFinal_ex(c, tag, &size) == 1);
  SLIPWAY_CHECK(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, message_tag_size, tag) == 1);
}

Result<void> MessageCipher::open_in_place(unsigned char kind, std::span<unsigned char> message) {
  const auto broken = [] {
    return fail(ErrorCode::denied, "a message was changed on its way, or is not of this connection");
  };
  if (message.size() < overhead) return broken();
  const auto nonce = next_nonce();
  const std::span<unsigned char> text = message.first(message.size() - overhead);
  unsigned char* tag = text.data() + text.size();
  unsigned char nothing[overhead];
  int size = 0;
  EVP_CIPHER_CTX* c = context_.get();
  if (EVP_DecryptInit_ex(c, nullptr, nullptr, nullptr, nonce.data()) != 1 ||
      EVP_DecryptUpdate(c, nullptr, &size, &kind, 1) != 1 ||
      EVP_DecryptUpdate(c, text.data(), &size, text.data(), static_cast<int>(text.size())) != 1 ||
      EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, message_tag_size, tag) != 1 ||
      EVP_DecryptFinal_ex(c, nothing, &size) != 1)
    return broken();
  return {};
}

std::string MessageCipher::seal(unsigned char kind, std::string_view clear) {
  std::string message;
  message.reserve(clear.size() + overhead);
  message.append(clear).append(overhead, '\0');
  seal_in_place(kind, bytes_of(message));
  return message;
}

Result<std::string> MessageCipher::open(unsigned char kind, std::string_view sealed) {
  std::string message(sealed);
  if (auto opened = open_in_place(kind, bytes_of(message)); !opened) return fail(opened.error());
  message.resize(message.size() - overhead);
  return message;
}

}  // namespace slipway
