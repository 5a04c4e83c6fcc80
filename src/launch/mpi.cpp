// MPI and Horovod: a launcher on the first node, and on each other one a helper that starts what the launcher
// asks for there, as a part of the same attempt (src/remote). Hosts are called by their nodes' names, which
// only the helper can resolve, so mpirun must ask it even for nodes of the same machine.
#include <fmt/format.h>

#include <set>

#include "launch/toolkits.h"

namespace slipway::launch {
namespace {

std::uint32_t one_port(const Gang&, std::uint32_t) { return 1; }
std::vector<std::uint16_t> its_port(const Gang& gang, std::uint32_t rank) {
  return {gang.port(gang.members[rank].node, 0)};
}

bool shares_machine(const Gang& gang) {
  std::set<std::string> hosts;
  for (const PlacedNode& node : gang.placement.nodes)
    if (!hosts.insert(node.host).second) return true;
  return false;
}

void tell(const Gang& gang, std::uint32_t, Environment& environment, Words&) {
  std::string hosts;
  for (std::uint32_t node = 0; node < gang.nodes(); ++node)
    hosts += fmt::format("{}{}={}", hosts.empty() ? "" : ",", gang.placement.nodes[node].name,
                         gang.endpoint(node, 0));
  environment["SLIPWAY_START_HOSTS"] = hosts;
  if (shares_machine(gang)) environment["SLIPWAY_SHARED_MACHINE"] = "yes";
  environment["SLIPWAY_START_SECRET"] = gang.placement.secret;
  environment["SLIPWAY_PROCESSES_PER_NODE"] = std::to_string(gang.task.processes_per_node);
}

std::vector<std::string> under(std::string_view verb, const Gang& gang, std::uint32_t rank,
                               std::vector<std::string> argv) {
  if (gang.members[rank].node > 0) return {std::string(own_program), "node", "serve-starts"};
  std::vector<std::string> wrapped{std::string(own_program), "node", std::string(verb), "--"};
  wrapped.insert(wrapped.end(), argv.begin(), argv.end());
  return wrapped;
}
std::vector<std::string> under_mpi(const Gang& gang, std::uint32_t rank, std::vector<std::string> argv) {
  return under("launch-mpi", gang, rank, std::move(argv));
}
std::vector<std::string> under_horovod(const Gang& gang, std::uint32_t rank, std::vector<std::string> argv) {
  return under("launch-horovod", gang, rank, std::move(argv));
}

std::string hosts(const Gang& gang) { return host_lines(gang, &PlacedNode::name); }

}  // namespace

const Row mpi{one_port, its_port, tell, under_mpi, hosts};
const Row horovod{one_port, its_port, tell, under_horovod, hosts};

}  // namespace slipway::launch
