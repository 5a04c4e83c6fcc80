// Tokens: who may ask, and by what machines join.
#include <fmt/format.h>

#include "api/api.h"
#include "api/list.h"
#include "base/random.h"
#include "base/sha256.h"
#include "domain/job.h"
#include "wire/records.h"

namespace slipway::api {

using control::Controller;

void Api::add_token_routes() {
  // The admins of the workspace `default` run the service; others only see their own workspace.
  router_.add("GET", "/v1/tokens", {Object::token, Verb::read}, [this](const Call& call) {
    std::vector<TokenRecord> seen;
    for (const TokenRecord& token : tokens_.all())
      if (call.caller.workspace == "default" || token.workspace == call.caller.workspace)
        seen.push_back(token);
    call.send(list_response(seen));
  });
  router_.add("POST", "/v1/tokens", {Object::token, Verb::create}, [this](const Call& call) {
    auto request = wire::parse_token_request(call.request().body);
    if (!request) return call.send(problem(request.error()));
    if (auto named = validate_name("token", request->name); !named) return call.send(problem(named.error()));
    if (auto named = validate_name("workspace", request->workspace); !named)
      return call.send(problem(named.error()));
    if (call.caller.workspace != "default" && request->workspace != call.caller.workspace)
      return call.send(problem({ErrorCode::denied,
                                fmt::format("an admin of workspace {} cannot make tokens for {}",
                                            call.caller.workspace, request->workspace),
                                "ask an admin of workspace default"}));
    if (auto may = may_let_in(call.caller, request->workspace, request->name, request->role); !may)
      return call.send(problem(may.error()));
    // Known once, here; only its hash is kept.
    const std::string secret = "slipway_" + random_hex(24);
    TokenRecord token{"token_" + random_hex(4), request->name, request->workspace, request->role,
                      sha256_hex(secret),       clock_.now(),  call.caller.name};
    token.uses_left = request->uses;
    change<TokenRecord>(
        call,
        [token](Controller& c) -> Result<TokenRecord> {
          c.add_token(token);
          return token;
        },
        [secret](const TokenRecord& made) { return json(201, wire::format(made, secret)); });
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

}  // namespace slipway::api
