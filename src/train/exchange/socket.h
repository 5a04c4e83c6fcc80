#pragma once
// TCP between the processes of a run. Every wait has a deadline and names the peer when it passes.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "train/exchange/stop.h"

namespace slipway::train {

struct Address {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const Address&, const Address&) = default;
};
// host:port or [v6]:port.
Result<Address> parse_address(std::string_view text);
std::string to_string(const Address& address);

// Error `conflict` when the port is taken. An empty host listens on all addresses; port 0 takes a free one.
Result<Fd> listen_on(const Address& address);
Result<std::uint16_t> local_port(int fd);
// The numeric host of the other end.
Result<std::string> remote_host(int fd);
// What is sent there never leaves this machine: both ends are loopback, or have one and the same address.
bool is_same_host(int fd);

// Waits of one process: until when, and what can cut them short.
struct WaitLimit {
  Steady::duration timeout;
  const Stop* stop = nullptr;
};

// Tries again until it works, the time-out passes or a stop is requested. `peer` is for messages.
Result<Fd> connect_to(const Address& address, const std::string& peer, const WaitLimit& wait_limit);

// Waits for `events` on fd. Error `unavailable` when the time is up.
Result<void> wait_for(int fd, short events, const std::string& peer, Steady::time_point deadline,
                      const Stop* stop);

int poll_ms(Steady::time_point deadline);  // at most a minute
void set_socket_options(int fd);           // non-blocking, no delay, closed on exec
Error lost(const std::string& peer, std::string_view how);

}  // namespace slipway::train
