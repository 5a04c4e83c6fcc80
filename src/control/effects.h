#pragma once
// What follows from the events of one turn: what is saved, what is sent once it is saved, and what the rest
// of the turn has yet to look at. Nothing here has happened before the turn is saved.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/outputs.h"
#include "control/state.h"
#include "control/store.h"

namespace slipway::control {

struct Effects {
  // To save. Records that may change several times in a turn are marked here and copied once at its end.
  Changes changes;
  std::set<std::string> dirty_pools;
  std::set<NodeId> dirty_nodes;
  std::set<JobId> dirty_jobs;
  std::set<std::pair<JobId, std::uint32_t>> dirty_groups;
  std::map<TaskRef, TaskRecord> dirty_tasks;
  std::map<AttemptKey, AttemptRecord> dirty_attempts;
  std::set<JobId> usage_jobs;  // whose usage is to be saved

  // To send.
  std::map<NodeId, Orders> orders;
  Outputs outputs;
  std::vector<Timer> timers;  // to set

  // To look at before the turn ends.
  std::set<NodeId> maybe_empty;            // leaving, and something of them ended
  std::set<std::string> unsettled;         // pools to look at, as something changed
  std::set<std::string> wanting_capacity;  // pools whose nodes wait for free capacity of this machine
  std::set<std::pair<JobId, std::uint32_t>> failed_arrays;  // groups of which more failed than may
  std::vector<AttemptKey> unstarted;                        // stopped before anything of them was started
  std::vector<JobId> ended_jobs;                            // to drop from the state once they are saved
  std::map<Named, JobId> idempotency_keys;                  // of this turn's jobs
  bool is_retention_due = false;           // jobs that are not kept any longer are to be looked for
  std::optional<Error> store_problem;      // a read failed: the turn must not be saved
  std::optional<std::uint64_t> turn_lost;  // a node knows of it, and the store does not have it

  void touch(const Job& job) { dirty_jobs.insert(job.record.id); }
  void touch(const Job& job, std::uint32_t group);
  void touch(const Node& node) { dirty_nodes.insert(node.record.id); }
  void touch(const Pool& pool) { dirty_pools.insert(pool.record.workspace + "/" + pool.record.name); }
  void touch(const Task& task) { dirty_tasks[task.record.ref] = task.record; }
  void touch(const Attempt& attempt) { dirty_attempts[attempt.record.key] = attempt.record; }
};

// Everything to save, once: what was marked is copied from the state.
Changes take_changes(const State& state, Effects& effects);

}  // namespace slipway::control
