#include "gang_exec/mpi.h"

#include <initializer_list>

namespace slipway::gang_exec {
namespace {

// Many daemons started at once from the first node; Open MPI would otherwise let each start some of the
// others.
constexpr std::size_t flat_from = 64;

void add(std::vector<std::string>& argv, std::initializer_list<std::string_view> words) {
  argv.insert(argv.end(), words.begin(), words.end());
}

void add_parameter(std::vector<std::string>& argv, std::string_view name, std::string_view value) {
  add(argv, {"-mca", name, value});
}

std::string processes(const Gang& gang) {
  return std::to_string(gang.nodes.size() * gang.processes_per_node);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

void add_transport(std::vector<std::string>& argv, const Gang& gang, const MpiLaunch& launch) {
  // No shared memory between nodes on one machine: it is laid out by machine and place on the node, so that
  // the ranks of two nodes would take each other's.
  if (gang.nodes.size() > 1 && (gang.is_loopback() || gang.shares_machine)) {
    add_parameter(argv, "pml", "ob1");
    add_parameter(argv, "btl", "self,tcp");
  }
  if (gang.is_loopback()) {
    add_parameter(argv, "btl_tcp_if_include", "lo");
    add_parameter(argv, "oob_tcp_if_include", "lo");
    return;
  }
  if (launch.for_horovod && !gang.shares_machine) {
    add_parameter(argv, "pml", "ob1");
    add_parameter(argv, "btl", "^openib");
  }
  // Machines have the same address on these; connections would end at the own machine.
  add_parameter(argv, "btl_tcp_if_exclude", "docker0,lo");
  add_parameter(argv, "oob_tcp_if_exclude", "docker0,lo");
}

CommandLine openmpi_command(const Gang& gang, const MpiLaunch& launch) {
  const std::string each = std::to_string(gang.processes_per_node);
  CommandLine line;
  std::vector<std::string>& argv = line.argv;
  argv = {launch.program};
  if (launch.is_root) argv.emplace_back("--allow-run-as-root");
  if (launch.for_horovod) argv.emplace_back("--tag-output");
  add(argv, {"-np", processes(gang)});
  if (gang.hostfile.empty()) {
    std::vector<std::string> hosts;
    for (const GangNode& node : gang.nodes) hosts.push_back(node.name + ":" + each);
    add(argv, {"-H", joined(hosts)});
  } else {
    add(argv, {"--hostfile", gang.hostfile});
  }
  add(argv, {"--map-by", "ppr:" + each + ":node", "--oversubscribe", "-bind-to", "none"});
  // The daemons stay children of what started them, and end with the connection.
  argv.emplace_back("--leave-session-attached");
  // Inside an allocation of another scheduler it would ask that one for nodes and daemons.
  add_parameter(argv, "plm", "rsh");
  add_parameter(argv, "ras", "^slurm,tm,lsf,gridengine");
  add_parameter(argv, "plm_rsh_agent", launch.agent);
  if (gang.nodes.size() >= flat_from) {
    add_parameter(argv, "plm_rsh_no_tree_spawn", "true");
    add_parameter(argv, "plm_rsh_num_concurrent", std::to_string(gang.nodes.size()));
  }
  add_transport(argv, gang, launch);
  for (const std::string& name : launch.exports) add(argv, {"-x", name});
  return line;
}

CommandLine hydra_command(const Gang& gang, const MpiLaunch& launch) {
  const bool is_intel = launch.flavour == MpiFlavour::intel;
  std::vector<std::string> hosts;
  for (const GangNode& node : gang.nodes) hosts.push_back(node.name);
  CommandLine line;
  line.argv = {launch.program, "-hosts",       joined(hosts), "-ppn", std::to_string(gang.processes_per_node),
               "-n",           processes(gang)};
  // Its daemons call back to this name, which has to mean something on the other nodes.
  if (!is_intel) add(line.argv, {"-localhost", gang.self().address});
  // Only these: with all, the first node's own variables would go to every rank.
  add(line.argv, {"-genvlist", joined(launch.exports)});
  line.variables[is_intel ? "I_MPI_HYDRA_BOOTSTRAP" : "HYDRA_LAUNCHER"] = "ssh";
  line.variables[is_intel ? "I_MPI_HYDRA_BOOTSTRAP_EXEC" : "HYDRA_LAUNCHER_EXEC"] = launch.agent;
  if (is_intel && gang.is_loopback()) line.variables["FI_TCP_IFACE"] = "lo";
  return line;
}

}  // namespace

std::string_view to_string(MpiFlavour flavour) {
  switch (flavour) {
    case MpiFlavour::openmpi: return "Open MPI";
    case MpiFlavour::mpich: return "MPICH";
    case MpiFlavour::intel: return "Intel MPI";
  }
  return "";
}

std::optional<MpiFlavour> mpi_flavour(std::string_view version) {
  const auto has = [&](std::string_view text) { return version.find(text) != std::string_view::npos; };
  if (has("Intel(R) MPI")) return MpiFlavour::intel;  // first: it is a Hydra as well
  if (has("Open MPI") || has("OpenRTE") || has("open-mpi.org")) return MpiFlavour::openmpi;
  if (has("HYDRA") || has("MPICH") || has("mpich")) return MpiFlavour::mpich;
  return std::nullopt;
}

std::optional<MpiFlavour> parse_mpi_flavour(std::string_view word) {
  if (word == "openmpi") return MpiFlavour::openmpi;
  if (word == "mpich") return MpiFlavour::mpich;
  if (word == "intel") return MpiFlavour::intel;
  return std::nullopt;
}

std::vector<std::string> mpirun_names(MpiFlavour flavour) {
  switch (flavour) {
    case MpiFlavour::openmpi: return {"mpirun.openmpi", "mpirun"};
    case MpiFlavour::mpich: return {"mpirun.mpich", "mpirun", "mpiexec.hydra"};
    case MpiFlavour::intel: return {"mpirun", "mpiexec.hydra"};
  }
  return {};
}

CommandLine mpi_command(const Gang& gang, const MpiLaunch& launch, const std::vector<std::string>& command) {
  CommandLine line =
      launch.flavour == MpiFlavour::openmpi ? openmpi_command(gang, launch) : hydra_command(gang, launch);
  line.argv.insert(line.argv.end(), command.begin(), command.end());
  return line;
}

}  // namespace slipway::gang_exec
