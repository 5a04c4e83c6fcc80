// The figures of a simulation as JSON: times in seconds, work in hours.
#include <cmath>

#include "wire/json.h"
#include "wire/simulation.h"

namespace slipway::wire {
namespace {

// Six digits after the point: what two machines may round differently is cut off.
Json rounded(double value) { return std::round(value * 1e6) / 1e6; }

void put(Json& json, const WorkFigures& work) {
  Json jobs = Json::object();
  for (const JobState state : {JobState::succeeded, JobState::failed, JobState::cancelled}) {
    const auto found = work.jobs.find(state);
    jobs[std::string(to_string(state))] = found == work.jobs.end() ? 0 : found->second;
  }
  jobs["unfinished"] = work.jobs_unfinished;
  json["jobs"] = std::move(jobs);
  const TaskCounts& tasks = work.tasks;
  json["tasks"] = {{"succeeded", tasks.succeeded},
                   {"failed", tasks.failed},
                   {"cancelled", tasks.cancelled},
                   {"skipped", tasks.skipped},
                   {"unfinished", tasks.waiting + tasks.queued + tasks.active}};
  json["wait"] = {{"mean", rounded(work.waits.mean)},
                  {"p50", rounded(work.waits.p50)},
                  {"p95", rounded(work.waits.p95)},
                  {"max", rounded(work.waits.max)}};
  json["attempts"] = work.attempts;
  json["retries"] = work.retries;
  json["attempts_evicted"] = work.evicted;
  json["attempts_lost"] = work.lost;
  json["core_hours"] = rounded(work.core_hours);
  json["core_hours_lost"] = rounded(work.core_hours_lost);
}

void put(Json& json, const PoolFigures& pool) {
  json["utilisation"] = rounded(pool.utilisation);
  json["goodput"] = rounded(pool.goodput);
  json["cost"] = rounded(pool.cost);
  put(json, pool.work);
  json["nodes"] = {{"peak", pool.nodes_peak},
                   {"hours_dedicated", rounded(pool.node_hours_dedicated)},
                   {"hours_low_priority", rounded(pool.node_hours_low_priority)},
                   {"evictions", pool.node_evictions},
                   {"failures", pool.node_failures}};
}

}  // namespace

std::string format(const SimulationFigures& figures) {
  Json json{{"name", figures.name}, {"seed", figures.seed}, {"makespan", rounded(figures.makespan)}};
  put(json, figures.all);
  json["jobs"]["refused"] = figures.jobs_refused;
  json["pools"] = Json::object();
  for (const auto& [name, pool] : figures.pools) put(json["pools"][name], pool);
  json["users"] = Json::object();
  for (const auto& [name, work] : figures.users) put(json["users"][name], work);
  json["notes"] = figures.notes;
  return dump(json);
}

}  // namespace slipway::wire
