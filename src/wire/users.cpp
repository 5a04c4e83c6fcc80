#include "wire/users.h"

#include <fmt/format.h>

#include "base/password.h"
#include "wire/fields.h"
#include "wire/json.h"

namespace slipway::wire {
namespace {

Role read_role(FieldReader& reader, const Value& root, const std::string& otherwise) {
  const std::string text = reader.text("role", otherwise);
  const auto role = parse_role(text);
  if (role && *role != Role::node) return *role;
  reader.problem(root, fmt::format("a member cannot have the role '{}'", text),
                 "the roles are admin, member and viewer");
  return Role::viewer;
}

}  // namespace

std::string format(const UserRecord& user) {
  return dump({{"name", user.name},
               {"service", user.is_service},
               {"disabled", user.is_disabled},
               {"has_password", !user.password.empty()},
               {"invited_until", user.code_until ? Json(format_time(*user.code_until)) : Json()},
               {"author", user.author},
               {"created_at", format_time(user.created_at)}});
}

std::string format(const MemberRecord& member) {
  return dump({{"workspace", member.workspace}, {"user", member.user}, {"role", to_string(member.role)}});
}

Result<UserRequest> parse_user_request(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  UserRequest request;
  request.name = reader.text("name");
  request.is_service = reader.boolean("service", false);
  request.password = reader.text("password");
  if (request.is_service && !request.password.empty())
    reader.problem(*root, "a service account has no password: it never signs in",
                   "make it a token: slipway token create NAME --user " + request.name);
  const bool joins = reader.has("workspace") || reader.has("role");
  MemberRecord member{reader.text("workspace", "default"), request.name, read_role(reader, *root, "member")};
  if (joins) request.member = std::move(member);
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return request;
}

Result<Role> parse_member_request(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  const Role role = read_role(reader, *root, "member");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return role;
}

Result<LoginRequest> parse_login_request(std::string_view json) {
  constexpr Duration usual = std::chrono::hours(12), longest = std::chrono::hours(24 * 30);
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  LoginRequest request;
  request.user = reader.text("user");
  request.password = reader.text("password");
  request.code = reader.text("code");
  request.new_password = reader.text("new_password");
  request.workspace = reader.text("workspace");
  request.expires_in = reader.duration("expires_in", usual);
  if (request.user.empty() || request.password.empty() == request.code.empty())
    reader.problem(*root, "a sign-in needs user, and either password or code", "see docs/guide/users.md");
  if (request.password.size() > password_size_max || request.user.size() > 100)
    reader.problem(*root, "the user or the password is too long", "");
  if (request.expires_in < std::chrono::seconds(1) || request.expires_in > longest)
    reader.problem(*root, "expires_in should be from 1 second to 30 days", "leave it out for 12 hours");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return request;
}

}  // namespace slipway::wire
