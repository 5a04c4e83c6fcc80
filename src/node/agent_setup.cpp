#include "node/agent_setup.h"

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/file.h"
#include "base/random.h"
#include "node/machine.h"

namespace slipway::node {

Result<std::string> take_instance(const std::string& folder) {
  const std::string path = folder + "/instance";
  if (Result<std::string> known = read_file(path); known && !known->empty()) return known;
  const std::string made = random_hex(8);
  if (auto written = write_file_durably(path, made); !written) return fail(written.error());
  return made;
}

Result<void> complete(AgentOptions& options, const net::Url& url) {
  if (options.folder.empty())
    return fail(ErrorCode::invalid, "the agent needs a folder of its own", "name one with --folder");
  if (auto made = make_folders(options.folder); !made) return made;
  char absolute[PATH_MAX];
  if (::realpath(options.folder.c_str(), absolute) == nullptr)
    return fail(system_error("cannot use folder " + options.folder, errno));
  options.folder = absolute;
  const Resources found = detect_resources();
  if (options.total.cores == 0) options.total.cores = found.cores;
  if (options.total.memory == 0) options.total.memory = found.memory;
  // A local node has the share of the machine it was given, which may be no GPU at all.
  if (options.total.gpus == 0 && !options.local) options.total.gpus = found.gpus;
  if (options.name.empty()) options.name = host_name();
  if (options.address.empty()) options.address = address_towards(url.host, url.port);
  if (options.keeper_command.empty())
    options.keeper_command = {"/proc/self/exe", "node", "keep", "--folder", options.folder};
  return {};
}

}  // namespace slipway::node
