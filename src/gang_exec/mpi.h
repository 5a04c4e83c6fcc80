#pragma once
// The command line by which each MPI's mpirun starts the ranks of a gang. Pure.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gang_exec/environment.h"
#include "gang_exec/gang.h"

namespace slipway::gang_exec {

enum class MpiFlavour { openmpi, mpich, intel };

std::string_view to_string(MpiFlavour flavour);  // "Open MPI"
// By what `mpirun --version` prints.
std::optional<MpiFlavour> mpi_flavour(std::string_view version);
// By the value of SLIPWAY_MPI: openmpi, mpich, intel.
std::optional<MpiFlavour> parse_mpi_flavour(std::string_view word);
// The names under which a flavour's mpirun is found where several are installed, best first.
std::vector<std::string> mpirun_names(MpiFlavour flavour);

struct MpiLaunch {
  MpiFlavour flavour = MpiFlavour::openmpi;
  std::string program = "mpirun";
  std::string agent;  // Open MPI: a command line; else one path
  bool is_root = false;
  bool for_horovod = false;
  std::vector<std::string> exports;  // names of variables
};

struct CommandLine {
  std::vector<std::string> argv;
  Environment variables;  // to be set besides the own
};
CommandLine mpi_command(const Gang& gang, const MpiLaunch& launch, const std::vector<std::string>& command);

}  // namespace slipway::gang_exec
