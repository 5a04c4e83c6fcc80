#include "oidc/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "domain/job.h"

namespace slipway::oidc {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  const std::size_t end = text.find_last_not_of(" \t\r");
  return end == std::string_view::npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

}  // namespace

Result<GroupRules> GroupRules::parse(std::string_view text) {
  GroupRules rules;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.front() == '#') continue;
    // The last of both: names of groups may have them.
    const std::size_t equals = line.rfind('='), colon = line.rfind(':');
    const auto role =
        colon == std::string_view::npos ? std::nullopt : parse_role(trimmed(line.substr(colon + 1)));
    if (equals == 0 || equals == std::string_view::npos || colon == std::string_view::npos ||
        colon < equals || !role || *role == Role::node)
      return fail(ErrorCode::invalid,
                  fmt::format("line {} of the groups is not GROUP=WORKSPACE:ROLE", number),
                  "write it like research=ml:member; the roles are admin, member and viewer");
    Rule rule{std::string(trimmed(line.substr(0, equals))),
              std::string(trimmed(line.substr(equals + 1, colon - equals - 1))), *role};
    if (auto named = validate_name("workspace", rule.workspace); !named) return fail(named.error());
    rules.workspaces_.insert(rule.workspace);
    rules.rules_.push_back(std::move(rule));
  }
  return rules;
}

std::vector<MemberRecord> GroupRules::members(const std::vector<std::string>& groups) const {
  std::map<std::string, Role> roles;
  for (const Rule& rule : rules_) {
    if (std::find(groups.begin(), groups.end(), rule.group) == groups.end()) continue;
    const auto [known, is_new] = roles.emplace(rule.workspace, rule.role);
    if (!is_new) known->second = std::max(known->second, rule.role);
  }
  std::vector<MemberRecord> members;
  for (const auto& [workspace, role] : roles) members.push_back({workspace, {}, role});
  return members;
}

}  // namespace slipway::oidc
