// Tokens: who may ask. Only their hashes are kept.
#include <fmt/format.h>

#include <algorithm>

#include "control/controller.h"

namespace slipway::control {

void Controller::add_token(const TokenRecord& token) {
  tokens_.push_back(token);
  changes_.tokens.push_back(token);
  event_in(token.workspace, "token.created",
           fmt::format("token {} was made for {} ({})", token.id, token.name, to_string(token.role)), {}, {});
}

Result<void> Controller::revoke_token(const Caller& caller, const std::string& id) {
  const auto found =
      std::find_if(tokens_.begin(), tokens_.end(), [&](const TokenRecord& token) { return token.id == id; });
  // The admins of the workspace `default` run the service; others only see their own workspace.
  if (found == tokens_.end() || (caller.workspace != "default" && found->workspace != caller.workspace))
    return fail(ErrorCode::not_found, fmt::format("there is no token {}", id),
                "slipway token list shows the tokens");
  const auto admins = std::count_if(tokens_.begin(), tokens_.end(), [&](const TokenRecord& token) {
    return token.role == Role::admin && token.workspace == found->workspace;
  });
  if (found->role == Role::admin && admins == 1)
    return fail(ErrorCode::conflict,
                fmt::format("token {} is the last admin token of workspace {}", id, found->workspace),
                "make another one first: slipway token create NAME --role admin");
  event_in(found->workspace, "token.revoked",
           fmt::format("{} revoked token {} of {}", caller.name, id, found->name), {}, {});
  changes_.tokens_removed.push_back(id);
  std::erase_if(changes_.tokens, [&](const TokenRecord& token) { return token.id == id; });
  tokens_.erase(found);
  return {};
}

}  // namespace slipway::control
