#pragma once
// Which process of which cluster this is, from whatever launcher started it. Pure: options and environment
// in.
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/exchange/handshake.h"
#include "train/exchange/socket.h"
#include "train/run/options.h"

namespace slipway::train {

struct Cluster {
  enum class Kind { alone, servers, all_reduce };
  Kind kind = Kind::alone;
  bool is_server = false;
  std::uint32_t index = 0;  // among the servers, or among the workers; worker 0 is the chief
  std::uint32_t workers = 1;
  std::vector<Address> servers = {};
  Address master = {};      // where the ranks of an all-reduce meet
  GangKey key = {};         // what its processes authenticate each other with
  std::string source = {};  // for the log: TF_CONFIG, --ps-hosts, RANK, SLIPWAY_RANK, nothing
};

// In order: --ps-hosts/--worker-hosts, TF_CONFIG, RANK and WORLD_SIZE, SLIPWAY_RANK and SLIPWAY_WORLD_SIZE.
// The key is SLIPWAY_GANG_KEY; SLIPWAY_TRUSTED_NETWORK=1 says that nothing needs to be encrypted.
Result<Cluster> discover_cluster(const Options& options, const Environment& environment);

}  // namespace slipway::train
