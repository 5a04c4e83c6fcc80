// What waits in the pools, and where the time of their nodes went.
#include "api/api.h"
#include "api/list.h"
#include "wire/records.h"
#include "wire/usage.h"

namespace slipway::api {

void Api::add_sharing_routes() {
  using control::Controller;
  using control::ReadStore;
  router_.add("GET", "/v1/queue", Role::viewer, [this](const Call& call) {
    auto limit = limit_of(call);
    if (!limit) return call.send(problem(limit.error()));
    explain<std::vector<QueueLine>>(
        call,
        [call, limit = *limit](Controller& c) {
          return c.queue(call.caller, call.parameter("pool").value_or(""), limit);
        },
        [](const std::vector<QueueLine>& lines, ReadStore&) -> Result<net::Response> {
          return list_response(lines);
        });
  });
  router_.add("GET", "/v1/pools/{pool}/usage", Role::viewer, [this](const Call& call) {
    explain<Usage>(
        call, [call](Controller& c) { return c.pool_usage(call.caller, call.part("pool")); },
        [](const Usage& usage, ReadStore&) -> Result<net::Response> {
          return json(200, wire::format(usage));
        });
  });
  router_.add("GET", "/v1/jobs/{job}/usage", Role::viewer, [this](const Call& call) {
    explain<Usage>(
        call,
        [call](Controller& c) {
          return c.find_job(call.caller, call.part("job")).and_then([&](const JobRecord& job) {
            return c.job_usage(job);
          });
        },
        [](const Usage& usage, ReadStore&) -> Result<net::Response> {
          return json(200, wire::format(usage));
        });
  });
}

}  // namespace slipway::api
