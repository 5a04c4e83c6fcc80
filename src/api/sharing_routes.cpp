// What waits in the pools, and where the time of their nodes went.
#include "api/api.h"
#include "api/list.h"
#include "control/explain.h"
#include "wire/records.h"
#include "wire/usage.h"

namespace slipway::api {

using control::LiveView;
using control::ReadStore;

static Result<net::Response> show_job_usage(const JobRecord& job, const LiveView* live, ReadStore& store) {
  if (live) {
    UsageMeter meter = live->job->usage;
    meter.advance(live->now);
    return json(200, wire::format(usage_of_job(meter)));
  }
  return store.job_usage(job.id).map(
      [](const UsageMeter& meter) { return json(200, wire::format(usage_of_job(meter))); });
}

void Api::add_sharing_routes() {
  router_.add("GET", "/v1/queue", {Object::event, Verb::read}, [this](const Call& call) {
    auto limit = limit_of(call);
    if (!limit) return call.send(problem(limit.error()));
    const std::string pool = call.parameter("pool").value_or("");
    explain(call, {.workspace = call.caller.workspace, .pool = pool},
            [pool, limit = *limit](const LiveView& live, ReadStore&) -> Result<net::Response> {
              return control::list_queue(live, pool, limit).map([](const std::vector<QueueLine>& lines) {
                return list_response(lines);
              });
            });
  });
  router_.add("GET", "/v1/pools/{pool}/usage", {Object::pool, Verb::read}, [this](const Call& call) {
    answer_live(call, [this, call](const control::Snapshot& live, ReadStore&) -> Result<net::Response> {
      return live.usage(call.caller.workspace, call.part("pool"), clock_.now()).map([](const Usage& usage) {
        return json(200, wire::format(usage));
      });
    });
  });
  router_.add("GET", "/v1/jobs/{job}/usage", {Object::job, Verb::read},
              [this](const Call& call) { explain_job(call, true, show_job_usage); });
}

}  // namespace slipway::api
