// Signing in by the provider of OpenID Connect: begun here, gone through at the provider, finished here.
#include <fmt/format.h>

#include "api/api.h"
#include "base/log.h"
#include "domain/job.h"
#include "wire/records.h"

namespace slipway::api {

using control::Controller;

namespace {

Error no_provider() {
  return {
      ErrorCode::not_found, "this service has no provider to sign in by",
      "sign in with a password: slipway login --user NAME; providers are set up by slipway up --oidc-issuer"};
}

std::string format(const OidcSignIns::Begun& begun) {
  std::vector<std::pair<std::string, std::string>> fields{
      {"id", wire::quote(begun.id)},
      {"url", wire::quote(begun.url)},
      {"expires_at", wire::quote(format_time(begun.expires_at))}};
  if (!begun.state.empty()) fields.emplace_back("state", wire::quote(begun.state));
  if (!begun.user_code.empty()) {
    fields.emplace_back("user_code", wire::quote(begun.user_code));
    fields.emplace_back("interval",
                        std::to_string(std::chrono::ceil<std::chrono::seconds>(begun.interval).count()));
  }
  return wire::format_object(fields);
}

// ana@example.org and Ana Lima are ana_example.org and Ana_Lima here.
std::string name_of(const oidc::Identity& who) {
  std::string name = who.name.substr(0, 100);
  for (char& c : name)
    if (!validate_name("user", std::string("a") + c)) c = '_';
  return name;
}

}  // namespace

void Api::finish_oidc(const Call& call, const wire::OidcFinish& request, const oidc::Identity& who) {
  const control::ProvidedUser user{name_of(who), options_.oidc->issuer + " " + who.subject,
                                   options_.oidc_groups.members(who.groups),
                                   options_.oidc_groups.workspaces()};
  if (auto named = validate_name("user", user.name); !named) return call.send(problem(named.error()));
  for (const MemberRecord& member : user.members)
    if (auto may = may_let_in({}, member.workspace, user.name, member.role); !may)
      return call.send(problem(may.error()));
  const NewSecret made = make_secret();
  control::SignIn sign_in{.workspace = request.workspace};
  sign_in.token.id = made.id;
  sign_in.token.hash = made.hash;
  sign_in.token.expires_at = clock_.now() + request.expires_in;
  change<TokenRecord>(
      call, [user, sign_in](Controller& c) { return c.sign_in_provided(user, sign_in); },
      [secret = made.secret](const TokenRecord& token) { return json(201, wire::format(token, secret)); });
}

void Api::add_oidc_routes() {
  if (options_.oidc) oidc_ = std::make_unique<OidcSignIns>(loop_, clock_, *options_.oidc);
  const auto begun = [](const Call& call) {
    return [call](const Result<OidcSignIns::Begun>& answer) {
      call.send(answer ? json(201, format(*answer)) : problem(answer.error()));
    };
  };
  router_.add("POST", "/v1/login/oidc", {Object::login, Verb::create}, [this, begun](const Call& call) {
    auto request = wire::parse_oidc_request(call.request().body);
    if (!request) return call.send(problem(request.error()));
    if (!oidc_) return call.send(problem(no_provider()));
    oidc_->begin(request->redirect_url, request->challenge, begun(call));
  });
  router_.add("POST", "/v1/login/oidc/device", {Object::login, Verb::create},
              [this, begun](const Call& call) {
                if (!oidc_) return call.send(problem(no_provider()));
                const TimePoint now = clock_.now();
                const std::string peer =
                    "device " + peer_network(call.request().peer);  // each begins one at the provider
                if (const Duration wait = failed_sign_ins_.wait(peer, now); wait > Duration(0))
                  return call.send(too_many_failures(wait));
                failed_sign_ins_.begin(peer, now);
                oidc_->begin_device(begun(call));
              });
  router_.add("POST", "/v1/login/oidc/{login}", {Object::login, Verb::create}, [this](const Call& call) {
    auto request = wire::parse_oidc_finish(call.request().body);
    if (!request) return call.send(problem(request.error()));
    if (!oidc_) return call.send(problem(no_provider()));
    const TimePoint now = clock_.now();
    const std::string peer = peer_network(call.request().peer);
    if (const Duration wait = failed_sign_ins_.wait(peer, now); wait > Duration(0))
      return call.send(too_many_failures(wait));
    oidc_->finish(
        call.part("login"), request->code, request->verifier,
        [this, call, request = *request, peer](const Result<std::optional<oidc::Identity>>& who) {
          if (!who) {
            failed_sign_ins_.begin(peer, clock_.now());
            log::warning("login.failed", {{"from", call.request().peer}, {"why", who.error().what}});
            return call.send(problem(who.error()));
          }
          if (!*who) return call.send(json(202, wire::format_object({{"state", wire::quote("pending")}})));
          failed_sign_ins_.forget("device " + peer);
          finish_oidc(call, request, **who);
        });
  });
}

}  // namespace slipway::api
