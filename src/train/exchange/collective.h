#pragma once
// All-reduce and broadcast over TCP between machines.
//
// Two ways: a ring (every machine sends 2(n-1)/n of the array whatever n is: best for large arrays), and
// halving and doubling (log2 n rounds: best for small ones, and where n is a power of two). Every element is
// added up in one place and handed on, so all machines end with the same bits.
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/exchange/connection.h"
#include "train/exchange/socket.h"

namespace slipway::train {

struct Peers {
  std::uint32_t rank = 0;
  std::vector<Connection> sockets;  // one per peer; the own place is empty
  std::vector<std::string> names;
  WaitLimit wait_limit{};

  std::uint32_t count() const { return static_cast<std::uint32_t>(sockets.size()); }
};

Result<void> all_reduce_ring(Peers& peers, std::span<float> values);
Result<void> all_reduce_halving(Peers& peers, std::span<float> values);  // count() must be a power of two
// Whichever is faster for this many peers and floats.
Result<void> all_reduce(Peers& peers, std::span<float> values);
Result<void> broadcast(Peers& peers, std::span<float> values, std::uint32_t from);

// What they compute, in one process: element by element over the arrays, which all become the sum.
void all_reduce_reference(std::vector<std::vector<float>>& arrays);

}  // namespace slipway::train
