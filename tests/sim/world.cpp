#include "sim/world.h"

#include <fmt/format.h>

#include <algorithm>

namespace slipway::sim {
namespace {

using namespace std::chrono_literals;

constexpr Resources machine{.cores = 64'000, .memory = 64ull << 30, .gpus = 0};
const control::Caller user{"ana", "default"};
const control::Caller other_user{"ben", "default"};

control::Settings settings() {
  control::Settings settings;
  settings.machine.total = machine;
  settings.reform_after = Duration(200'000);
  return settings;
}

}  // namespace

World::World(std::uint64_t seed) : random(seed), store_(store::make_memory_store()) {
  controller_ = std::move(*control::Controller::load(*store_, settings(), random.next(), now_));
  controller_->set_now(now_);
  PoolRequest lab;
  lab.name = "lab";
  lab.dedicated = static_cast<std::uint32_t>(random.between(1, 6));
  if (random.chance(0.5)) lab.low_priority = static_cast<std::uint32_t>(random.between(0, 3));
  if (random.chance(0.3)) {
    lab.autoscale = Autoscale{.by = ScaleBy::demand,
                              .min = static_cast<std::uint32_t>(random.between(0, 2)),
                              .max = static_cast<std::uint32_t>(random.between(3, 8))};
    lab.idle_timeout = Duration(random.between(0, 20'000'000));
  } else if (random.chance(0.3)) {
    // Samples are late where time jumps, and fail to be enough then.
    lab.autoscale = Autoscale{.by = ScaleBy::formula,
                              .interval = Duration(random.between(1'000'000, 20'000'000)),
                              .formula =
                                  "$TargetDedicatedNodes = min(6, 1 + $PendingTasks.GetSample("
                                  "TimeInterval_Minute, 70).Count());\n"
                                  "$TargetLowPriorityNodes = max(0, min(3, $ActiveTasks.GetSample(1)));"};
  }
  if (random.chance(0.4)) {
    StartTask start;
    start.command = "true";
    start.retries = static_cast<std::uint32_t>(random.between(0, 2));
    start.wait_for_success = random.chance(0.8);
    start.timeout = Duration(random.between(100'000, 20'000'000));
    lab.start_task = start;
  }
  if (random.chance(0.4))
    lab.evictions =
        EvictionRule{Duration(random.between(1'000'000, 30'000'000)), Duration(500'000), random.next()};
  lab.notice = Duration(random.chance(0.3) ? 0 : random.between(0, 10'000'000));
  lab.cores_per_node = static_cast<Millicores>(random.between(1, 4) * 1000);
  lab.memory_per_node = 4ull << 30;
  lab.policy = random_policy();
  (void)controller_->create_pool(user, lab);
  PoolRequest joined;
  joined.name = "joined";
  joined.provisioner = "none";
  joined.lost_after = 3s;
  (void)controller_->create_pool(user, joined);
  turn();
  for (std::int64_t i = random.between(0, 3); i > 0; --i) {
    const std::string name = fmt::format("far-{}", i);
    nodes_.emplace(
        std::piecewise_construct, std::forward_as_tuple(name),
        std::forward_as_tuple(name, "joined", false,
                              Resources{static_cast<Millicores>(random.between(1, 8) * 1000), 4ull << 30, 0},
                              random, ledger_));
    nodes_.at(name).agent().keeper_connected({}, now_);
  }
}

PolicyChange World::random_policy() {
  PolicyChange policy;
  if (random.chance(0.3)) policy.weights["ben"] = static_cast<double>(random.between(1, 4));
  if (random.chance(0.3)) policy.half_life = Duration(random.between(1'000'000, 60'000'000));
  if (random.chance(0.2)) policy.user_max_nodes = static_cast<std::uint32_t>(random.between(3, 6));
  if (random.chance(0.2)) policy.user_max_running_tasks = static_cast<std::uint32_t>(random.between(1, 8));
  if (random.chance(0.2)) policy.job_max_running_tasks = static_cast<std::uint32_t>(random.between(1, 8));
  return policy;
}

JobSpec World::random_job() {
  JobSpec job;
  job.name = fmt::format("job{}", submitted_++);
  job.pool = random.chance(0.8) ? "lab" : "joined";
  job.priority = static_cast<int>(random.between(-2, 2));
  if (random.chance(0.2)) job.max_parallel_tasks = static_cast<std::uint32_t>(random.between(1, 4));
  const std::int64_t entries = random.between(1, 4);
  for (std::int64_t i = 0; i < entries; ++i) {
    TaskSpec task;
    task.name = fmt::format("t{}", i);
    task.command = std::string("true");
    task.resources.cores = static_cast<Millicores>(random.chance(0.7) ? 1000 : random.between(1, 8) * 500);
    task.resources.memory = random.chance(0.2) ? 512u << 20 : 0;
    task.retries = static_cast<std::uint32_t>(random.between(0, 3));
    if (random.chance(0.4))
      task.count = static_cast<std::uint32_t>(random.between(1, 60));
    else if (random.chance(0.5))
      task.nodes = static_cast<std::uint32_t>(random.between(1, 3));
    if (random.chance(0.3)) task.processes_per_node = static_cast<std::uint32_t>(random.between(1, 3));
    if (task.nodes > 1 && random.chance(0.3)) {
      task.nodes_min = 1;
      if (random.chance(0.7)) {  // with room for it now and then
        task.nodes = static_cast<std::uint32_t>(random.between(2, 8));
        task.resources.cores = 500;
        task.toolkit = Toolkit::torch;
        task.torchrun = task.framework_elastic = true;
      }
    } else if (!task.count && random.chance(0.3)) {
      task.toolkit = Toolkit::tensorflow;
      task.processes_per_node = 1;
      task.nodes = 0;
      task.command = std::string();
      for (const char* role : {"worker", "ps", "evaluator"})
        if (role == std::string("worker") || random.chance(0.5))
          task.roles.push_back({role,
                                static_cast<std::uint32_t>(random.between(1, 3)),
                                std::string("true"),
                                {.cores = static_cast<Millicores>(random.between(1, 2) * 500)}});
      if (random.chance(0.5)) task.end_grace = Duration(random.between(0, 10'000'000));
    } else if (random.chance(0.1)) {
      task.toolkit = Toolkit::mpi;
    }
    if (!task.count && random.chance(0.2)) task.preparation.command = "true";
    if (random.chance(0.1)) task.interruptions_max = static_cast<std::uint32_t>(random.between(1, 5));
    if (random.chance(0.1)) task.start_timeout = Duration(random.between(1'000, 60'000'000));
    if (random.chance(0.2)) task.max_wall_time = Duration(random.between(10'000, 20'000'000));
    if (i > 0 && random.chance(0.4)) task.depends_on.push_back(fmt::format("t{}", random.between(0, i - 1)));
    job.tasks.push_back(std::move(task));
  }
  return job;
}

void World::submit(int jobs) {
  for (int i = 0; i < jobs; ++i) {
    controller_->set_now(now_);
    const auto submitted = controller_->submit(random.chance(0.6) ? user : other_user, random_job(),
                                               random.chance(0.3) ? fmt::format("key{}", i) : "");
    const std::uint64_t before = session_last_;
    turn();
    // Acknowledged only when the turn was saved and its answer could be sent.
    if (submitted && before == session_last_ && !degraded_)
      if (const auto stored = store_->job(submitted->job.id); stored && *stored)
        acknowledged_.insert(submitted->job.id);
  }
}

void World::user_acts() {
  if (degraded_) return;
  controller_->set_now(now_);
  if (random.chance(0.02) && !acknowledged_.empty()) {
    auto job = acknowledged_.begin();
    std::advance(job, random.between(0, static_cast<std::int64_t>(acknowledged_.size()) - 1));
    (void)controller_->cancel(user, *job, "no longer needed");
  }
  if (random.chance(0.01) && !nodes_.empty()) {
    auto node = nodes_.begin();
    std::advance(node, random.between(0, static_cast<std::int64_t>(nodes_.size()) - 1));
    (void)controller_->drain_node(user, node->first, random.chance(0.5));
  }
  if (random.chance(0.01)) {
    PoolRequest wish;
    wish.dedicated = static_cast<std::uint32_t>(random.between(1, 6));
    if (random.chance(0.5)) wish.low_priority = static_cast<std::uint32_t>(random.between(0, 3));
    if (random.chance(0.5)) wish.deallocation = static_cast<Deallocation>(random.between(0, 3));
    (void)controller_->resize_pool(user, "lab", wish);
  }
  if (random.chance(0.002)) (void)controller_->stop_resize(user, "lab");
  if (random.chance(0.01) && !nodes_.empty()) {
    auto node = nodes_.begin();
    std::advance(node, random.between(0, static_cast<std::int64_t>(nodes_.size()) - 1));
    const std::string name = node->first;
    switch (random.between(0, 3)) {
      case 0:
        (void)controller_->remove_node(user, name, static_cast<Deallocation>(random.between(0, 3)));
        break;
      case 1: (void)controller_->reset_node(user, name); break;
      default:
        (void)controller_->evict_node(
            user, name, Duration(random.chance(0.5) ? 0 : random.between(0, 20'000'000)), "wanted elsewhere");
    }
  }
}

void World::schedule(Flight flight) {
  if (faults_ && random.chance(0.003)) return;  // lost
  flight.order = ++flight_last_;
  Duration delay(random.between(50, 2'000));
  if (faults_ && random.chance(0.01))
    delay += Duration(random.between(1'000, 3'000'000));  // late, so out of order
  flight.at = now_ + delay;
  if (faults_ && random.chance(0.005)) {  // twice
    Flight again = flight;
    again.at += Duration(random.between(0, 500'000));
    flights_.push_back(std::move(again));
  }
  flights_.push_back(std::move(flight));
}

void World::send_up(SimNode& node) {
  node.carry_out(now_);
  for (SimNode::Outgoing& out : std::exchange(node.outgoing, {})) {
    if (!out.message) {
      break_session(out.session);
    } else if (node.cut_until <= now_) {
      schedule({now_, 0, out.session, true, std::move(out.message), std::nullopt});
    }
  }
}

void World::break_session(SessionId session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  SimNode& node = nodes_.at(found->second);
  sessions_.erase(found);
  if (node.session == session) {
    node.session.reset();
    node.agent().disconnected(session);
    node.dial_at = now_ + Duration(random.between(10'000, 1'500'000));
  }
  if (!degraded_) controller_->disconnected(session);
}

void World::deliver() {
  std::sort(flights_.begin(), flights_.end(), [](const Flight& a, const Flight& b) {
    return std::pair(a.at, a.order) < std::pair(b.at, b.order);
  });
  std::size_t due = 0;
  while (due < flights_.size() && flights_[due].at <= now_) ++due;
  std::vector<Flight> arrived(std::make_move_iterator(flights_.begin()),
                              std::make_move_iterator(flights_.begin() + static_cast<std::ptrdiff_t>(due)));
  flights_.erase(flights_.begin(), flights_.begin() + static_cast<std::ptrdiff_t>(due));
  for (Flight& flight : arrived) {
    const auto found = sessions_.find(flight.session);
    if (flight.to_service) {  // also of sessions long gone: the controller must not be fooled by them
      if (degraded_) continue;
      if (auto* hello = std::get_if<Hello>(&*flight.up)) {
        if (found != sessions_.end()) controller_->hello(flight.session, user, *hello);
      } else {
        controller_->report(flight.session, std::get<Report>(*flight.up));
      }
    } else if (found != sessions_.end()) {
      SimNode& node = nodes_.at(found->second);
      if (node.cut_until > now_) continue;
      node.agent().received(flight.session, std::move(*flight.down), now_);
      send_up(node);
    }
  }
}

void World::dial() {
  if (degraded_) return;
  for (auto& [name, node] : nodes_) {
    if (node.session || node.has_quit() || node.dial_at > now_ || node.cut_until > now_) continue;
    node.session = SessionId{++session_last_};
    sessions_[*node.session] = name;
    node.agent().connected(*node.session, now_);
    send_up(node);
  }
}

void World::crash_controller() {
  for (const auto& [session, name] : std::map(sessions_)) {
    sessions_.erase(session);
    SimNode& node = nodes_.at(name);
    node.session.reset();
    node.agent().disconnected(session);
    node.dial_at = now_ + Duration(random.between(10'000, 1'500'000));
  }
  controller_ = std::move(*control::Controller::load(*store_, settings(), random.next(), now_));
}

void World::turn() {
  if (degraded_) {
    if (!store_->probe()) return;
    degraded_ = false;
    crash_controller();
  }
  controller_->set_now(now_);
  if (faults_ && random.chance(0.002)) return crash_controller();  // before the write
  auto outputs = controller_->finish_turn();
  if (!outputs) {
    degraded_ = true;
    return crash_controller();
  }
  check_events();
  if (faults_ && random.chance(0.002)) return crash_controller();  // between the write and the act
  for (auto& [session, message] : outputs->messages)
    schedule({now_, 0, session, false, std::nullopt, std::move(message)});
  for (const auto& [session, why] : outputs->closed) break_session(session);
  follow_local_nodes();
}

// The local provisioner: agents for the nodes that should be, none for those that should not.
void World::follow_local_nodes() {
  std::set<std::string> wanted;
  for (const NodeRecord& record : controller_->local_nodes()) {
    wanted.insert(record.name);
    if (nodes_.contains(record.name)) continue;
    nodes_.emplace(std::piecewise_construct, std::forward_as_tuple(record.name),
                   std::forward_as_tuple(record.name, record.pool, true, record.total, random, ledger_));
    nodes_.at(record.name).agent().keeper_connected({}, now_);
  }
  for (auto node = nodes_.begin(); node != nodes_.end();) {
    if (node->second.is_local() && (!wanted.contains(node->first) || node->second.has_quit())) {
      std::erase_if(sessions_, [&](const auto& entry) { return entry.second == node->first; });
      node = nodes_.erase(node);
    } else {
      ++node;
    }
  }
}

void World::maybe_fault() {
  if (!faults_) return;
  if (random.chance(0.003)) {
    store_->fail_saves(true);
    store_works_at_ = now_ + Duration(random.between(1'000, 5'000'000));
  }
  if (store_works_at_ <= now_) store_->fail_saves(false);
  if (nodes_.empty() || !random.chance(0.02)) return;
  auto node = nodes_.begin();
  std::advance(node, random.between(0, static_cast<std::int64_t>(nodes_.size()) - 1));
  SimNode& machine_hit = node->second;
  const auto drop = [&] {
    if (machine_hit.session) {
      const SessionId session = *machine_hit.session;
      sessions_.erase(session);
      if (!degraded_) controller_->disconnected(session);
    }
  };
  switch (random.between(0, 4)) {
    case 0: machine_hit.cut_until = now_ + Duration(random.between(100'000, 10'000'000)); break;
    case 1:
      drop();
      machine_hit.restart_agent(now_);
      break;
    case 2: machine_hit.kill_keeper(now_); break;
    case 3:
      if (!random.chance(0.3)) break;
      drop();
      machine_hit.reinstall(now_);
      break;
    case 4:
      if (machine_hit.session) break_session(*machine_hit.session);
      break;
  }
}

void World::step() {
  now_ += Duration(random.chance(0.9) ? random.between(50, 20'000) : random.between(10'000, 2'000'000));
  maybe_fault();
  if (faults_) user_acts();
  dial();
  deliver();
  for (auto& [name, node] : nodes_) {
    node.run(now_);
    send_up(node);
  }
  turn();
}

void World::heal() {
  faults_ = false;
  store_->fail_saves(false);
  for (auto& [name, node] : nodes_) node.cut_until = now_;
  turn();
  controller_->set_now(now_);
  PoolRequest by_hand;
  by_hand.autoscale = Autoscale{};
  (void)controller_->resize_pool(user, "lab", by_hand);
  (void)controller_->stop_resize(user, "lab");
  PolicyChange no_limits;
  no_limits.user_max_nodes = no_limits.user_max_running_tasks = 0;
  no_limits.job_max_nodes = no_limits.job_max_running_tasks = 0;
  const PoolRequest wish{.dedicated = 12,  // enough for any gang that was accepted when the pool could grow
                         .low_priority = 0,
                         .evictions = EvictionRule{},
                         .policy = std::move(no_limits)};
  if (auto resized = controller_->resize_pool(user, "lab", wish);
      !resized && resized.error().code != ErrorCode::not_found && ledger_.broken.empty())
    ledger_.broken = "the healed pool could not be resized: " + resized.error().what;
  turn();
}

bool World::settles_within(Duration limit) {
  const TimePoint end = now_ + limit;
  while (now_ < end) {
    // Somebody looks after the nodes: one whose start task failed is reset, a drained one resumed.
    if (!degraded_) {
      controller_->set_now(now_);
      for (const NodeView& view : controller_->nodes(user, "")) {
        if (view.node.state == NodeState::start_failed) (void)controller_->reset_node(user, view.node.name);
        if (view.node.drained) (void)controller_->drain_node(user, view.node.name, false);
      }
    }
    bool done = true;
    for (const JobId id : acknowledged_) {
      const auto job = store_->job(id);
      done = done && job && *job && is_terminal((*job)->state);
      if (!done) {
        // Jobs of the joined pool may ask for more than ever joined; they wait, with a reason.
        done = (*job)->pool == "joined";
        if (!done) break;
      }
    }
    if (done) return true;
    step();
  }
  return false;
}

std::string World::unsettled() {
  for (const JobId id : acknowledged_) {
    const auto job = store_->job(id);
    if (!job || !*job || is_terminal((*job)->state) || (*job)->pool == "joined") continue;
    const auto why = controller_->why(**job);
    std::string text = to_string(id) + ": " + why.answer;
    for (const NodeView& view : controller_->nodes(user, "lab"))
      text += fmt::format("; {} {} {}", view.node.name, to_string(view.node.state), view.node.reason);
    return text;
  }
  return "";
}

void World::check_events() {
  const auto events =
      store_->reads().events({.workspace = "default", .job = {}, .after = event_seen_, .limit = 1'000'000});
  for (const EventRecord& event : *events) {
    event_seen_ = event.id;
    const std::string line = fmt::format("{} {} {} {} {}", event.time.time_since_epoch().count(), event.kind,
                                         event.job ? event.job->value() : 0, event.task, event.text);
    for (const char c : line) digest_ = (digest_ ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    start_failures_ += event.kind == "node.start_failed";
    scaled_ += event.kind == "pool.scaled";
    joined_ += event.kind == "attempt.node_joined";
    left_ += event.kind == "attempt.node_left";
    const bool attempt_end = event.kind == "attempt.ended";
    const bool job_end =
        event.kind == "job.succeeded" || event.kind == "job.failed" || event.kind == "job.cancelled";
    if (!attempt_end && !job_end) continue;
    const std::string what =
        fmt::format("{} {} {}", event.job->value(), event.task, attempt_end ? *event.attempt : 0);
    if (!ended_once_.insert(what).second && ledger_.broken.empty()) ledger_.broken = "ended twice: " + what;
    if (job_end) check_ended_job(*event.job);
  }
}

void World::check_ended_job(JobId id) {
  const auto tasks = store_->reads().tasks(id, {.state = {}, .after = {}, .limit = 100'000});
  const auto spec = store_->reads().job_spec(id, 100);
  for (const auto& [task, nodes] : *tasks) {
    std::uint32_t faults = 0, uses_retry = 0, evictions = 0;
    const auto attempts = store_->attempts(task.ref);
    for (const AttemptRecord& attempt : *attempts) {
      if (!attempt.ended_at || !attempt.end)
        ledger_.broken = fmt::format("{} ended with a live attempt of {}", to_string(id), task.name);
      uses_retry += attempt.end != EndReason::evicted && attempt.end != EndReason::node_lost &&
                    attempt.end != EndReason::cancelled;
      evictions += attempt.end == EndReason::evicted;
      faults += attempt.end == EndReason::signalled || attempt.end == EndReason::timed_out ||
                (attempt.end == EndReason::exited && attempt.exit_code != 0);
    }
    const std::uint32_t retries = spec->tasks[task.ref.group].retries;
    if (!is_terminal(task.state))
      ledger_.broken = fmt::format("{} ended before its task {}", to_string(id), task.name);
    if (task.retries_used > uses_retry)
      ledger_.broken = fmt::format("{} used a retry for an eviction or a lost node", task.name);
    if (task.evictions != evictions)
      ledger_.broken = fmt::format("{} was evicted {} times, not {}", task.name, evictions, task.evictions);
    evicted_ += evictions;
    if (task.retries_used > retries)
      ledger_.broken = fmt::format("{} used {} of {} retries", task.name, task.retries_used, retries);
    if (task.state == TaskState::failed && faults > retries + 1)
      ledger_.broken = fmt::format("{} failed {} times with {} retries", task.name, faults, retries);
  }
}

std::string World::broken_invariant() {
  if (!ledger_.broken.empty()) return ledger_.broken;
  if (const std::string broken = controller_->broken_invariant(); !broken.empty()) return broken;
  std::map<TaskRef, std::string> live;
  for (const auto& [name, node] : nodes_) {
    if (!fits(node.running_now(), node.total())) return fmt::format("machine {} runs more than it has", name);
    const auto view = controller_->node(user, name);
    if (!view || view->node.state == NodeState::lost || view->node.state == NodeState::joining ||
        !node.session)
      continue;
    for (const WorkKey& key : node.attempts_running()) {
      const auto* attempt = std::get_if<AttemptKey>(&key);
      if (!attempt) continue;  // the preparation of an attempt that was given up may take a while to end
      if (const auto [at, added] = live.emplace(attempt->task, to_string(key));
          !added && at->second != to_string(key))
        return fmt::format("two live attempts: {} and {}", at->second, to_string(key));
    }
  }
  for (const JobId id : acknowledged_) {
    const auto job = store_->job(id);
    if (!job || !*job) return fmt::format("{} was acknowledged and is lost", to_string(id));
  }
  if (!acknowledged_.empty() && !degraded_) {
    auto id = acknowledged_.begin();
    std::advance(id, static_cast<std::ptrdiff_t>(event_seen_ % acknowledged_.size()));
    const auto job = store_->job(*id);
    const auto why = controller_->why(**job);
    if (why.answer.empty()) return fmt::format("{} has no reason", to_string(*id));
    for (const auto& task : why.tasks)
      if (task.reason.empty()) return fmt::format("{} {} has no reason", to_string(*id), task.name);
  }
  return "";
}

// What the jobs of a pool have spent is what the pool has, to the last bit; and all of it adds up to its
// nodes.
std::string World::broken_usage() {
  for (const char* pool : {"lab", "joined"}) {
    const auto whole = controller_->pool_usage(user, pool);
    if (!whole) continue;
    std::int64_t sum = whole->idle;
    for (const std::int64_t spent : whole->spent) sum += spent;
    if (sum != whole->wall || whole->idle < 0) return fmt::format("the usage of {} does not add up", pool);
    std::int64_t jobs_count = 0;
    std::array<std::int64_t, spent_kinds> spent{};
    const auto jobs =
        store_->jobs({.workspace = "default", .state = {}, .name = {}, .before = {}, .limit = 10'000});
    for (const JobRecord& job : *jobs) {
      if (job.pool != pool) continue;
      ++jobs_count;
      const auto usage = controller_->job_usage(job);
      for (std::size_t kind = 0; kind < spent_kinds; ++kind) spent[kind] += usage->spent[kind];
    }
    for (std::size_t kind = 0; kind < spent_kinds; ++kind)  // each job is rounded down by itself
      if (spent[kind] > whole->spent[kind] || whole->spent[kind] - spent[kind] > jobs_count)
        return fmt::format("the jobs of {} have spent {} and the pool {}", pool, spent[kind],
                           whole->spent[kind]);
  }
  return "";
}

std::uint64_t World::digest() { return digest_; }

}  // namespace slipway::sim
