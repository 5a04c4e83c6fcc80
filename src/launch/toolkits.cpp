#include "launch/toolkits.h"

#include <fmt/format.h>

#include <algorithm>

namespace slipway::launch {
namespace {

void tell_nothing(const Gang&, std::uint32_t, Environment&, Words&) {}

const Row none{no_ports, nothing, tell_nothing, as_it_is, no_files};

}  // namespace

std::uint32_t no_ports(const Gang&, std::uint32_t) { return 0; }
std::uint32_t one_port_on_the_first(const Gang&, std::uint32_t node) { return node == 0 ? 1 : 0; }
std::vector<std::uint16_t> nothing(const Gang&, std::uint32_t) { return {}; }
std::vector<std::uint16_t> the_first_listens(const Gang& gang, std::uint32_t rank) {
  if (rank > 0) return {};
  return {gang.port(0, 0)};
}
std::vector<std::string> as_it_is(const Gang&, std::uint32_t, std::vector<std::string> argv) { return argv; }
Files no_files(const Gang&) { return {}; }

const Row& row_of(Toolkit toolkit) {
  switch (toolkit) {
    case Toolkit::tensorflow: return tensorflow;
    case Toolkit::horovod: return horovod;
    case Toolkit::mpi: return mpi;
    case Toolkit::torch: return torch;
    case Toolkit::jax: return jax;
    case Toolkit::hostfile: return hostfile;
    case Toolkit::ssh: return ssh;
    case Toolkit::none: break;
  }
  return none;
}

std::uint32_t Gang::world_size() const {
  if (!has_launcher(task)) return static_cast<std::uint32_t>(members.size());
  const auto left = std::count_if(placement.nodes.begin(), placement.nodes.end(),
                                  [](const PlacedNode& node) { return node.has_left; });
  return (nodes() - static_cast<std::uint32_t>(left)) * task.processes_per_node;
}

StreamNames Gang::names(std::uint32_t rank) const {
  return stream_names(member_name(members[rank], rank), is_named(task, members.size()));
}

std::uint16_t Gang::port(std::uint32_t node, std::uint32_t port) const {
  const auto& ports = placement.nodes[node].ports;
  return port < ports.size() ? ports[port] : 0;
}

std::string Gang::endpoint(std::uint32_t node, std::uint32_t number) const {
  const std::string& host = placement.nodes[node].address;
  const std::uint16_t chosen = port(node, number);
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, chosen)
                                             : fmt::format("[{}]:{}", host, chosen);
}

void tell_master(const Gang& gang, Environment& environment, Words& words) {
  const std::string port = std::to_string(gang.port(0, 0));
  words.emplace_back("master_addr", gang.address(0));
  words.emplace_back("master_port", port);
  environment["MASTER_ADDR"] = gang.address(0);
  environment["MASTER_PORT"] = port;
}

std::pair<std::string, std::string> host_file(const Gang& gang, std::string PlacedNode::*host) {
  std::string lines;
  for (const PlacedNode& node : gang.placement.nodes)
    if (!node.has_left) lines += fmt::format("{} slots={}\n", node.*host, gang.task.processes_per_node);
  return {"hostfile", lines};
}

bool is_loopback(std::string_view address) { return address.starts_with("127.") || address == "::1"; }

}  // namespace slipway::launch
