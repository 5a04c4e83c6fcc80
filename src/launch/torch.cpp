// PyTorch: the variables of env:// for every process, or one torchrun a node.
#include <fmt/format.h>

#include "launch/toolkits.h"

namespace slipway::launch {
namespace {

// A lost node makes the processes of all others fail once; torchrun counts that.
constexpr const char* elastic_restarts = "10";
// How long those who have met wait for more, in seconds: nodes that are there come within a moment.
constexpr const char* late_nodes = ",last_call_timeout=3";

bool is_python(std::string_view program) {
  return program.substr(program.rfind('/') + 1).starts_with("python");
}

void add_torch_environment(const Gang& gang, std::uint32_t rank, Environment& environment, Words& words) {
  const Member& self = gang.members[rank];
  tell_master(gang, environment, words);
  environment["NODE_RANK"] = environment["GROUP_RANK"] = std::to_string(self.node);
  if (is_loopback(gang.address(self.node)))
    for (const char* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME"})
      environment.emplace(name, "lo");
  if (gang.task.torchrun) return;  // it sets the others itself
  environment["RANK"] = std::to_string(rank);
  environment["WORLD_SIZE"] = std::to_string(gang.members.size());
  environment["LOCAL_RANK"] = std::to_string(self.local);
  environment["LOCAL_WORLD_SIZE"] = std::to_string(gang.task.processes_per_node);
}

// Run by the python of the command, so that it is the one with torch.
std::vector<std::string> wrap(const Gang& gang, std::uint32_t rank, std::vector<std::string> argv) {
  if (!gang.task.torchrun) return argv;
  const bool python = is_python(argv.front());
  const AttemptKey& key = gang.placement.key;
  const bool elastic = gang.task.framework_elastic;
  std::vector<std::string> wrapped{
      python ? argv.front() : "python3",
      "-m",
      "torch.distributed.run",
      "--nnodes",
      elastic ? fmt::format("{}:{}", gang.task.nodes_min, gang.task.nodes) : std::to_string(gang.nodes()),
      "--nproc_per_node",
      std::to_string(gang.task.processes_per_node)};
  if (!elastic) wrapped.insert(wrapped.end(), {"--node_rank", std::to_string(gang.members[rank].node)});
  wrapped.insert(
      wrapped.end(),
      {"--rdzv_id", fmt::format("{}-{}-{}", to_string(key.task.job), gang.placement.task_name, key.attempt),
       "--rdzv_backend", "c10d", "--rdzv_endpoint", gang.endpoint(0, 0), "--max_restarts",
       elastic ? elastic_restarts : "0"});
  // Its default of no redirection fails under Python 3.11 in torch 1.13; a local rank that is not there is
  // the same. Only the first node hosts the rendezvous: the others would try and complain.
  std::string rendezvous = gang.members[rank].node == 0 ? "is_host=1" : "is_host=0";
  if (elastic) rendezvous += late_nodes;
  wrapped.insert(wrapped.end(),
                 {"--redirects", "9:1", "--tee", "9:1", "--log_dir", ".torchrun", "--rdzv_conf", rendezvous});
  if (!python) wrapped.emplace_back("--no_python");
  wrapped.insert(wrapped.end(), argv.begin() + (python ? 1 : 0), argv.end());
  return wrapped;
}

}  // namespace

const Row torch{one_port_on_the_first, the_first_listens, add_torch_environment, wrap, no_files};

}  // namespace slipway::launch
