// One command that finds `ssh` on its PATH and reaches the sibling nodes of its attempt by it.
#include "base/file.h"
#include "remote/child.h"
#include "remote/gang.h"
#include "remote/launch.h"
#include "remote/report.h"
#include "remote/scratch.h"

namespace slipway::remote {

int launch_ssh(const std::vector<std::string>& command) {
  Variables variables = read_environment();
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
  return report(execute(*program, command, variables), 126);
}

}  // namespace slipway::remote
