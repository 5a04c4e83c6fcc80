#include "control/users.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/cancel.h"
#include "control/catalog.h"
#include "control/jobs.h"

namespace slipway::control {
namespace {

constexpr const char* login_name = "login";  // of the tokens that sign-ins make
constexpr std::size_t logins_max = 100;      // of a user; one more ends the oldest

// Of tokens of the service itself.
bool is_reserved(const std::string& name) { return name == "admin" || name == "local-nodes"; }

Error no_user(const std::string& name) {
  return {ErrorCode::not_found, fmt::format("there is no user {}", name),
          "slipway user list shows the users"};
}

Result<UserRecord> find_user(const State& state, const std::string& name) {
  const auto found = state.users.find(name);
  if (found == state.users.end()) return fail(no_user(name));
  return found->second;
}

void put_user(Turn& turn, const UserRecord& user) {
  turn.state.users[user.name] = user;
  turn.effects.changes.users.push_back(user);
  std::erase(turn.effects.changes.users_removed, user.name);
}

template <class Choose>
void drop_tokens(Turn& turn, Choose choose) {
  std::vector<std::string> chosen;
  for (const TokenRecord& token : turn.state.tokens)
    if (choose(token)) chosen.push_back(token.id);
  for (const std::string& id : chosen) drop_token(turn, id);
}

void save_member(Turn& turn, const MemberRecord& member) {
  turn.state.members[{member.workspace, member.user}] = member;
  turn.effects.changes.members.push_back(member);
  std::erase(turn.effects.changes.members_removed, Named(member.workspace, member.user));
  const std::vector<TokenRecord> tokens = turn.state.tokens;
  for (TokenRecord token : tokens) {
    if (token.user != member.user || token.workspace != member.workspace || token.role == member.role)
      continue;
    token.role = member.role;
    put_token(turn, token);
  }
}

void drop_member(Turn& turn, const Named& key) {
  turn.state.members.erase(key);
  std::erase_if(turn.effects.changes.members,
                [&](const MemberRecord& one) { return Named(one.workspace, one.user) == key; });
  turn.effects.changes.members_removed.push_back(key);
  drop_tokens(turn, [&](const TokenRecord& token) {
    return token.user == key.second && token.workspace == key.first;
  });
}

// Those of the user in the workspace, or in all of them.
std::size_t end_jobs(Turn& turn, const std::string& user, const std::string* workspace, JobsLeft what,
                     const std::string& reason) {
  if (what == JobsLeft::keep) return 0;
  std::size_t ended = 0;
  for (auto& [id, job] : turn.state.jobs) {
    if (job.record.submitted_by != user || (workspace && job.record.workspace != *workspace)) continue;
    if (job.cancelling || is_terminal(job.record.state)) continue;
    cancel_job(turn, job, reason);
    ++ended;
  }
  return ended;
}

std::string and_jobs(std::size_t cancelled) {
  return cancelled == 0 ? ""
                        : fmt::format(", and {} cancelled",
                                      cancelled == 1 ? "1 job is" : fmt::format("{} jobs are", cancelled));
}

// What a user held by name before is the user's, with the most that one of these tokens allowed.
void adopt_tokens(Turn& turn, const std::string& user) {
  const std::vector<TokenRecord> tokens = turn.state.tokens;
  for (TokenRecord token : tokens) {
    if (token.name != user || !token.user.empty() || token.role == Role::node) continue;
    const auto member = turn.state.members.find({token.workspace, user});
    const Role role =
        member == turn.state.members.end() ? token.role : std::max(member->second.role, token.role);
    token.scope = scope_within(token.scope, token.role);
    token.user = user;
    token.role = role;
    put_token(turn, token);
    save_member(turn, {token.workspace, user, role});
  }
}

// An admin of `default` runs the service; others see their own workspace only.
Result<void> may_see(const Caller& caller, const std::string& workspace) {
  if (caller.workspace == "default" || caller.workspace == workspace) return {};
  return fail(ErrorCode::not_found, fmt::format("there is no workspace {}", workspace),
              "slipway workspace list shows those you may see");
}

Result<std::string> choose_workspace(const State& state, const SignIn& request) {
  std::vector<std::string> known;
  for (const auto& [key, member] : state.members)
    if (key.second == request.user) known.push_back(key.first);
  const auto is_known = [&](const std::string& workspace) {
    return std::find(known.begin(), known.end(), workspace) != known.end();
  };
  if (known.empty())
    return fail(ErrorCode::denied, fmt::format("{} is a member of no workspace", request.user),
                "ask an admin: slipway workspace member add WORKSPACE " + request.user);
  if (!request.workspace.empty()) {
    if (is_known(request.workspace)) return request.workspace;
    return fail(ErrorCode::denied,
                fmt::format("{} is no member of workspace {}", request.user, request.workspace),
                fmt::format("the workspaces of {} are {}", request.user, fmt::join(known, ", ")));
  }
  if (known.size() == 1) return known.front();
  if (is_known("default")) return std::string("default");
  return fail(ErrorCode::invalid, fmt::format("{} is a member of several workspaces", request.user),
              fmt::format("name one: {}", fmt::join(known, ", ")));
}

// Room for one more.
void end_oldest_logins(Turn& turn, const std::string& user) {
  std::vector<std::pair<TimePoint, std::string>> logins;
  for (const TokenRecord& token : turn.state.tokens)
    if (token.user == user && is_login(token)) logins.emplace_back(token.created_at, token.id);
  std::sort(logins.begin(), logins.end());
  for (std::size_t i = 0; i + logins_max <= logins.size(); ++i) drop_token(turn, logins[i].second);
}

// A token of a sign-in, for a user who may.
Result<TokenRecord> give_login(Turn& turn, SignIn request) {
  const auto workspace = choose_workspace(turn.state, request);
  if (!workspace) return fail(workspace.error());
  end_oldest_logins(turn, request.user);
  TokenRecord token = std::move(request.token);
  token.name = login_name;
  token.user = token.author = request.user;
  token.workspace = *workspace;
  token.role = turn.state.members.at({*workspace, request.user}).role;
  token.created_at = turn.now;
  put_token(turn, token);
  record_event_in(turn, *workspace, "user.signed_in",
                  fmt::format("{} signed in with token {}", request.user, token.id), {}, {});
  return token;
}

// Known by what the provider calls the user for ever; a name that somebody has is not taken over.
Result<UserRecord> provided_user(Turn& turn, const ProvidedUser& who) {
  for (const auto& [name, user] : turn.state.users)
    if (user.subject == who.subject) return user;
  const bool has_tokens = std::any_of(turn.state.tokens.begin(), turn.state.tokens.end(),
                                      [&](const TokenRecord& token) { return token.holder() == who.name; });
  if (has_tokens || turn.state.users.contains(who.name) || is_reserved(who.name))
    return fail(ErrorCode::denied, fmt::format("the name {} belongs to somebody else here", who.name),
                "an admin can delete that user, or revoke those tokens, first");
  const UserRecord user{.name = who.name, .created_at = turn.now, .subject = who.subject};
  put_user(turn, user);
  record_event_in(turn, "default", "user.added",
                  fmt::format("user {} signed in by the provider for the first time", who.name), {}, {});
  return user;
}

}  // namespace

Result<UserRecord> add_user(Turn& turn, const Caller& caller, UserRecord user,
                            const std::optional<MemberRecord>& member) {
  if (turn.state.users.contains(user.name))
    return fail(ErrorCode::conflict, fmt::format("there is a user {} already", user.name),
                "slipway user list shows the users");
  if (is_reserved(user.name))
    return fail(ErrorCode::invalid, fmt::format("{} is the name of a token of the service itself", user.name),
                "choose another name");
  user.author = caller.name;
  user.created_at = turn.now;
  put_user(turn, user);
  record_event_in(turn, caller.workspace, "user.added",
                  fmt::format("{} added user {}", caller.name, user.name), {}, {});
  adopt_tokens(turn, user.name);
  if (member)
    if (auto joined = put_member(turn, caller, *member); !joined) return fail(joined.error());
  return user;
}

Result<void> check_user(const State& state, const Caller& caller) {
  const auto user = state.users.find(caller.name);
  if (user == state.users.end()) return {};
  if (user->second.is_disabled)
    return fail(ErrorCode::denied, fmt::format("user {} is disabled", caller.name), "ask an admin");
  if (!state.members.contains({caller.workspace, caller.name}))
    return fail(ErrorCode::denied,
                fmt::format("{} is no member of workspace {}", caller.name, caller.workspace),
                "ask an admin");
  return {};
}

Result<UserRecord> enable_user(Turn& turn, const Caller& caller, const std::string& name) {
  auto user = find_user(turn.state, name);
  if (!user) return user;
  user->is_disabled = false;
  user->code.clear();
  user->code_until.reset();
  put_user(turn, *user);
  record_event_in(turn, caller.workspace, "user.enabled",
                  fmt::format("{} enabled user {}", caller.name, name), {}, {});
  return user;
}

Result<UserDisabled> disable_user(Turn& turn, const Caller& caller, const std::string& name, JobsLeft jobs) {
  auto user = find_user(turn.state, name);
  if (!user) return fail(user.error());
  if (name == caller.name)
    return fail(ErrorCode::conflict, "you cannot disable yourself", "ask another admin");
  user->is_disabled = true;
  user->code.clear();
  user->code_until.reset();
  put_user(turn, *user);
  drop_tokens(turn, [&](const TokenRecord& token) { return token.user == name; });
  const std::size_t ended =
      end_jobs(turn, name, nullptr, jobs, fmt::format("cancelled: {} disabled user {}", caller.name, name));
  record_event_in(turn, caller.workspace, "user.disabled",
                  fmt::format("{} disabled user {}{}", caller.name, name, and_jobs(ended)), {}, {});
  return UserDisabled{*user, ended};
}

Result<std::size_t> remove_user(Turn& turn, const Caller& caller, const std::string& name, JobsLeft jobs) {
  if (!turn.state.users.contains(name)) return fail(no_user(name));
  if (name == caller.name)
    return fail(ErrorCode::conflict, "you cannot delete yourself", "ask another admin");
  std::vector<Named> memberships;
  for (const auto& [key, member] : turn.state.members)
    if (key.second == name) memberships.push_back(key);
  for (const Named& key : memberships) drop_member(turn, key);
  drop_tokens(turn, [&](const TokenRecord& token) { return token.user == name; });
  turn.state.users.erase(name);
  std::erase_if(turn.effects.changes.users, [&](const UserRecord& user) { return user.name == name; });
  turn.effects.changes.users_removed.push_back(name);
  const std::size_t ended =
      end_jobs(turn, name, nullptr, jobs, fmt::format("cancelled: {} deleted user {}", caller.name, name));
  record_event_in(turn, caller.workspace, "user.removed",
                  fmt::format("{} deleted user {}{}", caller.name, name, and_jobs(ended)), {}, {});
  return ended;
}

Result<UserRecord> invite_user(Turn& turn, const Caller& caller, const std::string& name,
                               const std::string& code_hash, Duration good_for) {
  auto user = find_user(turn.state, name);
  if (!user) return user;
  if (user->is_disabled || user->is_service)
    return fail(ErrorCode::conflict,
                fmt::format("{} does not sign in: {}", name,
                            user->is_disabled ? "the user is disabled" : "it is a service account"),
                user->is_disabled ? "slipway user enable " + name
                                  : "make it a token: slipway token create NAME --user " + name);
  user->code = code_hash;
  user->code_until = turn.now + good_for;
  put_user(turn, *user);
  record_event_in(turn, caller.workspace, "user.invited",
                  fmt::format("{} made a code for {} to sign in with", caller.name, name), {}, {});
  return user;
}

Result<MemberRecord> put_member(Turn& turn, const Caller& caller, const MemberRecord& member) {
  if (auto seen = may_see(caller, member.workspace); !seen) return fail(seen.error());
  if (!turn.state.users.contains(member.user)) return fail(no_user(member.user));
  save_member(turn, member);
  record_event_in(turn, member.workspace, "member.added",
                  fmt::format("{} made {} a {} of workspace {}", caller.name, member.user,
                              to_string(member.role), member.workspace),
                  {}, {});
  return member;
}

Result<std::size_t> remove_member(Turn& turn, const Caller& caller, const std::string& workspace,
                                  const std::string& user, JobsLeft jobs) {
  if (auto seen = may_see(caller, workspace); !seen) return fail(seen.error());
  if (!turn.state.members.contains({workspace, user}))
    return fail(ErrorCode::not_found, fmt::format("{} is no member of workspace {}", user, workspace),
                "slipway workspace member list " + workspace);
  drop_member(turn, {workspace, user});
  const std::size_t ended =
      end_jobs(turn, user, &workspace, jobs,
               fmt::format("cancelled: {} took {} out of workspace {}", caller.name, user, workspace));
  record_event_in(
      turn, workspace, "member.removed",
      fmt::format("{} took {} out of workspace {}{}", caller.name, user, workspace, and_jobs(ended)), {}, {});
  return ended;
}

bool is_login(const TokenRecord& token) { return !token.user.empty() && token.name == login_name; }

Result<TokenRecord> for_user(const State& state, TokenRecord token) {
  if (token.role == Role::node) return token;
  if (token.user.empty() && state.users.contains(token.name)) token.user = token.name;
  if (token.user.empty()) return token;
  const auto user = find_user(state, token.user);
  if (!user) return fail(user.error());
  if (user->is_disabled)
    return fail(ErrorCode::conflict, fmt::format("user {} is disabled", token.user),
                "slipway user enable " + token.user);
  const auto member = state.members.find({token.workspace, token.user});
  if (member == state.members.end())
    return fail(ErrorCode::conflict,
                fmt::format("{} is no member of workspace {}", token.user, token.workspace),
                fmt::format("slipway workspace member add {} {}", token.workspace, token.user));
  token.scope = scope_within(token.scope, token.role);
  token.role = member->second.role;
  return token;
}

Result<TokenRecord> sign_in(Turn& turn, SignIn request) {
  auto user = find_user(turn.state, request.user);
  // It may have changed while the password was compared.
  const bool is_right = user && (request.code.empty() ? user->password == request.password
                                                      : user->code == request.code && user->code_until &&
                                                            *user->code_until > turn.now);
  if (!is_right) return fail(ErrorCode::conflict, "the user was changed meanwhile", "try again");
  if (user->is_disabled)
    return fail(ErrorCode::denied, fmt::format("user {} is disabled", request.user), "ask an admin");
  // A code is not used up where it leads nowhere.
  if (const auto workspace = choose_workspace(turn.state, request); !workspace)
    return fail(workspace.error());
  if (!request.code.empty() || !request.new_password.empty()) {
    if (!request.code.empty()) {
      user->code.clear();
      user->code_until.reset();
    }
    if (!request.new_password.empty()) user->password = request.new_password;
    put_user(turn, *user);
  }
  return give_login(turn, std::move(request));
}

Result<TokenRecord> sign_in_provided(Turn& turn, const ProvidedUser& who, SignIn request) {
  auto user = provided_user(turn, who);
  if (!user) return fail(user.error());
  if (user->is_disabled)
    return fail(ErrorCode::denied, fmt::format("user {} is disabled", user->name), "ask an admin");
  for (const std::string& workspace : who.workspaces) {
    const bool stays = std::any_of(who.members.begin(), who.members.end(),
                                   [&](const MemberRecord& member) { return member.workspace == workspace; });
    if (!stays && turn.state.members.contains({workspace, user->name}))
      drop_member(turn, {workspace, user->name});
  }
  for (const MemberRecord& member : who.members)
    save_member(turn, {member.workspace, user->name, member.role});
  request.user = user->name;
  return give_login(turn, std::move(request));
}

Result<void> sign_out(Turn& turn, const std::string& token) {
  const auto found = std::find_if(turn.state.tokens.begin(), turn.state.tokens.end(),
                                  [&](const TokenRecord& one) { return one.id == token; });
  if (found == turn.state.tokens.end() || !is_login(*found))
    return fail(ErrorCode::conflict, "this token is not that of a sign-in",
                "to make it useless: slipway token revoke TOKEN");
  record_event_in(turn, found->workspace, "user.signed_out",
                  fmt::format("{} signed out of token {}", found->user, token), {}, {});
  drop_token(turn, token);
  return {};
}

}  // namespace slipway::control
