// Pools.
#include <fmt/format.h>

#include <algorithm>

#include "api/api.h"
#include "api/list.h"
#include "api/secrets.h"
#include "control/scale.h"
#include "wire/formula.h"
#include "wire/pool.h"
#include "wire/records.h"

namespace slipway::api {

void Api::add_pool_routes() {
  using control::Controller;
  using control::ReadStore;
  using control::Snapshot;
  router_.add("GET", "/v1/pools", {Object::pool, Verb::read}, [this](const Call& call) {
    const bool deleted = call.parameter("deleted") == "true";
    answer_live(call, [call, deleted](const Snapshot& live, ReadStore& store) -> Result<net::Response> {
      if (!deleted) return list_response(live.pools_of(call.caller.workspace));
      auto pools = store.deleted_pools(call.caller.workspace);
      if (!pools) return fail(pools.error());
      std::vector<PoolView> views;
      for (PoolRecord& pool : *pools) views.push_back({std::move(pool), {}, {}, {}, true});
      return list_response(views);
    });
  });
  router_.add("POST", "/v1/pools", {Object::pool, Verb::create}, [this](const Call& call) {
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
  router_.add("GET", "/v1/pools/{pool}", {Object::pool, Verb::read}, [this](const Call& call) {
    answer_live(call, [call](const Snapshot& live, ReadStore&) {
      return live.pool(call.caller.workspace, call.part("pool")).map([](const PoolView& view) {
        return json(200, wire::format(view));
      });
    });
  });
  router_.add("PATCH", "/v1/pools/{pool}", {Object::pool, Verb::update}, [this](const Call& call) {
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
  router_.add("DELETE", "/v1/pools/{pool}", {Object::pool, Verb::remove}, [this](const Call& call) {
    change<bool>(
        call,
        [call](Controller& c) -> Result<bool> {
          const bool force = call.parameter("force").value_or("false") == "true";
          return c.delete_pool(call.caller, call.part("pool"), force).map([] { return true; });
        },
        [](const bool&) { return net::Response{204}; });
  });
  router_.add("POST", "/v1/pools/{pool}/resize/stop", {Object::pool, Verb::update}, [this](const Call& call) {
    change<PoolView>(
        call, [call](Controller& c) { return c.stop_resize(call.caller, call.part("pool")); },
        [](const PoolView& view) { return json(200, wire::format(view)); });
  });
  router_.add("POST", "/v1/pools/{pool}/autoscale/evaluate", {Object::pool, Verb::read},
              [this](const Call& call) {
                auto text = wire::parse_evaluate_request(call.request().body);
                if (!text) return call.send(problem(text.error()));
                const std::string pool = call.part("pool");
                explain(call, {.workspace = call.caller.workspace, .pool = pool, .only_samples = true},
                        [pool, text = *text](const control::LiveView& live, ReadStore&) {
                          return control::evaluate_autoscale(live, pool, text)
                              .map([](const control::Evaluation& evaluation) {
                                return json(200, wire::format_evaluation(evaluation.outcome, evaluation.run));
                              });
                        });
              });
  router_.add("GET", "/v1/pools/{pool}/history", {Object::pool, Verb::read}, [this](const Call& call) {
    const auto limit = limit_of(call);
    if (!limit) return call.send(problem(limit.error()));
    answer_live(call,
                [call, limit = *limit](const Snapshot& live, ReadStore& store) -> Result<net::Response> {
                  auto pool = live.pool(call.caller.workspace, call.part("pool"));
                  if (!pool) return fail(pool.error());
                  return store.pool_history(call.caller.workspace, call.part("pool"), limit)
                      .map(list_response<PoolHistoryEntry>);
                });
  });
}

}  // namespace slipway::api
