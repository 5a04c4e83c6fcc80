#pragma once
// Ports that processes of an attempt will listen on, kept free for them until they start.
//
// Outside the range from which the kernel gives out ports by itself, so that no outgoing connection takes one
// in between. While a lease is held no other agent of this machine leases the same port: each holds a name
// among the abstract sockets, which go with their holder.
#include <cstdint>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "base/result.h"

namespace slipway::agent {

class PortLease {
 public:
  static Result<PortLease> take(std::uint32_t count, Random& random);
  // The lowest that are free, from `first` on.
  static Result<PortLease> take_from(std::uint16_t first, std::uint32_t count);

  const std::vector<std::uint16_t>& ports() const { return ports_; }
  // Lets the processes bind them; the lease itself continues.
  void open() { sockets_.clear(); }

 private:
  bool add(std::uint16_t port);

  std::vector<std::uint16_t> ports_;
  std::vector<Fd> sockets_;  // bound, so that nobody else can
  std::vector<Fd> names_;
};

// Whether some program listens on it, on whatever address.
bool is_listened_on(std::uint16_t port);

}  // namespace slipway::agent
