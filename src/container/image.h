#pragma once
// Command lines that run an image under an engine: same variables, same folders at the same paths, the
// machine's network, files that belong to the caller. Pure.
#include <string>
#include <vector>

#include "container/shares.h"

namespace slipway::container {

struct ImageRun {
  std::string image;
  std::vector<std::string> command;
  std::string working_folder;
  std::vector<Share> shares;
  Environment environment;
  std::vector<std::string> devices;           // of accelerators
  std::vector<std::string> driver_libraries;  // empty where the engine brings them itself
};

// What is different from machine to machine.
struct PodmanFacts {
  bool maps_users = false;    // the caller is not root and has a range of user ids of its own
  bool has_init = false;      // podman finds a program for process 1
  bool has_crun = true;       // the only runtime that leaves cgroups alone
  bool has_gpu_spec = false;  // a container device interface file for NVIDIA GPUs
  unsigned long files_max = 1024;
  unsigned long processes_max = 1024;
};

std::vector<std::string> podman_command(const std::string& program, const ImageRun& run,
                                        const PodmanFacts& facts);
std::vector<std::string> apptainer_command(const std::string& program, const ImageRun& run);

}  // namespace slipway::container
