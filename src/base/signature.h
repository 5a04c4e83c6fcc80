#pragma once
// Signatures of others, checked with the public keys they publish (RFC 7518): RSA with SHA-256, and ECDSA on
// P-256 with SHA-256. Numbers are big-endian, as in a JSON Web Key.
#include <string>
#include <string_view>

namespace slipway {

struct RsaKey {
  std::string modulus;
  std::string exponent;
};
struct EcKey {
  std::string x, y;
};

// False, too, for a key that is none, or one of less than 2048 bits.
bool is_signed(const RsaKey& key, std::string_view message, std::string_view signature);
// The signature is r and s, 32 bytes each.
bool is_signed(const EcKey& key, std::string_view message, std::string_view signature);

}  // namespace slipway
