#include "domain/run_as.h"

#include <fmt/format.h>

#include <charconv>

namespace slipway {
namespace {

std::optional<std::uint32_t> parse_id(std::string_view text) {
  std::uint32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size() || id == 0 || id == UINT32_MAX)
    return std::nullopt;
  return id;
}

}  // namespace

Result<RunAsRules> RunAsRules::parse(const std::vector<std::string>& rules) {
  RunAsRules parsed;
  for (const std::string& rule : rules) {
    if (rule.empty() || rule.front() == '#') continue;
    const std::size_t equals = rule.rfind('=');
    const auto wrong = [&](std::string_view why) {
      return fail(ErrorCode::invalid, fmt::format("the run-as rule '{}' {}", rule.substr(0, 200), why),
                  "write it like ana=1001:1001, ml/ben=1002, ml/=2000 or *=3000");
    };
    if (equals == std::string::npos || equals == 0) return wrong("is not NAME=UID:GID");
    const std::string_view ids = std::string_view(rule).substr(equals + 1);
    const std::size_t colon = std::min(ids.find(':'), ids.size());
    const auto uid = parse_id(ids.substr(0, colon));
    const auto gid = colon == ids.size() ? uid : parse_id(ids.substr(colon + 1));
    if (!uid || !gid) return wrong("has no user and group number, from 1 (root is no user of jobs)");
    if (!parsed.rules_.emplace(rule.substr(0, equals), RunAs{*uid, *gid}).second)
      return wrong("names somebody a second time");
  }
  return parsed;
}

Result<std::optional<RunAs>> RunAsRules::find(std::string_view workspace, std::string_view user) const {
  if (rules_.empty()) return std::nullopt;
  const bool is_default = workspace == "default";
  const std::string in_workspace = fmt::format("{}/{}", workspace, user);
  const std::string named = is_default ? std::string(user) : in_workspace;
  for (const std::string& name : {in_workspace, named})
    if (const auto rule = rules_.find(name); rule != rules_.end()) return rule->second;
  if (is_default && user == "admin") return std::nullopt;
  for (const std::string& name : {fmt::format("{}/", workspace), std::string("*")})
    if (const auto rule = rules_.find(name); rule != rules_.end()) return rule->second;
  return fail(
      ErrorCode::denied,
      fmt::format("no user of the machine is set for the jobs of {} in workspace {}", user, workspace),
      fmt::format("ask whoever runs the service: slipway up --run-as {}=UID", named));
}

}  // namespace slipway
