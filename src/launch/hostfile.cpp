// A host file and DeepSpeed's variables, for frameworks that need no more than the list of hosts.
#include "launch/toolkits.h"

namespace slipway::launch {
namespace {

void add_hostfile_environment(const Gang& gang, std::uint32_t rank, Environment& environment, Words& words) {
  const Member& self = gang.members[rank];
  tell_master(gang, environment, words);
  environment["RANK"] = std::to_string(rank);
  environment["WORLD_SIZE"] = std::to_string(gang.members.size());
  environment["LOCAL_RANK"] = std::to_string(self.local);
  environment["LOCAL_SIZE"] = std::to_string(gang.task.processes_per_node);
  environment["CROSS_RANK"] = std::to_string(self.node);
  environment["CROSS_SIZE"] = std::to_string(gang.nodes());
}

Files hostfile_files(const Gang& gang) { return {host_file(gang, &PlacedNode::address)}; }

}  // namespace

const Row hostfile{one_port_on_the_first, the_first_listens, add_hostfile_environment, as_it_is,
                   hostfile_files};

}  // namespace slipway::launch
