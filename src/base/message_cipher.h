#pragma once
// Encrypts the messages of one direction of a connection: AES-256-GCM with the number of the message as the
// nonce. A message that was changed, repeated, left out or moved does not open. Each connection and each
// direction has a key of its own, made of a shared secret and of what both sides said first (hmac_sha256).
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

struct evp_cipher_ctx_st;

namespace slipway {

class MessageCipher {
 public:
  static constexpr std::size_t overhead = 16;  // bytes that a message grows by

  explicit MessageCipher(std::string_view key);  // 32 bytes

  // `kind` is not hidden, and has to be the same on both sides.
  std::string seal(unsigned char kind, std::string_view clear);
  Result<std::string> open(unsigned char kind, std::string_view sealed);

  // The same where the message lies: its last `overhead` bytes are the tag's, written by one, read by the
  // other. What open_in_place() leaves after an error is not to be looked at.
  void seal_in_place(unsigned char kind, std::span<unsigned char> message);
  Result<void> open_in_place(unsigned char kind, std::span<unsigned char> message);

 private:
  std::array<unsigned char, 12> next_nonce();

  struct FreeContext {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  std::unique_ptr<evp_cipher_ctx_st, FreeContext> context_;  // has the key
  std::uint64_t count_ = 0;
};

}  // namespace slipway
