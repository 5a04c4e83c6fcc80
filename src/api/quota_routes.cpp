// Quotas: what users and the workspace may have, and have.
#include <fmt/format.h>

#include "api/api.h"
#include "wire/quota.h"
#include "wire/records.h"

namespace slipway::api {

using control::Controller;
using control::ReadStore;

void Api::add_quota_routes() {
  // Members see their own and that of the workspace, admins all of it; those of `default` those of others,
  // too.
  router_.add("GET", "/v1/quota", {Object::quota, Verb::read}, [this](const Call& call) {
    const std::string workspace = call.parameter("workspace").value_or(call.caller.workspace);
    const bool is_admin = call.caller.role == Role::admin;
    if (workspace != call.caller.workspace && !(is_admin && call.caller.workspace == "default"))
      return call.send(
          problem({ErrorCode::denied,
                   fmt::format("the quotas of workspace {} are not shown", workspace.substr(0, 128)),
                   "an admin of workspace default sees them"}));
    answer_live(
        call,
        [call, workspace, is_admin](const control::Snapshot& live, ReadStore&) -> Result<net::Response> {
          std::vector<std::string> items;
          bool has_own = false, has_workspace = false;
          for (const QuotaView& quota : live.quotas) {
            const bool is_own = quota.key.user == call.caller.name, is_whole = quota.key.user.empty();
            if (quota.key.workspace != workspace ||
                !(is_admin || is_own || is_whole || quota.key.user == every_user))
              continue;
            has_own = has_own || is_own;
            has_workspace = has_workspace || is_whole;
            items.push_back(wire::format(quota));
          }
          if (!has_own && workspace == call.caller.workspace)
            items.push_back(wire::format(QuotaView{{workspace, call.caller.name}, {}, {}}));
          if (!has_workspace) items.insert(items.begin(), wire::format(QuotaView{{workspace, {}}, {}, {}}));
          return json(200, wire::format_list(items, std::nullopt));
        });
  });
  const auto change_of = [this](const Call& call, const QuotaKey& key) {
    const auto asked = wire::parse_quota_change(call.request().body);
    if (!asked) return call.send(problem(asked.error()));
    change<QuotaView>(
        call, [call, key, asked = *asked](Controller& c) { return c.change_quota(call.caller, key, asked); },
        [](const QuotaView& quota) { return json(200, wire::format(quota)); });
  };
  router_.add("PATCH", "/v1/quotas/workspace", {Object::quota, Verb::create}, [change_of](const Call& call) {
    change_of(call, {call.parameter("workspace").value_or(call.caller.workspace), {}});
  });
  router_.add(
      "PATCH", "/v1/quotas/users/{user}", {Object::quota, Verb::update}, [change_of](const Call& call) {
        change_of(call, {call.parameter("workspace").value_or(call.caller.workspace), call.part("user")});
      });
}

}  // namespace slipway::api
