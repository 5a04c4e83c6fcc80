#pragma once
// `slipway node sync-datastore pull|push --folder F`: what the agent runs before and after a task.
#include <string>

namespace slipway::blob {

// The container from SLIPWAY_DATASTORE_URL, its key from SLIPWAY_DATASTORE_KEY (none with a SAS), so that no
// secret stands on a command line. With SLIPWAY_DATASTORE_PARENT, the pid of the process that starts it, it
// ends with that process: an agent that was killed leaves no pull behind that holds the folder's lock. Prints
// one line to stdout, conflicts and what was skipped to stderr; gives 0 or 1.
int sync_datastore(const std::string& direction, const std::string& folder);

}  // namespace slipway::blob
