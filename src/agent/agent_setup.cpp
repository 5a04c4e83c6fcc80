#include "agent/agent_setup.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "agent/machine.h"
#include "base/file.h"
#include "base/random.h"
#include "container/user_access.h"
#include "domain/layout.h"

namespace slipway::agent {

namespace {

// What the file says; `made` where there is none.
Result<std::string> take(const std::string& path, const std::string& made, unsigned mode) {
  if (Result<std::string> known = read_file(path); known && !known->empty()) return known;
  if (auto written = write_file_durably(path, made, mode); !written) return fail(written.error());
  return made;
}

}  // namespace

Result<std::string> take_instance(const std::string& folder) {
  return take(folder + "/instance", random_hex(8), 0644);
}

Result<std::string> take_node_key(const std::string& folder) {
  return take(folder + "/node-key", "slipway_" + random_hex(24), 0600);
}

std::vector<std::uint32_t> usable_gpus(const AgentOptions& options) {
  std::vector<std::uint32_t> indices(detect_gpus());
  std::iota(indices.begin(), indices.end(), 0u);
  if (options.gpus)
    std::erase_if(indices, [&](std::uint32_t gpu) {
      return std::find(options.gpus->begin(), options.gpus->end(), gpu) == options.gpus->end();
    });
  return indices;
}

Result<void> close_workspaces(const std::string& data) {
  const std::string all = data + "/workspaces", of_default = data + "/" + workspace_folder("default");
  // In which jobs may run as the agent, so that no user is let through.
  if (auto made = make_folders(of_default, 0700); !made) return made;
  if (::chmod(all.c_str(), 0711) != 0)
    return fail(system_error("cannot close " + all + " to other users", errno));
  std::error_code error;
  for (const auto& workspace : std::filesystem::directory_iterator(all, error))
    if (workspace.is_directory(error))
      if (auto closed = container::close_folder(workspace.path().string()); !closed) return closed;
  if (error) return fail(system_error("cannot list " + all, error.value()));
  return {};
}

namespace {

// Its own, with what it keeps of its data where it does not see the service's.
Result<void> close_folder_of_node(const std::string& folder) {
  const std::string code = folder + "/blobs";
  if (auto made = make_folders(code, 0700); !made) return made;
  if (::chmod(code.c_str(), 0700) != 0 || ::chmod(folder.c_str(), 0711) != 0)
    return fail(system_error("cannot close " + folder + " to other users", errno));
  return close_workspaces(folder);
}

}  // namespace

Result<void> complete(AgentOptions& options, const net::Url& url) {
  if (options.folder.empty())
    return fail(ErrorCode::invalid, "the agent needs a folder of its own", "name one with --folder");
  if (auto made = make_folders(options.folder); !made) return made;
  if (!options.local)
    if (auto closed = close_folder_of_node(options.folder); !closed) return closed;
  char absolute[PATH_MAX];
  if (::realpath(options.folder.c_str(), absolute) == nullptr)
    return fail(system_error("cannot use folder " + options.folder, errno));
  options.folder = absolute;
  const Resources found = detect_resources();
  if (options.total.cores == 0) options.total.cores = found.cores;
  if (options.total.memory == 0) options.total.memory = found.memory;
  options.total.gpus = static_cast<std::uint32_t>(usable_gpus(options).size());
  if (options.name.empty()) options.name = host_name();
  if (options.address.empty()) options.address = address_towards(url.host, url.port);
  if (options.keeper_command.empty())
    options.keeper_command = {"/proc/self/exe", "node", "keep", "--folder", options.folder};
  return {};
}

}  // namespace slipway::agent
