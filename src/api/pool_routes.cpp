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

namespace {

// What a compatibility API files its pools under is its own: not shown, and kept whatever tags a client sets.
PoolView without_reserved(PoolView view, const std::vector<ReservedTags>& reserved) {
  view.pool.tags = own_tags(view.pool.tags, reserved);
  return view;
}

std::vector<PoolView> without_reserved(std::vector<PoolView> views,
                                       const std::vector<ReservedTags>& reserved) {
  for (PoolView& view : views) view = without_reserved(std::move(view), reserved);
  return views;
}

Result<PoolView> change_pool(control::Controller& controller, const control::Caller& caller,
                             const std::string& name, PoolRequest request,
                             const std::vector<ReservedTags>& reserved) {
  if (request.tags)
    if (const auto known = controller.pool(caller, name))
      for (const auto& [tag, value] : known->pool.tags)
        if (owner_of_tag(tag, reserved)) (*request.tags)[tag] = value;
  return controller.resize_pool(caller, name, request);
}

}  // namespace

void Api::add_pool_routes() {
  using control::Controller;
  using control::ReadStore;
  using control::Snapshot;
  router_.add("GET", "/v1/pools", {Object::pool, Verb::read}, [this](const Call& call) {
    const bool deleted = call.parameter("deleted") == "true";
    answer_live(call, [this, call, deleted](const Snapshot& live, ReadStore& store) -> Result<net::Response> {
      if (!deleted)
        return list_response(without_reserved(live.pools_of(call.caller.workspace), reserved_tags_));
      auto pools = store.deleted_pools(call.caller.workspace);
      if (!pools) return fail(pools.error());
      std::vector<PoolView> views;
      for (PoolRecord& pool : *pools) views.push_back({std::move(pool), {}, {}, {}, true});
      return list_response(without_reserved(std::move(views), reserved_tags_));
    });
  });
  router_.add("POST", "/v1/pools", {Object::pool, Verb::create}, [this](const Call& call) {
    auto request = wire::parse_pool_request(call.request().body, reserved_tags_);
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
    answer_live(call, [this, call](const Snapshot& live, ReadStore&) {
      return live.pool(call.caller.workspace, call.part("pool")).map([this](const PoolView& view) {
        return json(200, wire::format(without_reserved(view, reserved_tags_)));
      });
    });
  });
  router_.add("PATCH", "/v1/pools/{pool}", {Object::pool, Verb::update}, [this](const Call& call) {
    auto request = wire::parse_pool_request(call.request().body, reserved_tags_);
    if (!request) return call.send(problem(request.error()));
    seal_secrets(*options_.sealer, *request);
    change<PoolView>(
        call,
        [this, call, request = *request](Controller& c) {
          return change_pool(c, call.caller, call.part("pool"), request, reserved_tags_);
        },
        [this](const PoolView& view) {
          return json(200, wire::format(without_reserved(view, reserved_tags_)));
        });
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
        [this](const PoolView& view) {
          return json(200, wire::format(without_reserved(view, reserved_tags_)));
        });
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
