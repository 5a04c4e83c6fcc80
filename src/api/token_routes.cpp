// Tokens: who may ask, and by what machines join.
#include <fmt/format.h>

#include "api/api.h"
#include "api/list.h"
#include "base/log.h"
#include "base/sha256.h"
#include "control/catalog.h"
#include "domain/job.h"
#include "wire/records.h"

namespace slipway::api {

using control::Controller;

void Api::add_token_routes() {
  // The admins of the workspace `default` run the service; those of others see their own workspace, and who
  // is no admin tokens of their own.
  router_.add("GET", "/v1/tokens", {Object::token, Verb::read}, [this](const Call& call) {
    std::vector<TokenRecord> seen;
    const bool is_admin = call.caller.role == Role::admin;
    for (const TokenRecord& token : tokens_.all())
      if (is_admin ? call.caller.workspace == "default" || token.workspace == call.caller.workspace
                   : control::is_own_token(call.caller, token))
        seen.push_back(token);
    call.send(list_response(seen));
  });
  router_.add("POST", "/v1/tokens", {Object::token, Verb::create}, [this](const Call& call) {
    auto request = wire::parse_token_request(call.request().body);
    if (!request) return call.send(problem(request.error()));
    if (auto named = validate_name("token", request->name); !named) return call.send(problem(named.error()));
    if (request->workspace.empty()) request->workspace = call.caller.workspace;
    if (auto named = validate_name("workspace", request->workspace); !named)
      return call.send(problem(named.error()));
    const bool is_admin = call.caller.role == Role::admin;
    if (is_admin && call.caller.workspace != "default" && request->workspace != call.caller.workspace)
      return call.send(problem({ErrorCode::denied,
                                fmt::format("an admin of workspace {} cannot make tokens for {}",
                                            call.caller.workspace, request->workspace),
                                "ask an admin of workspace default"}));
    if (is_admin) {  // who is none only makes what the caller is already
      if (auto may = may_let_in(call.caller, request->workspace,
                                request->user.empty() ? request->name : request->user,
                                lowered(request->role, request->scope));
          !may)
        return call.send(problem(may.error()));
    }
    const NewSecret made = make_secret();
    TokenRecord token{made.id,   request->name, request->workspace, request->role,
                      made.hash, clock_.now(),  call.caller.name};
    token.uses_left = request->uses;
    token.scope = request->scope;
    token.pool = request->pool;
    token.user = request->user;
    if (request->expires_in) token.expires_at = token.created_at + *request->expires_in;
    change<TokenRecord>(
        call, [call, token](Controller& c) { return c.add_token(call.caller, token); },
        [secret = made.secret](const TokenRecord& token) { return json(201, wire::format(token, secret)); });
  });
  router_.add("POST", "/v1/tokens/{token}/rotate", {Object::token, Verb::update}, [this](const Call& call) {
    auto expires_in = wire::parse_rotate_request(call.request().body);
    if (!expires_in) return call.send(problem(expires_in.error()));
    const NewSecret made = make_secret();
    const control::Rotation rotation{
        made.id, made.hash, *expires_in, {options_.own_admin_hash, options_.local_nodes_hash}};
    change<TokenRecord>(
        call,
        [call, rotation](Controller& c) { return c.rotate_token(call.caller, call.part("token"), rotation); },
        [secret = made.secret](const TokenRecord& token) { return json(201, wire::format(token, secret)); });
  });
  router_.add("DELETE", "/v1/tokens/{token}", {Object::token, Verb::remove}, [this](const Call& call) {
    change<bool>(
        call,
        [call](Controller& c) -> Result<bool> {
          return c.revoke_token(call.caller, call.part("token")).map([] { return true; });
        },
        [](bool) { return net::Response{204}; });
  });
}

std::optional<net::Response> Api::refuse_guess(const net::Request& head) {
  const auto shown = shown_token(head);
  if (!shown) return std::nullopt;
  const TimePoint now = clock_.now();
  const std::string peer = peer_network(head.peer);
  if (const Duration wait = failed_sign_ins_.wait(peer, now); wait > Duration(0))
    return too_many_failures(wait);
  failed_sign_ins_.begin(peer, now, sha256_hex(*shown).substr(0, 16));
  return std::nullopt;
}

// At most once a minute, so that reads cost no write each.
void Api::note_use(const std::string& token) {
  tokens_.use(token, clock_.now());
  if (!saving_token_use_)
    saving_token_use_ = loop_.after(std::chrono::minutes(1), [this] { save_token_use(); });
}

void Api::save_token_use() {
  saving_token_use_.reset();
  control_.change(
      [used = tokens_.take_used()](Controller& c) {
        c.note_token_use(used);
        return [] {};
      },
      [](const Error& error) {
        log::warning("token.last_use", {{"why", error.what}});
      });
}

}  // namespace slipway::api
