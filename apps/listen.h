#pragma once
// Where the service listens, and how others reach it there.
#include <cstdint>
#include <string>

#include "base/result.h"

namespace slipway {

bool is_loopback(const std::string& address);

struct Listen {
  std::string host;
  std::uint16_t port = 0;
  bool with_tls = false;
  std::string certificate{}, key{};
};

// ADDRESS:PORT, with an IPv6 address in brackets; port 0 is any free one. With TLS as UpOptions has it.
Result<Listen> parse_listen(const std::string& given);

// How other machines most likely reach this one: by the address it has towards them, else by its name.
std::string own_address();

}  // namespace slipway
