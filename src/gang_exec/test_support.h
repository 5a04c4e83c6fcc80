#pragma once
// A gang as the tests write it.
#include <string>
#include <vector>

#include "gang_exec/gang.h"

namespace slipway::gang_exec {

using Words = std::vector<std::string>;

inline Gang gang_of(const std::string& hosts, std::uint32_t each, const std::string& own = "") {
  Gang gang;
  gang.nodes = parse_start_hosts(hosts).value();
  gang.processes_per_node = each;
  gang.secret = "0123456789abcdef";
  if (!own.empty()) gang.own = find_node(gang, own).value();
  return gang;
}

}  // namespace slipway::gang_exec
