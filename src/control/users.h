#pragma once
// Users and the members of workspaces. A user's tokens follow: their role is that of the membership, lowered
// by what each is for, and they go with the membership or when the user is disabled, in the same turn.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/turn.h"
#include "domain/user.h"

namespace slipway::control {

// With `member`, of a workspace from the beginning. Tokens that the user held by name become the user's own.
Result<UserRecord> add_user(Turn& turn, const Caller& caller, UserRecord user,
                            const std::optional<MemberRecord>& member);
Result<UserRecord> enable_user(Turn& turn, const Caller& caller, const std::string& name);

// What becomes of the jobs of somebody who leaves and have not ended.
enum class JobsLeft : std::uint8_t { cancel, keep };
struct UserDisabled {
  UserRecord user;
  std::size_t jobs_cancelled = 0;
};
Result<UserDisabled> disable_user(Turn& turn, const Caller& caller, const std::string& name, JobsLeft jobs);
// How many jobs are cancelled.
Result<std::size_t> remove_user(Turn& turn, const Caller& caller, const std::string& name, JobsLeft jobs);
// A request of a user who has left meanwhile is refused.
Result<void> check_user(const State& state, const Caller& caller);
// A code to sign in with once, by its hash; the one before it is good no longer.
Result<UserRecord> invite_user(Turn& turn, const Caller& caller, const std::string& name,
                               const std::string& code_hash, Duration good_for);

// The workspace is there once it has a member.
Result<MemberRecord> put_member(Turn& turn, const Caller& caller, const MemberRecord& member);
// How many jobs are cancelled: those of the user in this workspace.
Result<std::size_t> remove_member(Turn& turn, const Caller& caller, const std::string& workspace,
                                  const std::string& user, JobsLeft jobs);

// Whether it was made by a sign-in.
bool is_login(const TokenRecord& token);
// A token that is made for a user has no more than the user.
Result<TokenRecord> for_user(const State& state, TokenRecord token);

// A sign-in whose password or code was found right.
struct SignIn {
  std::string user;
  std::string password{};      // the hash that the password was compared with, or
  std::string code{};          // that of the code, which is used now
  std::string new_password{};  // its hash; empty: none is set
  std::string workspace{};     // empty: the only one of the user, or `default`
  TokenRecord token{};         // with its id, hash and expiry
};
Result<TokenRecord> sign_in(Turn& turn, SignIn request);
// Somebody whom the provider of OpenID Connect named. A user comes into being at the first sign-in; where
// groups decide who the members of a workspace are, the memberships follow them at each. Jobs of a membership
// that a group took away continue: a provider that says too little for a day ends no training of a week.
struct ProvidedUser {
  std::string name;
  std::string subject;
  std::vector<MemberRecord> members{};  // by groups; of `user` nothing is looked at
  std::set<std::string> workspaces{};   // whose members groups decide
};
Result<TokenRecord> sign_in_provided(Turn& turn, const ProvidedUser& who, SignIn request);
// Only tokens of sign-ins: others are revoked by name.
Result<void> sign_out(Turn& turn, const std::string& token);

}  // namespace slipway::control
