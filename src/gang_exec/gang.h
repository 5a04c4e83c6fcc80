#pragma once
// The nodes of one attempt as its processes know them: from the environment the control plane gives to each.
//
//   SLIPWAY_START_HOSTS         lab-1=127.64.0.1:31001,lab-2=[::1]:31002    in node order
//   SLIPWAY_START_SECRET        what proves that a peer belongs to the attempt; never printed
//   SLIPWAY_NODE                the own node's name
//   SLIPWAY_PROCESSES_PER_NODE  how many processes each node gets; 1 when absent
//   SLIPWAY_ELASTIC_NODES       1:4 for an elastic gang: the fewest and the most
//   SLIPWAY_HOSTFILE            a file with a line `name slots=P` for each node
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gang_exec/environment.h"

namespace slipway::gang_exec {

struct GangNode {
  std::string name;
  std::string address;
  std::uint16_t port = 0;
  friend bool operator==(const GangNode&, const GangNode&) = default;
};

struct ElasticNodes {
  std::uint32_t min = 1, max = 1;
  friend bool operator==(const ElasticNodes&, const ElasticNodes&) = default;
};

struct Gang {
  std::vector<GangNode> nodes;  // never empty
  std::size_t own = 0;          // which of them this is
  std::string secret;
  std::uint32_t processes_per_node = 1;
  std::string hostfile;
  std::optional<ElasticNodes> elastic;
  bool trusts_network = false;  // SLIPWAY_TRUSTED_NETWORK=1: nothing is encrypted
  bool shares_machine = false;  // two of its nodes are on one

  const GangNode& self() const { return nodes[own]; }
  bool is_loopback() const;  // every address is one of the machine itself
};

bool is_loopback(std::string_view address);
Result<std::vector<GangNode>> parse_start_hosts(std::string_view text);
// Error `not_found` when these are not the variables of a gang.
Result<Gang> parse_gang(const Environment& variables);
// By name, address, or either after `user@`. The error lists the names there are.
Result<std::size_t> find_node(const Gang& gang, std::string_view host);

}  // namespace slipway::gang_exec
