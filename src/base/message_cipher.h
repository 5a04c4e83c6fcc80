#pragma once
// Encrypts the messages of one direction of a connection: AES-256-GCM with the number of the message as the
// nonce. A message that was changed, repeated, left out or moved does not open. Each connection and each
// direction has a key of its own, made of a shared secret and of what both sides said first (hmac_sha256).
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slipway {

class MessageCipher {
 public:
  static constexpr std::size_t overhead = 16;  // bytes that a message grows by

  explicit MessageCipher(std::string_view key);  // 32 bytes

  // `kind` is not hidden, and has to be the same on both sides.
  std::string seal(unsigned char kind, std::string_view clear);
  Result<std::string> open(unsigned char kind, std::string_view sealed);

 private:
  std::array<unsigned char, 12> next_nonce();

  std::array<unsigned char, 32> key_{};
  std::uint64_t count_ = 0;
};

}  // namespace slipway
