#pragma once
// HMAC-SHA256: proof that who wrote a message knows a key.
#include <string>
#include <string_view>

namespace slipway {

std::string hmac_sha256(std::string_view key, std::string_view message);  // 32 bytes
// How long it takes does not say how much of a guess was right.
bool is_equal_in_constant_time(std::string_view left, std::string_view right);

}  // namespace slipway
