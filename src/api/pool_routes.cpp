// Pools and tokens.
#include <fmt/format.h>

#include "api/api.h"
#include "api/list.h"
#include "api/secrets.h"
#include "base/random.h"
#include "base/sha256.h"
#include "wire/formula.h"
#include "wire/pool.h"
#include "wire/records.h"

namespace slipway::api {

void Api::add_pool_routes() {
  using control::Controller;
  using control::ReadStore;
  using control::Snapshot;
  router_.add("GET", "/v1/pools", Role::viewer, [this](const Call& call) {
    answer_live(call, [call](const Snapshot& live, ReadStore&) -> Result<net::Response> {
      return list_response(live.pools_of(call.caller.workspace));
    });
  });
  router_.add("POST", "/v1/pools", Role::member, [this](const Call& call) {
    auto request = wire::parse_pool_request(call.request().body);
    if (!request) return call.send(problem(request.error()));
    seal_secrets(*options_.sealer, *request);
    change<PoolView>(
        call, [call, request = *request](Controller& c) { return c.create_pool(call.caller, request); },
        [](const PoolView& view) {
          net::Response response = json(201, wire::format(view));
          response.headers.emplace_back("Location", "/v1/pools/" + view.pool.name);
          return response;
        });
  });
  router_.add("GET", "/v1/pools/{pool}", Role::viewer, [this](const Call& call) {
    answer_live(call, [call](const Snapshot& live, ReadStore&) {
      return live.pool(call.caller.workspace, call.part("pool")).map([](const PoolView& view) {
        return json(200, wire::format(view));
      });
    });
  });
  router_.add("PATCH", "/v1/pools/{pool}", Role::member, [this](const Call& call) {
    auto request = wire::parse_pool_request(call.request().body);
    if (!request) return call.send(problem(request.error()));
    seal_secrets(*options_.sealer, *request);
    change<PoolView>(
        call,
        [call, request = *request](Controller& c) {
          return c.resize_pool(call.caller, call.part("pool"), request);
        },
        [](const PoolView& view) { return json(200, wire::format(view)); });
  });
  router_.add("DELETE", "/v1/pools/{pool}", Role::member, [this](const Call& call) {
    change<bool>(
        call,
        [call](Controller& c) -> Result<bool> {
          const bool force = call.parameter("force").value_or("false") == "true";
          return c.delete_pool(call.caller, call.part("pool"), force).map([] { return true; });
        },
        [](const bool&) { return net::Response{204}; });
  });
  router_.add("POST", "/v1/pools/{pool}/resize/stop", Role::member, [this](const Call& call) {
    change<PoolView>(
        call, [call](Controller& c) { return c.stop_resize(call.caller, call.part("pool")); },
        [](const PoolView& view) { return json(200, wire::format(view)); });
  });
  router_.add("POST", "/v1/pools/{pool}/autoscale/evaluate", Role::viewer, [this](const Call& call) {
    auto text = wire::parse_evaluate_request(call.request().body);
    if (!text) return call.send(problem(text.error()));
    explain<Controller::Evaluation>(
        call,
        [call, text = *text](Controller& c) {
          return c.evaluate_autoscale(call.caller, call.part("pool"), text);
        },
        [](const Controller::Evaluation& evaluation, ReadStore&) -> Result<net::Response> {
          return json(200, wire::format_evaluation(evaluation.outcome, evaluation.run));
        });
  });
  router_.add("GET", "/v1/pools/{pool}/history", Role::viewer, [this](const Call& call) {
    const auto limit = limit_of(call);
    if (!limit) return call.send(problem(limit.error()));
    answer_live(call,
                [call, limit = *limit](const Snapshot& live, ReadStore& store) -> Result<net::Response> {
                  auto pool = live.pool(call.caller.workspace, call.part("pool"));
                  if (!pool) return fail(pool.error());
                  return store.pool_history(call.caller.workspace, call.part("pool"), limit)
                      .map(list_response<PoolMoment>);
                });
  });

  // The admins of the workspace `default` run the service; others only see their own workspace.
  router_.add("GET", "/v1/tokens", Role::admin, [this](const Call& call) {
    std::vector<TokenRecord> seen;
    for (const TokenRecord& token : tokens_)
      if (call.caller.workspace == "default" || token.workspace == call.caller.workspace)
        seen.push_back(token);
    call.send(list_response(seen));
  });
  router_.add("POST", "/v1/tokens", Role::admin, [this](const Call& call) {
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
    // Known once, here; only its hash is kept.
    const std::string secret = "slipway_" + random_hex(24);
    const TokenRecord token{"token_" + random_hex(4), request->name, request->workspace, request->role,
                            sha256_hex(secret),       clock_.now()};
    change<std::vector<TokenRecord>>(
        call,
        [token](Controller& c) -> Result<std::vector<TokenRecord>> {
          c.add_token(token);
          return c.tokens();
        },
        [this, token, secret](const std::vector<TokenRecord>& tokens) {
          tokens_ = tokens;
          return json(201, wire::format(token, secret));
        });
  });
  router_.add("DELETE", "/v1/tokens/{token}", Role::admin, [this](const Call& call) {
    change<std::vector<TokenRecord>>(
        call,
        [call](Controller& c) -> Result<std::vector<TokenRecord>> {
          return c.revoke_token(call.caller, call.part("token")).map([&] { return c.tokens(); });
        },
        [this](const std::vector<TokenRecord>& tokens) {
          tokens_ = tokens;
          return net::Response{204};
        });
  });
}

}  // namespace slipway::api
