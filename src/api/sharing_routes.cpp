// What waits in the pools, and where the time of their nodes went.
#include "api/api.h"
#include "wire/records.h"
#include "wire/usage.h"

namespace slipway::api {

void Api::add_sharing_routes() {
  using control::Controller;
  router_.add("GET", "/v1/queue", Role::viewer, [this](const Call& call) {
    auto limit = limit_of(call);
    if (!limit) return call.send(problem(limit.error()));
    answer<std::vector<QueueLine>>(
        call,
        [call, limit = *limit](Controller& c) {
          return c.queue(call.caller, call.parameter("pool").value_or(""), limit);
        },
        [](const std::vector<QueueLine>& lines) {
          std::vector<std::string> items;
          items.reserve(lines.size());
          for (const QueueLine& line : lines) items.push_back(wire::format(line));
          return json(200, wire::format_list(items, std::nullopt));
        });
  });
  const auto render = [](const Usage& usage) { return json(200, wire::format(usage)); };
  router_.add("GET", "/v1/pools/{pool}/usage", Role::viewer, [this, render](const Call& call) {
    answer<Usage>(
        call, [call](Controller& c) { return c.pool_usage(call.caller, call.part("pool")); }, render);
  });
  router_.add("GET", "/v1/jobs/{job}/usage", Role::viewer, [this, render](const Call& call) {
    answer<Usage>(
        call,
        [call](Controller& c) -> Result<Usage> {
          auto job = c.find_job(call.caller, call.part("job"));
          if (!job) return fail(job.error());
          return c.job_usage(*job);
        },
        render);
  });
}

}  // namespace slipway::api
