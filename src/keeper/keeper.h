#pragma once
// The keeper: starts processes, waits for them, signals their trees, and writes their ends down. Nothing
// else, so that it need not be restarted when the agent is, and so that there is little in it that could
// break.
//
// One keeper per node folder (`keeper.lock`). It listens on `keeper.sock` there and serves one agent at a
// time; the next is read only when everything the former one sent has been done, so the last orders of a
// killed agent count. Its processes die with it (PR_SET_PDEATHSIG); the next keeper ends what is left of
// their trees and says of each that it was lost. Single-threaded; asleep unless something happens.
#include <string>
#include <vector>

namespace slipway::keeper {

struct KeeperOptions {
  std::string folder;  // the node's own, which exists
  // Starts the next keeper of the folder: words after the program's own name. Empty: nothing does.
  std::vector<std::string> restart_command{};
};

// Detaches from the terminal and the caller's session, ends what a former keeper left, listens, and then says
// "ready\n" on standard output and lets go of it; from then on it talks to `keeper.log` in the folder.
// Returns the exit status: 0 when an agent asked it to quit, 1 (with the reason on standard error) when it
// cannot work. Set SLIPWAY_NO_CGROUP=1 to have it do without cgroups.
int run_keeper(const KeeperOptions& options);

}  // namespace slipway::keeper
