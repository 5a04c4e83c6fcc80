// One command that finds `ssh` on its PATH and reaches the sibling nodes of its attempt by it.
#include "base/file.h"
#include "base/subprocess.h"
#include "gang_exec/gang.h"
#include "gang_exec/launch.h"
#include "gang_exec/report.h"
#include "gang_exec/scratch.h"

namespace slipway::gang_exec {

int launch_ssh(const std::vector<std::string>& command) {
  Environment variables = read_environment();
  const auto gang = parse_gang(variables);
  if (!gang) return report(gang.error(), 1);
  auto scratch = ScratchFolder::make(variables);
  if (!scratch) return report(scratch.error(), 1);
  for (const char* name : {"ssh", "rsh"})
    if (auto added = scratch->add_start_script(name); !added) return report(added.error(), 1);
  std::string& path = variables["PATH"];
  path = scratch->path() + (path.empty() ? "" : ":") + path;
  variables["OMPI_MCA_plm_rsh_agent"] = scratch->path() + "/ssh";
  if (auto left = scratch->outlive_this_process(); !left) return report(left.error(), 1);
  const auto program = find_program(command.front(), variables);
  if (!program) return report(program.error(), 127);
  return report(system_error("cannot start " + *program, execute(*program, command, variables)), 126);
}

}  // namespace slipway::gang_exec
