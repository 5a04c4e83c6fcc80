// Tokens: who may ask. Only their hashes are kept.
#include <fmt/format.h>

#include <algorithm>

#include "control/catalog.h"
#include "control/permit.h"
#include "control/users.h"

namespace slipway::control {

namespace {

void put_into(std::vector<TokenRecord>& tokens, const TokenRecord& token) {
  const auto known =
      std::find_if(tokens.begin(), tokens.end(), [&](const TokenRecord& one) { return one.id == token.id; });
  if (known == tokens.end())
    tokens.push_back(token);
  else
    *known = token;
}

}  // namespace

void put_token(Turn& turn, const TokenRecord& token) {
  put_into(turn.state.tokens, token);
  put_into(turn.effects.changes.tokens, token);
  put_into(turn.effects.outputs.tokens, token);
  std::erase(turn.effects.changes.tokens_removed, token.id);
  std::erase(turn.effects.outputs.tokens_removed, token.id);
  watch_token_expiry(turn, token);
}

void drop_token(Turn& turn, const std::string& id) {
  const auto is_it = [&](const TokenRecord& token) { return token.id == id; };
  std::erase_if(turn.state.tokens, is_it);
  std::erase_if(turn.effects.changes.tokens, is_it);
  std::erase_if(turn.effects.outputs.tokens, is_it);
  turn.effects.changes.tokens_removed.push_back(id);
  turn.effects.outputs.tokens_removed.push_back(id);
}

Result<TokenRecord> add_token(Turn& turn, const TokenRecord& token) {
  auto made = for_user(turn.state, token);
  if (!made) return made;
  put_token(turn, *made);
  record_event_in(turn, made->workspace, "token.created",
                  fmt::format("token {} was made for {} ({})", made->id, made->name, to_string(made->role)),
                  {}, {});
  return made;
}

bool is_own_token(const Caller& caller, const TokenRecord& token) {
  return token.role != Role::node && token.workspace == caller.workspace && token.holder() == caller.name;
}

namespace {

constexpr std::size_t own_tokens_max = 100;  // of a user in a workspace, without sign-ins

// The one that was shown. It may have been revoked since, in this turn.
Result<TokenRecord> shown_token(const State& state, const Caller& caller) {
  for (const TokenRecord& token : state.tokens)
    if (token.id == caller.token) return token;
  return fail(ErrorCode::denied, "the token of this request is gone", "sign in again, or ask an admin");
}

Result<std::optional<TimePoint>> within(const TokenRecord& shown, std::optional<TimePoint> expires) {
  if (!shown.expires_at || (expires && *expires <= *shown.expires_at)) return expires;
  if (!expires) return shown.expires_at;
  return fail(
      ErrorCode::denied,
      fmt::format("this token of {} is good until {}, and so is at most what is made with it", shown.holder(),
                  format_time(*shown.expires_at)),
      "sign in for longer first, at most 30 days (slipway login --user NAME --expires 30d), or ask an "
      "admin");
}

// The admins of the workspace `default` run the service; those of others see their own workspace, and who is
// no admin tokens of their own. `verb` is what is to be done with it.
Result<TokenRecord> find_token(const State& state, const Caller& caller, const std::string& id_or_name,
                               const Access& access) {
  std::vector<const TokenRecord*> named;
  for (const TokenRecord& token : state.tokens) {
    if (caller.workspace != "default" && token.workspace != caller.workspace) continue;
    const bool is_seen = caller.role == Role::admin || is_own_token(caller, token);
    if (token.id == id_or_name) {
      if (!is_seen && token.workspace == caller.workspace)
        if (auto may = permit(caller, access, "token " + token.id,
                              token.role == Role::node ? std::string() : token.holder());
            !may)
          return fail(may.error());
      if (is_seen) return token;
    }
    if (is_seen && token.name == id_or_name) named.push_back(&token);
  }
  if (named.empty())
    return fail(ErrorCode::not_found, fmt::format("there is no token {}", id_or_name),
                "slipway token list shows the tokens");
  if (named.size() > 1)
    return fail(ErrorCode::conflict, fmt::format("{} tokens are named {}", named.size(), id_or_name),
                fmt::format("name one by its id, such as {}", named.front()->id));
  return *named.front();
}

// One that stays: with it, an admin can always come back.
bool is_lasting_admin(const TokenRecord& token) {
  return lowered(token.role, token.scope) == Role::admin && !token.expires_at;
}

}  // namespace

Result<TokenRecord> add_own_token(Turn& turn, const Caller& caller, TokenRecord token) {
  const auto shown = shown_token(turn.state, caller);
  if (!shown) return shown;
  if (shown->user.empty())
    return fail(
        ErrorCode::denied,
        fmt::format("the service knows no user {}, and tokens of their own are for users", caller.name),
        fmt::format("ask an admin: slipway user add {}", caller.name));
  const auto denied = [&](const std::string& what) {
    return fail(ErrorCode::denied,
                fmt::format("{}, a {} of workspace {}, makes no token {}", caller.name,
                            to_string(caller.role), caller.workspace, what),
                "ask an admin of the workspace");
  };
  if (token.role > caller.role) return denied(fmt::format("with the role {}", to_string(token.role)));
  if (token.workspace != caller.workspace) return denied("for workspace " + token.workspace);
  if (!token.user.empty() && token.user != caller.name) return denied("for " + token.user);
  const auto own = std::count_if(turn.state.tokens.begin(), turn.state.tokens.end(), [&](const auto& one) {
    return is_own_token(caller, one) && !is_login(one);
  });
  if (static_cast<std::size_t>(own) >= own_tokens_max)
    return fail(ErrorCode::conflict, fmt::format("{} has {} tokens, which is the most", caller.name, own),
                "revoke some first: slipway token list");
  auto expires = within(*shown, token.expires_at);
  if (!expires) return fail(expires.error());
  token.expires_at = *expires;
  token.user = caller.name;
  if (is_login(token))  // those are counted by themselves
    return fail(ErrorCode::invalid, fmt::format("{} is the name of tokens that sign-ins make", token.name),
                "choose another name");
  if (token.pool.empty()) token.pool = shown->pool;
  return add_token(turn, token);
}

Result<void> revoke_token(Turn& turn, const Caller& caller, const std::string& id_or_name) {
  auto found = find_token(turn.state, caller, id_or_name, {Object::token, Verb::remove});
  if (!found) return fail(found.error());
  const auto admins =
      std::count_if(turn.state.tokens.begin(), turn.state.tokens.end(), [&](const TokenRecord& token) {
        return is_lasting_admin(token) && token.workspace == found->workspace;
      });
  if (is_lasting_admin(*found) && admins == 1)
    return fail(ErrorCode::conflict,
                fmt::format("token {} is the last admin token of workspace {} that does not expire",
                            found->id, found->workspace),
                "make another one first: slipway token create NAME --role admin");
  record_event_in(turn, found->workspace, "token.revoked",
                  fmt::format("{} revoked token {} of {}", caller.name, found->id, found->name), {}, {});
  drop_token(turn, found->id);
  return {};
}

Result<TokenRecord> rotate_token(Turn& turn, const Caller& caller, const std::string& id_or_name,
                                 const Rotation& rotation) {
  auto found = find_token(turn.state, caller, id_or_name, {Object::token, Verb::update});
  if (!found) return fail(found.error());
  if (!found->node.empty())
    return fail(ErrorCode::conflict,
                fmt::format("{} is the key of node {}, which its agent made", found->id, found->node),
                "revoke it; the node then joins again with a join token");
  if (std::count(rotation.in_files.begin(), rotation.in_files.end(), found->hash) > 0)
    return fail(ErrorCode::conflict,
                fmt::format("token {} is the service's own, which it reads from its data folder", found->id),
                "stop the service, remove the file, start it again and revoke this token");
  TokenRecord token = *found;
  std::optional<Duration> lifetime = rotation.expires_in;
  if (!lifetime && found->expires_at) lifetime = *found->expires_at - found->created_at;
  token.id = rotation.id;
  token.hash = rotation.hash;
  token.created_at = turn.now;
  token.author = caller.name;
  token.last_used_at.reset();
  token.expires_at = lifetime ? std::optional(turn.now + *lifetime) : std::nullopt;
  if (caller.role != Role::admin) {
    const auto shown = shown_token(turn.state, caller);
    if (!shown) return fail(shown.error());
    if (lowered(found->role, found->scope) > caller.role)
      return fail(
          ErrorCode::denied,
          fmt::format("token {} allows more than the one of this request, and would be had by it", found->id),
          "rotate it with itself, or ask an admin");
    if (!rotation.expires_in && shown->expires_at)
      token.expires_at = std::min(token.expires_at.value_or(*shown->expires_at), *shown->expires_at);
    auto expires = within(*shown, token.expires_at);
    if (!expires) return fail(expires.error());
    token.expires_at = *expires;
  }
  drop_token(turn, found->id);
  put_token(turn, token);
  record_event_in(
      turn, token.workspace, "token.rotated",
      fmt::format("{} rotated token {} of {}, which is now {}", caller.name, found->id, token.name, token.id),
      {}, {});
  return token;
}

void note_token_use(Turn& turn, const std::map<std::string, TimePoint>& last_used) {
  for (TokenRecord& token : turn.state.tokens) {
    const auto used = last_used.find(token.id);
    if (used == last_used.end()) continue;
    token.last_used_at = used->second;
    put_into(turn.effects.changes.tokens, token);
  }
}

void watch_token_expiry(Turn& turn, const TokenRecord& token) {
  if (token.expires_at) turn.effects.timers.push_back({*token.expires_at, TokenExpiryDue{token.id}});
}

void on_token_expiry(Turn& turn, const std::string& id) {
  const auto token = std::find_if(turn.state.tokens.begin(), turn.state.tokens.end(),
                                  [&](const TokenRecord& one) { return one.id == id; });
  if (token == turn.state.tokens.end() || !token->expires_at || *token->expires_at > turn.now) return;
  record_event_in(turn, token->workspace, "token.expired",
                  fmt::format("token {} of {} expired", id, token->name), {}, {});
  drop_token(turn, std::string(id));
}

}  // namespace slipway::control
