#pragma once
// Passwords, kept as Argon2id (RFC 9106): whoever reads the database still has to guess each one at the cost
// of 19 MiB of memory and some 20 ms. Both calls take that long: off the loop, and a bounded number at a
// time.
#include <string>
#include <string_view>

#include "base/result.h"

namespace slipway {

inline constexpr std::size_t password_size_min = 8;
inline constexpr std::size_t password_size_max = 1024;

// With a salt of its own and its costs: $argon2id$v=19$m=19456,t=2,p=1$…
Result<std::string> hash_password(std::string_view password);
// Of an empty `hash` always false, and as slow as for any other: how long it takes does not say who is known.
bool is_password(std::string_view password, const std::string& hash);

}  // namespace slipway
