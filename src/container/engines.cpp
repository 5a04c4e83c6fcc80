#include "container/engines.h"

#include <unistd.h>

#include "base/subprocess.h"
#include "container/docker.h"
#include "container/namespaces.h"

namespace slipway::container {

std::vector<std::string> engines() {
  const Environment environment = read_environment();
  const auto has = [&](const char* program) { return find_program(program, environment).has_value(); };
  std::vector<std::string> found;
  if (can_unshare_mounts() && has("tar")) found.emplace_back("rootfs");
  // Without it, podman can map only one user, which few images work with.
  if (has("podman") && (::geteuid() == 0 || has("newuidmap"))) found.emplace_back("podman");
  if (has("apptainer") || has("singularity")) found.emplace_back("apptainer");
  if (has_docker(environment)) found.emplace_back("docker");
  return found;
}

}  // namespace slipway::container
