#pragma once
// `slipway node contain`: turns this process into a command that runs in a container.
//
// The command keeps the process's id, output, variables and limits, and the folders named in shares.h at
// their paths. With a root file system there is no engine and no process besides; an image takes podman or
// Apptainer.
#include <string>
#include <vector>

namespace slipway::container {

struct ContainOptions {             // one of rootfs and image is given
  std::string rootfs;               // a folder, or a tarball of one
  std::string image;                // a registry's name, oci-archive:PATH, docker-archive:PATH, dir:PATH
  std::vector<std::string> mounts;  // more folders to keep: PATH or PATH:ro
  std::vector<std::string> command;
};

// Returns only when the command could not be started, after saying why on standard error: 127 when something
// is not there (the command, the root file system, an engine), 126 when it is there and cannot be used.
int contain(const ContainOptions& options);

}  // namespace slipway::container
