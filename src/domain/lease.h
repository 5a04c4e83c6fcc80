#pragma once
// Leases of nodes: how long what a node runs may continue without contact to the service.
//
// An agent sends a report at every heartbeat; the service acknowledges it. The lease is renewed as of the
// time the acknowledged report was sent, so it ends on the node before the service, which received that
// report later, stops counting on it. The keeper enforces it: what runs under a lease that has ended is
// killed. Only after a margin for clocks whose rates differ, and for the kill itself, may the service start
// it elsewhere. So the processes of two attempts of one task never run at the same time.
//
// Nodes of the service's own machine have no lease: the service sees their processes.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace slipway {

enum class OnLeaseLoss : std::uint8_t {
  stop,  // processes are stopped when the lease ends, and soon start elsewhere
  keep,  // they continue, and the service waits for the node up to the pool's lost_after
};
std::string_view to_string(OnLeaseLoss rule);
std::optional<OnLeaseLoss> parse_on_lease_loss(std::string_view text);

// Two clocks that differ by 10 % each way, and what is left over for the kill: 5 s of a lease are 6.5 s of
// waiting.
constexpr Duration given_up_after(Duration lease) { return lease + lease * 3 / 10; }
// The longest lease that is over by then.
constexpr Duration lease_within(Duration given_up) { return given_up * 10 / 13; }

}  // namespace slipway
