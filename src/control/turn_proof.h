#pragma once
// Proof that the service itself sent a node the number of a turn: a node that makes numbers up cannot make
// the service believe that it has lost turns.
#include <cstdint>
#include <string>

#include "base/encoding.h"
#include "base/hmac.h"

namespace slipway::control {

// `key` never leaves the service's database.
inline std::string turn_proof(const std::string& key, std::uint64_t turn) {
  return key.empty() ? std::string()
                     : format_hex(hmac_sha256(key, "turn " + std::to_string(turn)).substr(0, 16));
}

}  // namespace slipway::control
