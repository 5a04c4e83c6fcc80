// MPI and Horovod: a launcher on the first node, and on each other one a helper that starts what the launcher
// asks for there, as a part of the same attempt (src/gang_exec). Hosts are called by their nodes' names,
// which only the helper can resolve, so mpirun must ask it even for nodes of the same machine.
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

std::string start_hosts(const Gang& gang) {
  std::string hosts;
  for (std::uint32_t node = 0; node < gang.nodes(); ++node)
    if (!gang.placement.nodes[node].has_left)
      hosts += fmt::format("{}{}={}", hosts.empty() ? "" : ",", gang.placement.nodes[node].name,
                           gang.endpoint(node, 0));
  return hosts;
}

void add_mpi_environment(const Gang& gang, std::uint32_t, Environment& environment, Words&) {
  environment["SLIPWAY_START_HOSTS"] = start_hosts(gang);
  if (shares_machine(gang)) environment["SLIPWAY_SHARED_MACHINE"] = "yes";
  environment["SLIPWAY_START_SECRET"] = gang.placement.secret;
  environment["SLIPWAY_PROCESSES_PER_NODE"] = std::to_string(gang.task.processes_per_node);
  if (gang.task.framework_elastic)
    environment["SLIPWAY_ELASTIC_NODES"] = fmt::format("{}:{}", gang.task.nodes_min, gang.task.nodes);
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

std::vector<std::string> under_ssh(const Gang& gang, std::uint32_t rank, std::vector<std::string> argv) {
  return under("launch-ssh", gang, rank, std::move(argv));
}

// Where the gang may change, its launcher looks up here where the helpers listen.
Files mpi_files(const Gang& gang) {
  Files files{host_file(gang, &PlacedNode::name)};
  if (gang.task.framework_elastic) files.emplace_back("start-hosts", start_hosts(gang));
  return files;
}

}  // namespace

const Row mpi{one_port, its_port, add_mpi_environment, under_mpi, mpi_files};
const Row ssh{one_port, its_port, add_mpi_environment, under_ssh, mpi_files};
const Row horovod{one_port, its_port, add_mpi_environment, under_horovod, mpi_files};

}  // namespace slipway::launch
