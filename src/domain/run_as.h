#pragma once
// Which user of the machine the jobs of whom run as.
//
// A rule is USER=UID[:GID] for a user of the workspace `default`, WORKSPACE/USER=UID[:GID] for one of
// another, WORKSPACE/=UID[:GID] for everybody in it, or *=UID[:GID] for everybody; the one that names most
// wins. A user's name alone says nothing in other workspaces: their admins give out the names. With rules,
// who is named by none submits no jobs; but the admin that the service itself made runs as the service does,
// unless a rule names it.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipway {

struct RunAs {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  friend bool operator==(const RunAs&, const RunAs&) = default;
};

class RunAsRules {
 public:
  // An empty line, or one that begins with '#', says nothing.
  static Result<RunAsRules> parse(const std::vector<std::string>& rules);

  bool is_empty() const { return rules_.empty(); }
  // nullopt: as the service itself. Error `denied` for who is named by no rule.
  Result<std::optional<RunAs>> find(std::string_view workspace, std::string_view user) const;

 private:
  std::map<std::string, RunAs> rules_;
};

inline constexpr RunAs run_as_nobody{65534, 65534};  // what an order says of whom no rule names any more

}  // namespace slipway
