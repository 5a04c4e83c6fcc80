#pragma once
// What the processes of each toolkit get. One row each; toolkits.cpp chooses.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "domain/gang.h"
#include "domain/layout.h"
#include "launch/launch.h"

namespace slipway::launch {

using Files = std::vector<std::pair<std::string, std::string>>;       // name, content
using Words = std::vector<std::pair<std::string_view, std::string>>;  // {name} in commands, what it becomes

struct Gang {
  const TaskSpec& task;
  const Placement& placement;
  std::vector<Member> members;

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(placement.nodes.size()); }
  // All that compute, those that a launcher starts included; without those of nodes that have left.
  std::uint32_t world_size() const;
  StreamNames names(std::uint32_t rank) const;
  std::string address(std::uint32_t node) const { return placement.nodes[node].address; }
  // host:port of a port of a node, [::1]:port for IPv6. Port 0 while none is found yet.
  std::string endpoint(std::uint32_t node, std::uint32_t port) const;
  std::uint16_t port(std::uint32_t node, std::uint32_t port) const;
};

struct Row {
  // How many ports a node must find.
  std::uint32_t (*ports)(const Gang& gang, std::uint32_t node);
  // Of the ports of its node, those that the process with this rank will listen on.
  std::vector<std::uint16_t> (*listens)(const Gang& gang, std::uint32_t rank);
  // What the process with this rank finds in its environment and may use in its command.
  void (*add)(const Gang& gang, std::uint32_t rank, Environment& environment, Words& words);
  // The command as it is started, where the toolkit has a launcher of its own.
  std::vector<std::string> (*wrap)(const Gang& gang, std::uint32_t rank, std::vector<std::string> argv);
  // What every node finds in the attempt's folder; a `hostfile` becomes SLIPWAY_HOSTFILE.
  Files (*files)(const Gang& gang);
};

const Row& row_of(Toolkit toolkit);

extern const Row tensorflow;
extern const Row torch;
extern const Row jax;
extern const Row mpi;
extern const Row horovod;
extern const Row hostfile;
extern const Row ssh;

// For rows that have no such thing.
std::uint32_t no_ports(const Gang& gang, std::uint32_t node);
std::uint32_t one_port_on_the_first(const Gang& gang, std::uint32_t node);
std::vector<std::uint16_t> nothing(const Gang& gang, std::uint32_t rank);
std::vector<std::uint16_t> the_first_listens(const Gang& gang, std::uint32_t rank);
std::vector<std::string> as_it_is(const Gang& gang, std::uint32_t rank, std::vector<std::string> argv);
Files no_files(const Gang& gang);

// MASTER_ADDR and MASTER_PORT, where the first process will listen.
void tell_master(const Gang& gang, Environment& environment, Words& words);
// The host file: `host slots=n`, a line a node; hosts are called as `host` says.
std::pair<std::string, std::string> host_file(const Gang& gang, std::string PlacedNode::*host);

// Nodes of one machine have addresses of its loopback: frameworks that look for an interface must be given
// it.
bool is_loopback(std::string_view address);

}  // namespace slipway::launch
