#pragma once
// What this machine can run containers with.
#include <string>
#include <vector>

namespace slipway::container {

// Of "rootfs" (a folder or tarball; needs namespaces only), "podman", "apptainer" and "docker" (images) those
// that are installed and look usable. Starts nothing but a child for some system calls: a few milliseconds at
// most.
std::vector<std::string> engines();

}  // namespace slipway::container
