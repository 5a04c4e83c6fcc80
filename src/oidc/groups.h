#pragma once
// What the groups of a provider are in this service: lines of GROUP=WORKSPACE:ROLE. Empty lines and those
// that begin with # are left out; a group may have several lines.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "domain/user.h"

namespace slipway::oidc {

class GroupRules {
 public:
  static Result<GroupRules> parse(std::string_view text);

  // With the highest role where several groups give one; `user` is left empty.
  std::vector<MemberRecord> members(const std::vector<std::string>& groups) const;
  // Whose members the groups decide alone.
  const std::set<std::string>& workspaces() const { return workspaces_; }

 private:
  struct Rule {
    std::string group;
    std::string workspace;
    Role role;
  };
  std::vector<Rule> rules_;
  std::set<std::string> workspaces_;
};

}  // namespace slipway::oidc
