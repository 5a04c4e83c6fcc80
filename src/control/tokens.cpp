// Tokens: who may ask. Only their hashes are kept.
#include <fmt/format.h>

#include <algorithm>

#include "control/catalog.h"

namespace slipway::control {

void put_token(Turn& turn, const TokenRecord& token) {
  const auto put_into = [&](std::vector<TokenRecord>& tokens) {
    const auto known = std::find_if(tokens.begin(), tokens.end(),
                                    [&](const TokenRecord& one) { return one.id == token.id; });
    if (known == tokens.end())
      tokens.push_back(token);
    else
      *known = token;
  };
  put_into(turn.state.tokens);
  put_into(turn.effects.changes.tokens);
  put_into(turn.effects.outputs.tokens);
  std::erase(turn.effects.changes.tokens_removed, token.id);
  std::erase(turn.effects.outputs.tokens_removed, token.id);
}

void drop_token(Turn& turn, const std::string& id) {
  const auto is_it = [&](const TokenRecord& token) { return token.id == id; };
  std::erase_if(turn.state.tokens, is_it);
  std::erase_if(turn.effects.changes.tokens, is_it);
  std::erase_if(turn.effects.outputs.tokens, is_it);
  turn.effects.changes.tokens_removed.push_back(id);
  turn.effects.outputs.tokens_removed.push_back(id);
}

void add_token(Turn& turn, const TokenRecord& token) {
  put_token(turn, token);
  record_event_in(turn, token.workspace, "token.created",
                  fmt::format("token {} was made for {} ({})", token.id, token.name, to_string(token.role)),
                  {}, {});
}

Result<void> revoke_token(Turn& turn, const Caller& caller, const std::string& id) {
  const auto found = std::find_if(turn.state.tokens.begin(), turn.state.tokens.end(),
                                  [&](const TokenRecord& token) { return token.id == id; });
  // The admins of the workspace `default` run the service; others only see their own workspace.
  if (found == turn.state.tokens.end() ||
      (caller.workspace != "default" && found->workspace != caller.workspace))
    return fail(ErrorCode::not_found, fmt::format("there is no token {}", id),
                "slipway token list shows the tokens");
  const auto admins =
      std::count_if(turn.state.tokens.begin(), turn.state.tokens.end(), [&](const TokenRecord& token) {
        return token.role == Role::admin && token.workspace == found->workspace;
      });
  if (found->role == Role::admin && admins == 1)
    return fail(ErrorCode::conflict,
                fmt::format("token {} is the last admin token of workspace {}", id, found->workspace),
                "make another one first: slipway token create NAME --role admin");
  record_event_in(turn, found->workspace, "token.revoked",
                  fmt::format("{} revoked token {} of {}", caller.name, id, found->name), {}, {});
  drop_token(turn, id);
  return {};
}

}  // namespace slipway::control
