#pragma once
// A command apart from the rest of its user's: for an agent that is not root.
#include <functional>
#include <string>
#include <vector>

namespace slipway::container {

struct ApartOptions {
  std::string hidden;              // a folder of which only `shown` is seen
  std::vector<std::string> shown;  // below it
  std::string working_folder;
};
// Calls `command` in user, mount and PID namespaces of its own and ends as it does: with its exit code, or by
// its signal. Returns 126, after saying why on standard error, where the machine refuses that.
int run_apart(const ApartOptions& options, const std::function<int()>& command);

bool can_run_apart();

}  // namespace slipway::container
