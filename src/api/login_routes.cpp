// Signing in with a password or a code, and out again.
#include <fmt/format.h>

#include "api/api.h"
#include "base/log.h"
#include "base/password.h"
#include "base/sha256.h"
#include "wire/records.h"
#include "wire/users.h"

namespace slipway::api {

using control::Controller;
using control::ReadStore;

namespace {

// Of passwords that wait to be compared, one after the other: they are together bounded in memory and time.
constexpr std::size_t sign_ins_max = 32;

net::Response not_signed_in() {
  return problem_with(401, {ErrorCode::denied, "the user, or the password or code, is not right",
                            "an admin can make another code: slipway user invite NAME"});
}

std::string key_of_user(const std::string& user) { return "user " + user; }

}  // namespace

// A guess counts before its password is compared, so that many at once gain nothing.
void Api::sign_in(const Call& call, const wire::LoginRequest& request) {
  const TimePoint now = clock_.now();
  const std::string peer = peer_network(call.request().peer), user = key_of_user(request.user);
  const Duration wait = std::max(failed_sign_ins_.wait(peer, now), failed_sign_ins_.wait(user, now));
  if (wait > Duration(0)) return call.send(too_many_failures(wait));
  if (signing_in_ >= sign_ins_max)
    return call.send(problem({ErrorCode::unavailable, "too many sign in at once", "try again in a second"}));
  failed_sign_ins_.begin(peer, now);
  failed_sign_ins_.begin(user, now);
  ++signing_in_;
  const auto done = std::shared_ptr<void>(nullptr, [this](void*) { loop_.post([this] { --signing_in_; }); });
  read<std::optional<UserRecord>>(
      call, [name = request.user](ReadStore& store) { return store.user(name); },
      [this, call, request, done](const std::optional<UserRecord>& found) {
        const UserRecord known = found.value_or(UserRecord{});
        const bool posted = passwords_.post([this, call, request, known, done] {
          const auto checked = std::make_shared<Result<control::SignIn>>(check_sign_in(request, known));
          call.loop().post([this, call, checked, done] { finish_sign_in(call, *checked); });
        });
        if (!posted) call.send(problem({ErrorCode::unavailable, "too many sign in at once", ""}));
      });
}

// On the thread for passwords.
Result<control::SignIn> Api::check_sign_in(const wire::LoginRequest& request, const UserRecord& known) const {
  control::SignIn sign_in{.user = request.user, .workspace = request.workspace};
  bool is_right = false;
  if (request.code.empty()) {
    is_right = is_password(request.password, known.password);
    sign_in.password = known.password;
  } else {
    sign_in.code = sha256_hex(request.code);
    is_right = !known.code.empty() && sign_in.code == known.code && known.code_until &&
               *known.code_until > clock_.now();
  }
  if (!is_right) return fail(ErrorCode::denied, "");
  if (!request.new_password.empty()) {
    auto hash = hash_password(request.new_password);
    if (!hash) return fail(hash.error());
    sign_in.new_password = std::move(*hash);
  }
  sign_in.token.expires_at = clock_.now() + request.expires_in;
  return sign_in;
}

void Api::finish_sign_in(const Call& call, const Result<control::SignIn>& checked) {
  if (!checked) {
    if (!checked.error().what.empty()) return call.send(problem(checked.error()));
    log::warning("login.failed", {{"from", call.request().peer}});
    return call.send(not_signed_in());
  }
  failed_sign_ins_.succeeded(peer_network(call.request().peer), clock_.now());
  failed_sign_ins_.forget(key_of_user(checked->user));
  const NewSecret made = make_secret();
  control::SignIn sign_in = *checked;
  sign_in.token.id = made.id;
  sign_in.token.hash = made.hash;
  change<TokenRecord>(
      call, [sign_in](Controller& c) { return c.sign_in(sign_in); },
      [secret = made.secret](const TokenRecord& token) { return json(201, wire::format(token, secret)); });
}

void Api::add_login_routes() {
  router_.add("POST", "/v1/login", {Object::login, Verb::create}, [this](const Call& call) {
    auto request = wire::parse_login_request(call.request().body);
    if (!request) return call.send(problem(request.error()));
    sign_in(call, *request);
  });
  router_.add("DELETE", "/v1/login", {Object::login, Verb::remove}, [this](const Call& call) {
    const TokenRecord* token = identify(call.request());
    const std::string id = token ? token->id : "";
    call.exchange().opened_with({});  // this answer is not cut with what the token opened
    change<bool>(
        call, [id](Controller& c) { return c.sign_out(id).map([] { return true; }); },
        [](bool) { return net::Response{204}; });
  });
}

}  // namespace slipway::api
