#pragma once
// Keeps secrets from whoever reads the database, a backup or a log: what is written down is sealed with a key
// that lies in a file of its own.
//
// AES-256-GCM with a random nonce; the text begins with "sealed:" and is base64. Sealing the same text twice
// gives two different ones.
#include <array>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slipway {

class Sealer {
 public:
  // Makes the key, readable only by its owner, when the file is not there.
  static Result<Sealer> open(const std::string& key_file);
  // With a key that nobody else has and that is forgotten with the object.
  static Sealer for_now();

  std::string seal(std::string_view clear) const;
  Result<std::string> unseal(std::string_view sealed) const;
  // HMAC-SHA-256 in hexadecimal: what only the holder of the key can have written.
  std::string sign(std::string_view text) const;

 private:
  using Key = std::array<unsigned char, 32>;
  explicit Sealer(const Key& key) : key_(key) {}
  Key key_;
};

bool is_sealed(std::string_view text);

}  // namespace slipway
