#pragma once
// HMAC-SHA256: proof that who wrote a message knows a key.
#include <string>
#include <string_view>

namespace slipway {

std::string hmac_sha256(std::string_view key, std::string_view message);  // 32 bytes

}  // namespace slipway
