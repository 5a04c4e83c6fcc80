// What a simulation came to, in numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "simulate/cluster_simulation.h"
#include "simulate/figures.h"

namespace slipway::simulate {
namespace {

void append(std::vector<float>& to, const std::vector<float>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void add_shares(PoolFigures& pool) {
  if (pool.core_hours <= 0) return;
  pool.utilisation = pool.work.core_hours / pool.core_hours;
  pool.goodput = (pool.work.core_hours - pool.work.core_hours_lost) / pool.core_hours;
}

}  // namespace

WaitFigures summed_up(std::vector<float>& waits) {
  WaitFigures figures;
  if (waits.empty()) return figures;
  std::sort(waits.begin(), waits.end());
  // The smallest that at least this share does not exceed.
  const auto at = [&](double share) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(waits.size())));
    return static_cast<double>(waits[std::max<std::size_t>(rank, 1) - 1]);
  };
  figures.count = waits.size();
  figures.mean = std::accumulate(waits.begin(), waits.end(), 0.0) / static_cast<double>(waits.size());
  figures.p50 = at(0.5);
  figures.p95 = at(0.95);
  figures.max = static_cast<double>(waits.back());
  return figures;
}

void add(WorkFigures& sum, const WorkFigures& one) {
  for (const auto& [state, count] : one.jobs) sum.jobs[state] += count;
  sum.jobs_unfinished += one.jobs_unfinished;
  sum.tasks.waiting += one.tasks.waiting, sum.tasks.queued += one.tasks.queued;
  sum.tasks.active += one.tasks.active, sum.tasks.succeeded += one.tasks.succeeded;
  sum.tasks.failed += one.tasks.failed, sum.tasks.cancelled += one.tasks.cancelled;
  sum.tasks.skipped += one.tasks.skipped;
  sum.attempts += one.attempts, sum.retries += one.retries;
  sum.evicted += one.evicted, sum.lost += one.lost;
  sum.core_hours += one.core_hours, sum.core_hours_lost += one.core_hours_lost;
}

void sum_up(const Accounts& accounts, SimulationFigures& figures) {
  std::vector<float> waits;
  std::map<std::string, std::vector<float>> pool_waits, user_waits;
  for (const auto& [key, account] : accounts) {
    const auto& [pool, user] = key;
    add(figures.all.work, account.work);
    add(figures.pools[pool].work, account.work);
    add(figures.users[user], account.work);
    append(waits, account.waits);
    append(pool_waits[pool], account.waits);
    append(user_waits[user], account.waits);
  }
  figures.all.work.waits = summed_up(waits);
  for (auto& [user, values] : user_waits) figures.users[user].waits = summed_up(values);
  for (auto& [name, pool] : figures.pools) {
    pool.work.waits = summed_up(pool_waits[name]);
    add_shares(pool);
    figures.all.node_hours_dedicated += pool.node_hours_dedicated;
    figures.all.node_hours_low_priority += pool.node_hours_low_priority;
    figures.all.core_hours += pool.core_hours;
    figures.all.nodes_peak += pool.nodes_peak;
    figures.all.node_evictions += pool.node_evictions;
    figures.all.node_failures += pool.node_failures;
    figures.all.cost += pool.cost;
  }
  add_shares(figures.all);
}

SimulationFigures ClusterSimulation::figures() {
  for (std::uint32_t id = 0; id < nodes_.size(); ++id) {
    for (const Part& part : nodes_[id].parts) account(part, true, true);  // cut off here, not lost
    nodes_[id].parts.clear();
    shut_down(id);
  }
  for (const auto& [id, job] : ledger_.unfinished()) {
    WorkFigures& work = ledger_.account(job.pool, job.submitted_by).work;
    ++work.jobs_unfinished;
    WorkFigures tasks;
    tasks.tasks = job.counts;
    add(work, tasks);
  }
  SimulationFigures figures;
  figures.name = simulation_.name;
  figures.seed = simulation_.seed;
  if (first_submitted_ && last_ended_) figures.makespan = seconds(*last_ended_ - *first_submitted_);
  figures.jobs_refused = refused_;
  figures.notes = notes_;
  if (!ledger_.unfinished().empty())
    figures.notes.push_back(
        fmt::format("{} jobs had not ended when the simulation did", ledger_.unfinished().size()));

  for (std::size_t p = 0; p < simulation_.pools.size(); ++p) {
    const SimulatedPool& settings = simulation_.pools[p];
    const PoolTally& tally = tallies_[p];
    PoolFigures& pool = figures.pools[settings.request.name];
    pool.node_hours_dedicated = tally.seconds_dedicated / 3600;
    pool.node_hours_low_priority = tally.seconds_low_priority / 3600;
    pool.core_hours = tally.core_seconds / 3600;
    pool.nodes_peak = tally.nodes_peak;
    pool.node_evictions = tally.evictions;
    pool.node_failures = tally.failures;
    pool.cost = pool.node_hours_dedicated * settings.price_dedicated +
                pool.node_hours_low_priority * settings.price_low_priority;
  }
  sum_up(ledger_.accounts(), figures);
  return figures;
}

}  // namespace slipway::simulate
