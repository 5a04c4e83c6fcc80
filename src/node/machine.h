#pragma once
// What this machine is and has.
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "domain/job.h"

namespace slipway::node {

// Cores this process may use, memory, GPUs (/dev/nvidia0 …).
Resources detect_resources();
std::string host_name();
std::string boot_id();  // another one after each start of the machine
// The address this machine uses towards another; 127.0.0.1 when there is no way to it. Sends nothing.
std::string address_towards(const std::string& host, std::uint16_t port);

// The last lines of a file, as many as are worth telling; "" where it cannot be read.
std::string last_lines_of(const std::string& path);

// When anything in a folder was last changed; nullopt where there is nothing.
std::optional<TimePoint> newest_change(const std::string& folder);

}  // namespace slipway::node
