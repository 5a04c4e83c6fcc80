#pragma once
// Users, members and sign-ins as the API's JSON.
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "domain/user.h"

namespace slipway::wire {

// Without password and code; of one who was disabled just now, with the number of jobs that were cancelled.
std::string format(const UserRecord& user, std::optional<std::size_t> jobs_cancelled = {});
std::string format(const MemberRecord& member);

struct UserRequest {
  std::string name;
  bool is_service = false;
  std::string password;                // empty: none
  std::optional<MemberRecord> member;  // of this workspace from the beginning
};
Result<UserRequest> parse_user_request(std::string_view json);
Result<Role> parse_member_request(std::string_view json);

struct LoginRequest {
  std::string user;
  std::string password;      // or
  std::string code;          // one of the two
  std::string new_password;  // the password from now on; empty: as it was
  std::string workspace;     // empty: the only one, or `default`
  Duration expires_in{};
};
Result<LoginRequest> parse_login_request(std::string_view json);

// Of a browser: the token it shows from now on, or the one-time token of a link.
struct BrowserLogin {
  std::string token;       // one
  std::string link_token;  // of the two
};
Result<BrowserLogin> parse_browser_login(std::string_view json);

struct OidcRequest {
  std::string redirect_url;
  std::string challenge;  // of PKCE, S256
};
Result<OidcRequest> parse_oidc_request(std::string_view json);
struct OidcFinish {
  std::string code, verifier;  // of the code flow
  std::string workspace;
  Duration expires_in{};
};
Result<OidcFinish> parse_oidc_finish(std::string_view json);

}  // namespace slipway::wire
