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

constexpr std::size_t token_size_max = 200;

// How long a sign-in is to be good for.
Duration read_login_time(FieldReader& reader, const Value& root) {
  constexpr Duration usual = std::chrono::hours(12), longest = std::chrono::hours(24 * 30);
  const Duration time = reader.duration("expires_in", usual);
  if (time < std::chrono::seconds(1) || time > longest)
    reader.problem(root, "expires_in should be from 1 second to 30 days", "leave it out for 12 hours");
  return time;
}

}  // namespace

std::string format(const UserRecord& user, std::optional<std::size_t> jobs_cancelled) {
  Json json{{"name", user.name},
            {"service", user.is_service},
            {"disabled", user.is_disabled},
            {"has_password", !user.password.empty()},
            {"invited_until", user.code_until ? Json(format_time(*user.code_until)) : Json()},
            {"author", user.author},
            {"provided", !user.subject.empty()},
            {"created_at", format_time(user.created_at)}};
  if (jobs_cancelled) json["jobs_cancelled"] = *jobs_cancelled;
  return dump(json);
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

Result<OidcRequest> parse_oidc_request(std::string_view json) {
  constexpr std::size_t challenge_size = 43;  // of SHA-256 in base64url
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  OidcRequest request{reader.text("redirect_uri"), reader.text("code_challenge")};
  if (request.challenge.size() != challenge_size)
    reader.problem(*root, "code_challenge is not a SHA-256 in base64url", "it is that of the code_verifier");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return request;
}

Result<OidcFinish> parse_oidc_finish(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  OidcFinish request;
  request.code = reader.text("code");
  request.verifier = reader.text("code_verifier");
  request.workspace = reader.text("workspace");
  request.expires_in = read_login_time(reader, *root);
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return request;
}

Result<LoginRequest> parse_login_request(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  LoginRequest request;
  request.user = reader.text("user");
  request.password = reader.text("password");
  request.code = reader.text("code");
  request.new_password = reader.text("new_password");
  request.workspace = reader.text("workspace");
  request.expires_in = read_login_time(reader, *root);
  if (request.user.empty() || request.password.empty() == request.code.empty())
    reader.problem(*root, "a sign-in needs user, and either password or code", "see docs/guide/users.md");
  if (request.password.size() > password_size_max || request.user.size() > 100)
    reader.problem(*root, "the user or the password is too long", "");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return request;
}

Result<BrowserLogin> parse_browser_login(std::string_view json) {
  auto root = parse_body(json);
  if (!root) return fail(root.error());
  FieldReader reader(*root, "the request", "");
  BrowserLogin request;
  request.token = reader.text("token");
  request.link_token = reader.text("link_token");
  if (request.token.empty() == request.link_token.empty())
    reader.problem(*root, "a sign-in of a browser needs either token or link_token", "see docs/guide/ui.md");
  if (request.token.size() > token_size_max || request.link_token.size() > token_size_max)
    reader.problem(*root, "the token is too long", "it has 64 letters or so");
  if (auto finished = reader.finish(); !finished) return fail(finished.error());
  return request;
}

}  // namespace slipway::wire
