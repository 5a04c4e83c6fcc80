#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "base/subprocess.h"
#include "gang_exec/find_mpi.h"
#include "gang_exec/launch.h"
#include "gang_exec/report.h"
#include "gang_exec/scratch.h"

namespace slipway::gang_exec {
namespace {

constexpr Duration version_timeout = 20s;

Result<FoundMpi> ask(const std::string& name, const Environment& variables) {
  const auto path = find_program(name, variables);
  if (!path) return fail(path.error());
  const auto version = run_to_exit({.argv = {name, "--version"},
                                    .environment = variables,
                                    .output = Stdio::pipe,
                                    .error_output = Stdio::output},
                                   {.timeout = version_timeout});
  if (!version) return fail(version.error());
  if (version->timed_out)
    return fail(ErrorCode::unavailable, fmt::format("{} --version {}", *path, version->describe()));
  const auto flavour = mpi_flavour(version->output);
  if (!flavour)
    return fail(ErrorCode::invalid,
                fmt::format("{} is of an unknown MPI: its version is '{}'", *path,
                            version->output.substr(0, version->output.find('\n'))),
                "Open MPI, MPICH and Intel MPI are supported");
  return FoundMpi{*flavour, *path};
}

Result<FoundMpi> find_chosen(const std::string& word, const std::string& node, const Environment& variables) {
  const auto wanted = parse_mpi_flavour(word);
  if (!wanted)
    return fail(ErrorCode::invalid, fmt::format("SLIPWAY_MPI is '{}'", word), "openmpi, mpich or intel");
  for (const std::string& name : mpirun_names(*wanted))
    if (const auto found = ask(name, variables); found && found->flavour == *wanted) return *found;
  return fail(ErrorCode::not_found,
              fmt::format("SLIPWAY_MPI asks for {}, which is not on node {}", to_string(*wanted), node),
              "install it there, put its mpirun on PATH, or choose another");
}

}  // namespace

Result<FoundMpi> find_mpi(const std::string& node, const Environment& variables) {
  if (const auto chosen = variables.find("SLIPWAY_MPI"); chosen != variables.end() && !chosen->second.empty())
    return find_chosen(chosen->second, node, variables);
  auto found = ask("mpirun", variables);
  if (!found && found.error().code == ErrorCode::not_found)
    return fail(ErrorCode::not_found, fmt::format("mpirun is not on node {}", node),
                "install openmpi-bin (Debian), or put it on PATH");
  if (!found) return found;
  const auto other = ask("mpiexec", variables);
  if (other && other->flavour != found->flavour)
    return fail(ErrorCode::conflict,
                fmt::format("node {} has two MPIs: {} is {}, {} is {}", node, found->program,
                            to_string(found->flavour), other->program, to_string(other->flavour)),
                "put the folder of one first on PATH, or set SLIPWAY_MPI to openmpi, mpich or intel");
  return found;
}

int run_mpi(const Gang& gang, const FoundMpi& mpi, const std::vector<std::string>& command,
            Environment variables, bool for_horovod) {
  auto scratch = ScratchFolder::make(variables);
  if (!scratch) return report(scratch.error(), 1);
  MpiLaunch launch;
  launch.flavour = mpi.flavour;
  // By its name where that is enough: by a path, Open MPI asks the other nodes for the same folders.
  launch.program = mpi.program.substr(mpi.program.rfind('/') + 1);
  launch.is_root = ::geteuid() == 0;
  launch.for_horovod = for_horovod;
  launch.exports = to_export(variables);
  launch.agent = own_program();
  if (mpi.flavour != MpiFlavour::openmpi || launch.agent.find_first_of(" :\t") != std::string::npos) {
    // Hydra takes one path and no arguments in place of ssh; Open MPI cuts its agent at spaces and colons.
    auto agent = scratch->add_start_script("start-remote");
    if (!agent) return report(agent.error(), 1);
    launch.agent = std::move(*agent);
  } else {
    launch.agent += " node start-remote";
  }
  const CommandLine line = mpi_command(gang, launch, command);
  for (const auto& [name, value] : line.variables) variables[name] = value;
  variables["TMPDIR"] = scratch->path();
  if (auto left = scratch->outlive_this_process(); !left) return report(left.error(), 1);
  return report(system_error("cannot start " + mpi.program, execute(mpi.program, line.argv, variables)), 126);
}

int launch_mpi(const std::vector<std::string>& command) {
  Environment variables = read_environment();
  const auto gang = parse_gang(variables);
  if (!gang) return report(gang.error(), 1);
  const auto mpi = find_mpi(gang->self().name, variables);
  if (!mpi) return report(mpi.error(), mpi.error().code == ErrorCode::not_found ? 127 : 1);
  return run_mpi(*gang, *mpi, command, std::move(variables), false);
}

}  // namespace slipway::gang_exec
