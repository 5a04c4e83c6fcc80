#pragma once
// For tests by event: a state built by hand, and the rest of a turn without a store.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "control/attempts.h"
#include "control/cancel.h"
#include "control/invariants.h"
#include "control/jobs.h"
#include "control/lease.h"
#include "control/nodes.h"
#include "control/placing.h"
#include "control/pools.h"
#include "control/rerun.h"
#include "control/timers.h"
#include "control/turn.h"

namespace slipway::control {

struct Bench {
  const Caller user{"ana", "default", Role::admin};
  Settings settings;
  State state;
  Effects effects;
  Random random{1};
  std::map<JobId, JobSpec> submitted;
  SpecCache specs{
      [this](JobId job, std::uint32_t group) -> Result<TaskSpec> { return submitted.at(job).tasks[group]; }};
  Turn turn{state, effects, settings, specs, random, TimePoint{1000h}};
  std::uint64_t sessions = 0;
  std::map<std::string, std::uint64_t> reports;  // by node

  Bench() { settings.machine.total = {8'000, 8ull << 30, 0}; }

  // ── what there is ──

  Pool& pool(PoolRequest request = {}) {
    request.name = "lab";
    if (request.provisioner.empty()) request.provisioner = "none";
    if (!request.lost_after) request.lost_after = 10s;
    EXPECT_TRUE(create_pool(turn, user, request));
    return state.pools.at("default/lab");
  }
  Node& join(const std::string& name, Millicores cores = 1'000, Hello hello = {}) {
    hello.name = name;
    hello.pool = "lab";
    hello.local = state.find_node("default", name) != nullptr && node(name).record.local;
    if (hello.instance.empty()) hello.instance = hello.boot = "one";
    hello.total = {cores, 1ull << 30, 0};
    reports[name] = 0;
    on_hello(turn, SessionId{++sessions}, user, hello);
    return node(name);
  }
  Node& node(const std::string& name) { return *state.find_node("default", name); }
  JobId submit(std::vector<TaskSpec> tasks) {
    JobSpec spec;
    spec.pool = "lab";
    spec.is_patient = true;
    spec.tasks = std::move(tasks);
    const auto made = on_submit(turn, user, spec, "");
    EXPECT_TRUE(made) << made.error().what;
    submitted[made->job.id] = effects.changes.jobs_new.back().spec;
    return made->job.id;
  }
  // A job of one task, placed: its attempt.
  Attempt& start(const TaskSpec& task) {
    const JobId id = submit({task});
    finish();
    return *attempt(id);
  }
  Attempt* attempt(JobId id, std::uint32_t group = 0) {
    Task* task = state.find_task({id, group, 0});
    return task ? task->attempt.get() : nullptr;
  }
  const Job& job(JobId id) { return state.jobs.at(id); }

  // ── what nodes say ──

  void report(const std::string& name, Report report) {
    report.number = ++reports[name];
    on_report(turn, *node(name).session, report);
  }
  void started(const std::string& name, const WorkKey& key, std::uint32_t rank = 0) {
    Report message;
    message.started.push_back({key, rank, 1, turn.now});
    report(name, message);
  }
  void ended(const std::string& name, const WorkKey& key, std::uint32_t rank = 0, int code = 0) {
    ended(name, {.key = key, .rank = rank, .kind = ProcessEndKind::exited, .code = code});
  }
  void ended(const std::string& name, ProcessEnded end) {
    end.started_at = end.ended_at = turn.now;
    Report message;
    message.ended.push_back(std::move(end));
    report(name, message);
  }
  void prepared(const std::string& name, const AttemptKey& key) {
    Report message;
    message.prepared.push_back({.key = key, .ports = {4000}, .secret = "s"});
    report(name, message);
  }

  // ── the turn ──

  // The rest of the turn, as the controller runs it: what it would have saved and sent.
  Effects finish() {
    run_timers();
    stop_failed_arrays(turn);
    settle_unstarted(turn);
    place_ready(turn);
    settle_pools(turn);
    run_timers();
    EXPECT_FALSE(effects.store_problem);
    EXPECT_EQ(broken_invariant(turn), "");
    for (const auto& [ref, record] : effects.dirty_tasks) task_records[ref] = record;
    for (const JobId id : effects.ended_jobs) {
      state.pool_of(state.jobs.at(id)).sharing.forget(id);
      stored.insert_or_assign(id, store(state.jobs.at(id)));
      ended_jobs.insert_or_assign(id, state.jobs.at(id).record);
      state.jobs.erase(id);
    }
    return std::exchange(effects, {});
  }
  // Time passes, and every node that is connected sends its heartbeats.
  Effects pass(Duration time) {
    turn.now += time;
    for (auto& [id, node] : state.nodes)
      if (node.session) on_heard(turn, node);
    return finish();
  }
  Effects pass_without_heartbeats(Duration time) {
    turn.now += time;
    return finish();
  }
  std::map<JobId, JobRecord> ended_jobs;

  // ── what a store would have ──

  std::map<TaskRef, TaskRecord> task_records;  // that were placed
  std::map<JobId, LiveJob> stored;             // that have ended
  Result<JobRecord> rerun(JobId id, const Rerun& asked = {}) {
    Ended ended;
    if (!state.jobs.contains(id)) ended.job = stored.at(id);
    for (const auto& [ref, record] : task_records)
      if (ref.job == id && is_terminal(record.state) && record.state != TaskState::succeeded)
        ended.tasks.push_back(record);
    return on_rerun(turn, user, id, asked, std::move(ended));
  }

 private:
  LiveJob store(const Job& job) {
    LiveJob live{job.record, submitted.at(job.record.id).tasks, {}, {}, {}, job.usage};
    for (std::uint32_t g = 0; g < job.groups.size(); ++g) {
      const Group& group = job.groups[g];
      const Counts& c = group.counts;
      live.groups.push_back({job.record.id,
                             g,
                             group.next,
                             group.rest,
                             {c.waiting, c.queued, c.active, c.succeeded, c.failed, c.cancelled, c.skipped},
                             group.rest_reason});
    }
    return live;
  }
  void run_timers() {
    for (;;) {
      for (Timer& timer : effects.timers) state.timers.insert(std::move(timer));
      effects.timers.clear();
      if (state.timers.empty() || state.timers.begin()->at > turn.now) return;
      on_timer(turn, state.timers.extract(state.timers.begin()).value());
    }
  }
};

inline TaskSpec one_node(std::string name = "train") {
  TaskSpec task;
  task.name = std::move(name);
  task.command = std::string("true");
  return task;
}
inline TaskSpec gang(std::uint32_t nodes) {
  TaskSpec task = one_node();
  task.nodes = nodes;
  return task;
}

// The nodes that are ordered to stop something, by name.
inline std::vector<std::string> stopped(Bench& bench, const Effects& effects) {
  std::vector<std::string> names;
  for (const auto& [id, orders] : effects.orders)
    if (!orders.stop.empty()) names.push_back(bench.state.nodes.at(id).record.name);
  return names;
}
inline bool has_event(const Effects& effects, const std::string& kind) {
  for (const EventRecord& event : effects.changes.events)
    if (event.kind == kind) return true;
  return false;
}

}  // namespace slipway::control
