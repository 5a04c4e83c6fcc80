#pragma once
// Users, and what they may do in which workspace. A service has none until the first is added: then tokens
// say by themselves who holds them.
#include <algorithm>
#include <optional>
#include <string>

#include "base/clock.h"
#include "domain/access.h"

namespace slipway {

struct UserRecord {
  std::string name;
  bool is_service = false;   // the account of a program: it has tokens and never signs in
  bool is_disabled = false;  // has no tokens and gets none
  std::string password{};    // its hash (base/password.h); empty: there is none
  std::string code{};        // SHA-256 of a code that signs in once; empty: there is none
  std::optional<TimePoint> code_until{};
  std::string author{};  // who added the user
  TimePoint created_at{};
  std::string subject{};  // what the OpenID Connect provider calls the user; empty: signs in here
  friend bool operator==(const UserRecord&, const UserRecord&) = default;
};

struct MemberRecord {
  std::string workspace;
  std::string user;
  Role role = Role::member;
  friend bool operator==(const MemberRecord&, const MemberRecord&) = default;
};

// What a token for so much keeps of it where it was made with this role: the two lower each other.
constexpr TokenScope scope_within(TokenScope scope, Role role) {
  if (role == Role::viewer) return TokenScope::read;
  return role == Role::member ? std::min(scope, TokenScope::submit) : scope;
}

}  // namespace slipway
