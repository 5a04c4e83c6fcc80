#pragma once
// Network interfaces by the addresses they carry.
#include <string>

namespace slipway::gang_exec {

// "eth0" for the interface that has the address, "lo" for every loopback one; empty when none has it.
std::string interface_of(const std::string& address);

}  // namespace slipway::gang_exec
