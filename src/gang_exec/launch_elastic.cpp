// Elastic Horovod: horovodrun itself, as only it can rebuild the ring when nodes change.
//
// It asks a script of ours who the hosts are, again and again; that reads the host file, which the node's
// agent keeps as the gang is. And it starts ranks with ssh, which it finds first on PATH: a script that goes
// to `start-remote`. What belongs to this node alone, the attempt's secret among it, is in that script and
// not in horovodrun's environment, as horovodrun hands that on over command lines.
#include <fmt/format.h>

#include "base/file.h"
#include "base/shell.h"
#include "base/subprocess.h"
#include "gang_exec/horovod.h"
#include "gang_exec/interface.h"
#include "gang_exec/launch.h"
#include "gang_exec/report.h"
#include "gang_exec/scratch.h"

namespace slipway::gang_exec {
namespace {

Result<std::vector<std::string>> find_horovodrun(const std::string& node, const std::string& program,
                                                 const Environment& variables) {
  // By the python of the command, so that it is the one with Horovod.
  if (program.substr(program.rfind('/') + 1).starts_with("python"))
    return std::vector<std::string>{program, "-m", "horovod.runner.launch"};
  if (find_program("horovodrun", variables)) return std::vector<std::string>{"horovodrun"};
  return fail(ErrorCode::not_found, fmt::format("horovodrun is not on node {}", node),
              "install horovod there, put its folder on PATH, or begin the command with its python");
}

std::string ssh_script(const Environment& variables, const std::string& start_hosts) {
  std::string script = "#!/bin/sh\n";
  for (const auto& [name, value] : variables)
    if (is_of_node(name) && name != "_") script += "export " + quote_for_shell(name + "=" + value) + "\n";
  script += fmt::format("SLIPWAY_START_HOSTS=$(cat {}) || exit 255\n", quote_for_shell(start_hosts));
  return script + fmt::format("exec {} node start-remote \"$@\"\n", quote_for_shell(own_program()));
}

Result<void> write_scripts(const Gang& gang, const Environment& variables, const std::string& folder) {
  const std::string files = gang.hostfile.substr(0, gang.hostfile.rfind('/'));
  const std::string discover =
      fmt::format("#!/bin/sh\nexec sed 's/ slots=/:/' {}\n", quote_for_shell(gang.hostfile));
  if (auto written = write_file_durably(folder + "/discover", discover, 0700); !written) return written;
  return write_file_durably(folder + "/ssh", ssh_script(variables, files + "/start-hosts"), 0700);
}

}  // namespace

std::vector<std::string> elastic_arguments(const Gang& gang, const ElasticNodes& nodes,
                                           const std::string& discover, const std::string& interface) {
  const auto processes = [&](std::size_t of_nodes) {
    return std::to_string(of_nodes * gang.processes_per_node);
  };
  std::vector<std::string> arguments{"--gloo", "-np", processes(gang.nodes.size()), "--min-np",
                                     processes(nodes.min), "--max-np", processes(nodes.max),
                                     "--host-discovery-script", discover,
                                     // A node that was lost may come back under its name.
                                     "--blacklist-cooldown-range", "1", "5", "--reset-limit", "100"};
  if (!interface.empty()) arguments.insert(arguments.end(), {"--network-interface", interface});
  return arguments;
}

int launch_elastic_horovod(const Gang& gang, const ElasticNodes& nodes,
                           const std::vector<std::string>& command, const Environment& variables) {
  auto argv = find_horovodrun(gang.self().name, command.front(), variables);
  if (!argv) return report(argv.error(), 127);
  const auto program = find_program(argv->front(), variables);
  if (!program) return report(program.error(), 127);
  auto scratch = ScratchFolder::make(variables);
  if (!scratch) return report(scratch.error(), 1);
  if (auto written = write_scripts(gang, variables, scratch->path()); !written)
    return report(written.error(), 1);
  for (std::string& argument :
       elastic_arguments(gang, nodes, scratch->path() + "/discover", interface_of(gang.self().address)))
    argv->push_back(std::move(argument));
  argv->insert(argv->end(), command.begin(), command.end());
  Environment handed_on;
  for (const auto& [name, value] : variables)
    if (!is_of_node(name)) handed_on.emplace(name, value);
  const auto path = variables.find("PATH");
  handed_on["PATH"] = scratch->path() + ":" + (path == variables.end() ? "/usr/bin:/bin" : path->second);
  if (auto left = scratch->outlive_this_process(); !left) return report(left.error(), 1);
  return report(system_error("cannot start " + *program, execute(*program, *argv, handed_on)), 126);
}

}  // namespace slipway::gang_exec
