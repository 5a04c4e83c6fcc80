#pragma once
// What this machine is and has.
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "domain/job.h"

namespace slipway::agent {

// How many GPUs this process can use; their indices count from 0, as CUDA's do. SLIPWAY_TEST_GPUS=4 in the
// environment stands for four, on machines that have none.
std::uint32_t detect_gpus();
// Cores this process may use, memory, GPUs.
Resources detect_resources();
std::string host_name();
std::string boot_id();  // another one after each start of the machine
// The address this machine uses towards another; 127.0.0.1 when there is no way to it. Sends nothing.
std::string address_towards(const std::string& host, std::uint16_t port);

// The last lines of a file, as many as are worth telling; "" where it cannot be read.
std::string last_lines_of(const std::string& path);

// When anything in a folder was last changed; nullopt where there is nothing.
std::optional<TimePoint> newest_change(const std::string& folder);

}  // namespace slipway::agent
