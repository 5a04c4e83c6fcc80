// The service itself: health, metrics, its state, stopping it.
#include <fmt/format.h>
#include <unistd.h>

#include "api/api.h"
#include "base/file.h"
#include "wire/job_keys.h"
#include "wire/records.h"

namespace slipway::api {
namespace {

struct Numbers {
  std::map<NodeState, std::uint64_t> nodes;
  std::map<JobState, std::uint64_t> jobs;
  control::Totals totals;
};

Result<Numbers> count(const control::Snapshot& live, control::ReadStore& store,
                      const std::string& workspace) {
  Numbers numbers;
  for (const NodeView& view : live.nodes)
    if (view.node.workspace == workspace) ++numbers.nodes[view.node.state];
  auto jobs = store.job_counts(workspace);
  if (!jobs) return fail(jobs.error());
  for (const auto& [state, n] : *jobs) numbers.jobs[state] = n;
  numbers.totals = live.totals;
  return numbers;
}

template <class State>
std::string counts_json(const std::map<State, std::uint64_t>& counts) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const auto& [state, n] : counts) fields.emplace_back(std::string(to_string(state)), std::to_string(n));
  return wire::format_object(fields);
}

std::string or_null(const std::string& text) { return text.empty() ? "null" : wire::quote(text); }

std::uint64_t resident_bytes() {
  auto text = read_file("/proc/self/statm");
  if (!text) return 0;
  const std::size_t space = text->find(' ');
  return std::strtoull(text->c_str() + space, nullptr, 10) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

void Api::add_service_routes() {
  router_.add("GET", "/healthz", {Object::service, Verb::probe}, [this](const Call& call) {
    const std::string problem_text = degraded();
    if (problem_text.empty()) return call.send(json(200, "{\"status\":\"ok\"}"));
    call.send(
        json(503, wire::format_object({{"status", "\"degraded\""}, {"why", wire::quote(problem_text)}})));
  });
  router_.add("GET", "/v1/schemas/job.json", {Object::service, Verb::probe}, [](const Call& call) {
    call.send({200, {{"Content-Type", "application/schema+json"}}, wire::job_schema()});
  });
  router_.add("GET", "/metrics", {Object::service, Verb::read}, [this](const Call& call) {
    read_live<Numbers>(
        call,
        [call](const control::Snapshot& live, control::ReadStore& store) {
          return count(live, store, call.caller.workspace);
        },
        [this, call](const Numbers& numbers) {
          std::string text = "# HELP slipway_jobs Jobs by state.\n# TYPE slipway_jobs gauge\n";
          for (const auto& [state, n] : numbers.jobs)
            text += fmt::format("slipway_jobs{{state=\"{}\"}} {}\n", to_string(state), n);
          text += "# HELP slipway_nodes Nodes by state.\n# TYPE slipway_nodes gauge\n";
          for (const auto& [state, n] : numbers.nodes)
            text += fmt::format("slipway_nodes{{state=\"{}\"}} {}\n", to_string(state), n);
          const auto total = [&](const char* name, const char* about, std::uint64_t value) {
            text += fmt::format("# HELP {0} {1}\n# TYPE {0} counter\n{0} {2}\n", name, about, value);
          };
          total("slipway_evictions_total", "Attempts ended by an eviction since the service started.",
                numbers.totals.evictions);
          total("slipway_node_losses_total", "Attempts ended by a lost node since the service started.",
                numbers.totals.nodes_lost);
          total("slipway_retries_total", "Retries that users' tasks used since the service started.",
                numbers.totals.retries);
          text +=
              "# HELP slipway_unauthorized_total Requests without a valid token.\n# TYPE "
              "slipway_unauthorized_total counter\n";
          text += fmt::format("slipway_unauthorized_total {}\n", unauthorized_);
          text +=
              "# HELP slipway_requests_total Requests with a valid token.\n# TYPE slipway_requests_total "
              "counter\n";
          text += fmt::format("slipway_requests_total {}\n", requests_);
          text +=
              "# HELP slipway_degraded Whether requests that change something are refused.\n# TYPE "
              "slipway_degraded "
              "gauge\n";
          text += fmt::format("slipway_degraded {}\n", degraded().empty() ? 0 : 1);
          text +=
              "# HELP slipway_resident_bytes Memory of the service.\n# TYPE slipway_resident_bytes gauge\n";
          text += fmt::format("slipway_resident_bytes {}\n", resident_bytes());
          call.send({200, {{"Content-Type", "text/plain; version=0.0.4"}}, std::move(text)});
        });
  });
  router_.add("GET", "/v1/service", {Object::service, Verb::read}, [this](const Call& call) {
    read_live<Numbers>(
        call,
        [call](const control::Snapshot& live, control::ReadStore& store) {
          return count(live, store, call.caller.workspace);
        },
        [this, call](const Numbers& numbers) {
          const std::string why = degraded();
          const SavedTurn saved = control_.saved();
          call.send(
              json(200, wire::format_object({{"version", wire::quote(SLIPWAY_VERSION)},
                                             {"pid", std::to_string(::getpid())},
                                             {"url", wire::quote(url_)},
                                             {"data", wire::quote(options_.data)},
                                             {"fingerprint", or_null(reach_.fingerprint)},
                                             {"join_url", or_null(reach_.join_url)},
                                             {"started_at", wire::quote(format_time(options_.started_at))},
                                             {"service", wire::quote(saved.service)},
                                             {"turn", std::to_string(saved.number)},
                                             {"degraded", why.empty() ? "null" : wire::quote(why)},
                                             {"user", wire::quote(call.caller.name)},
                                             {"workspace", wire::quote(call.caller.workspace)},
                                             {"nodes", counts_json(numbers.nodes)},
                                             {"jobs", counts_json(numbers.jobs)}})));
        });
  });
  router_.add("POST", "/v1/service/stop", {Object::service, Verb::stop}, [this](const Call& call) {
    auto keep_running = wire::parse_stop_request(call.request().body);
    if (!keep_running) return call.send(problem(keep_running.error()));
    call.send(json(202, wire::format_object({{"stopping", "true"}, {"pid", std::to_string(::getpid())}})));
    options_.stop(*keep_running);
  });
  router_.add("GET", "/v1/service/storage", {Object::service, Verb::connect}, [this](const Call& call) {
    call.send(json(200, wire::format_object({{"path", wire::quote(options_.data)},
                                             {"probe", wire::quote(options_.probe)},
                                             {"nonce", wire::quote(options_.nonce)}})));
  });
}

}  // namespace slipway::api
