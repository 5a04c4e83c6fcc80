#include "control/controller.h"

#include <fmt/format.h>

#include "control/accounting.h"
#include "control/attempts.h"
#include "control/cancel.h"
#include "control/evict.h"
#include "control/invariants.h"
#include "control/job_update.h"
#include "control/lease.h"
#include "control/placing.h"
#include "control/quotas.h"
#include "control/rerun.h"
#include "control/restore.h"
#include "control/secrets.h"
#include "control/start_tasks.h"
#include "control/timers.h"
#include "control/wording.h"
#include "domain/layout.h"

namespace slipway::control {

Controller::Controller(Store& store, const Settings& settings, std::uint64_t seed, TimePoint now)
    : store_(store),
      settings_(settings),
      random_(seed),
      specs_([&store](JobId job, std::uint32_t group) { return store.task_spec(job, group); }),
      turn_{state_, effects_, settings_, specs_, random_, now} {}
Controller::~Controller() = default;

// Late by a tenth of what a job is kept at most.
static Duration look_for_expired_every(const Retention& retain) {
  Duration least = 600s;
  if (retain.usual) least = std::min(least, *retain.usual);
  for (const auto& [workspace, kept] : retain.workspaces) least = std::min(least, kept);
  return std::max(Duration(1s), least / 10);
}

Result<std::unique_ptr<Controller>> Controller::load(Store& store, const Settings& settings,
                                                     std::uint64_t seed, TimePoint now) {
  auto loaded = store.load();
  if (!loaded) return fail(loaded.error());
  std::unique_ptr<Controller> controller(new Controller(store, settings, seed, now));
  restore(controller->turn_, std::move(*loaded));
  controller->effects_.timers.push_back({now + look_for_expired_every(settings.retain), RetentionDue{}});
  controller->set_timers();
  return controller;
}

// ── the turn ──

std::optional<TimePoint> Controller::next_deadline() const {
  if (state_.timers.empty()) return std::nullopt;
  return state_.timers.begin()->at;
}

void Controller::set_timers() {
  for (Timer& timer : effects_.timers) state_.timers.insert(std::move(timer));
  effects_.timers.clear();
}

void Controller::run_timers() {
  set_timers();
  while (!state_.timers.empty() && state_.timers.begin()->at <= turn_.now) {
    const Timer timer = std::move(state_.timers.extract(state_.timers.begin()).value());
    on_timer(turn_, timer);
    set_timers();
  }
}

void Controller::drop_ended_jobs() {
  for (const JobId id : std::exchange(effects_.ended_jobs, {})) {
    const Job& job = state_.jobs.at(id);
    if (const auto pool = state_.pools.find(job.record.workspace + "/" + job.record.pool);
        pool != state_.pools.end())
      pool->second.sharing.forget(id);
    effects_.outputs.jobs_ended.emplace_back(job.record.workspace, id);
    state_.jobs.erase(id);
  }
}

Result<Outputs> Controller::finish_turn() {
  run_timers();
  if (std::exchange(effects_.is_retention_due, false)) remove_expired();
  stop_failed_arrays(turn_);
  settle_unstarted(turn_);
  place_ready(turn_);
  settle_pools(turn_);
  quit_if_stopped(turn_);
  set_timers();
  if (effects_.turn_lost) store_.note_loss(*effects_.turn_lost);
  if (effects_.store_problem) return fail(*effects_.store_problem);
  write_history(turn_);
  note_shares(turn_);
  note_usage(turn_);
  Changes changes = take_changes(state_, effects_);
  if (!changes.empty())
    if (auto saved = store_.save(changes); !saved) return fail(saved.error());
  state_.saved = store_.last_turn();

  effects_.idempotency_keys.clear();
  drop_ended_jobs();
  send_all_orders(turn_);
  for (auto& [session, message] : effects_.outputs.messages)
    if (auto* orders = std::get_if<Orders>(&message)) {
      orders->turn = state_.saved.number;
      orders->turn_run = state_.saved.run;
      orders->turn_proof = turn_proof(state_.turns.key, state_.saved);
    }
  effects_.outputs.events = std::move(changes.events);
  return std::exchange(effects_.outputs, {});
}

void Controller::begin_stop() { control::begin_stop(turn_); }
std::string Controller::broken_invariant() const { return control::broken_invariant(turn_); }

// ── pools ──

Result<PoolView> Controller::create_pool(const Caller& caller, const PoolRequest& request) {
  return control::create_pool(turn_, caller, request);
}
Result<PoolView> Controller::resize_pool(const Caller& caller, const std::string& name,
                                         const PoolRequest& request) {
  return control::resize_pool(turn_, caller, name, request);
}
Result<PoolView> Controller::stop_resize(const Caller& caller, const std::string& name) {
  return control::stop_resize(turn_, caller, name);
}
Result<void> Controller::may_delete_pool(const Caller& caller, const std::string& name) const {
  return control::may_delete_pool(state_, caller, name);
}
Result<void> Controller::delete_pool(const Caller& caller, const std::string& name, bool force) {
  return control::delete_pool(turn_, caller, name, force);
}
Result<PoolView> Controller::pool(const Caller& caller, const std::string& name) const {
  return show_pool(turn_, caller, name);
}
std::vector<PoolView> Controller::pools(const Caller& caller) const { return list_pools(turn_, caller); }

// ── nodes ──

Result<NodeView> Controller::node(const Caller& caller, const std::string& name) const {
  return show_node(state_, caller, name);
}
std::vector<NodeView> Controller::nodes(const Caller& caller, const std::string& pool) const {
  return list_nodes(state_, caller, pool);
}
Result<NodeView> Controller::drain_node(const Caller& caller, const std::string& name, bool drained) {
  return control::drain_node(turn_, caller, name, drained);
}
Result<NodeView> Controller::evict_node(const Caller& caller, const std::string& name,
                                        std::optional<Duration> notice, const std::string& reason) {
  return control::evict_node(turn_, caller, name, notice, reason);
}
Result<NodeView> Controller::remove_node(const Caller& caller, const std::string& name, Deallocation rule) {
  return control::remove_node(turn_, caller, name, rule);
}
Result<NodeView> Controller::reset_node(const Caller& caller, const std::string& name) {
  return control::reset_node(turn_, caller, name);
}
std::vector<NodeRecord> Controller::local_nodes() const { return control::local_nodes(state_); }

void Controller::hello(SessionId session, const Caller& caller, const Hello& hello,
                       const Credential& credential) {
  on_hello(turn_, session, caller, hello, credential);
}
void Controller::report(SessionId session, const Report& report) { on_report(turn_, session, report); }
void Controller::disconnected(SessionId session) { on_disconnect(turn_, session); }
void Controller::all_received(TimePoint until) { on_all_received(turn_, until); }
void Controller::service_paused(Duration pause) { on_pause(turn_, pause); }
void Controller::node_is_lost(const Caller& caller, const std::string& name, const std::string& why) {
  on_node_lost(turn_, caller, name, why);
}

// ── jobs ──

Result<std::optional<JobRecord>> Controller::submitted_before(const Caller& caller, const std::string& key) {
  if (key.empty()) return std::nullopt;
  const auto known = effects_.idempotency_keys.find({caller.workspace, key});
  std::optional<JobId> id =
      known == effects_.idempotency_keys.end() ? std::nullopt : std::optional(known->second);
  if (!id) {
    auto stored = store_.job_by_key(caller.workspace, key);
    if (!stored) return fail(stored.error());
    id = *stored;
  }
  if (!id) return std::nullopt;
  if (const auto live = state_.jobs.find(*id); live != state_.jobs.end()) return live->second.record;
  return store_.job(*id);
}

Result<Controller::Submitted> Controller::submit(const Caller& caller, JobSpec spec,
                                                 const std::string& idempotency_key) {
  if (!state_.stopping) {
    auto before = submitted_before(caller, idempotency_key);
    if (!before) return fail(before.error());
    if (*before) return Submitted{**before, {}, true};
  }
  return on_submit(turn_, caller, std::move(spec), idempotency_key);
}

Result<std::optional<JobRecord>> Controller::ended_job(const Caller& caller, JobId id) {
  if (const auto live = state_.jobs.find(id);
      live != state_.jobs.end() && !is_terminal(live->second.record.state))
    return std::nullopt;
  auto record = store_.job(id);
  if (record && *record && (*record)->workspace != caller.workspace) return std::nullopt;
  return record;
}

Result<JobRecord> Controller::update_job(const Caller& caller, JobId id, const JobChange& change) {
  const auto ended = ended_job(caller, id);
  if (!ended) return fail(ended.error());
  // Also an ended job is pinned; a change of anything else is refused before.
  const JobChange rest{change.priority, change.max_parallel_tasks, change.held, {}};
  if (*ended && rest != JobChange{}) return fail(no_change(**ended));
  if (rest != JobChange{})
    if (auto changed = on_update(turn_, caller, id, rest); !changed || !change.pinned) return changed;
  if (*ended) return on_pin(turn_, caller, **ended, *change.pinned);
  return on_pin(turn_, caller, state_.jobs.at(id).record, *change.pinned);
}

Result<JobRecord> Controller::cancel(const Caller& caller, JobId id, const std::string& reason) {
  const auto ended = ended_job(caller, id);
  if (!ended) return fail(ended.error());
  if (*ended) return **ended;  // there is nothing to stop
  return on_cancel(turn_, caller, id, reason);
}

Result<JobRecord> Controller::cancel_task(const Caller& caller, JobId id, const std::string& task,
                                          const std::string& reason) {
  const auto ended = ended_job(caller, id);
  if (!ended) return fail(ended.error());
  if (*ended) return fail(no_change(**ended));
  return on_cancel_task(turn_, caller, id, task, reason);
}

Result<JobRecord> Controller::rerun(const Caller& caller, JobId id, const Rerun& asked) {
  Ended ended;
  if (!state_.jobs.contains(id)) {  // one that ends in this turn still is
    const auto over = ended_job(caller, id);
    if (!over) return fail(over.error());
    const std::vector<JobId>& removed = effects_.changes.jobs_removed;
    if (!*over || std::count(removed.begin(), removed.end(), id) > 0) return fail(no_job(id));
    auto job = store_.live_job(**over);
    if (!job) return fail(job.error());
    ended.job = std::move(*job);
  }
  auto tasks = store_.unsuccessful_tasks(id, Ended::tasks_max + 1);
  if (!tasks) return fail(tasks.error());
  ended.tasks = std::move(*tasks);
  // What ended in this turn is not stored yet, and what was stored as ended may run again since.
  std::erase_if(ended.tasks, [&](const TaskRecord& task) { return effects_.dirty_tasks.contains(task.ref); });
  for (const auto& [ref, task] : effects_.dirty_tasks)
    if (ref.job == id && is_terminal(task.state) && task.state != TaskState::succeeded)
      ended.tasks.push_back(task);
  return on_rerun(turn_, caller, id, asked, std::move(ended));
}

// Some at a time: what is deleted of each is on record, and its files and rows go in steps of their own.
void Controller::remove_expired() {
  constexpr std::uint32_t step = 50;
  const auto expired = store_.expired_jobs(settings_.retain, turn_.now, step);
  if (!expired) {
    effects_.store_problem = expired.error();
    return;
  }
  for (const JobRecord& job : *expired) {
    const std::vector<JobId>& removed = effects_.changes.jobs_removed;
    const auto changed = [&](const JobRecord& one) { return one.id == job.id; };  // pinned in this very turn
    if (state_.jobs.contains(job.id) || std::count(removed.begin(), removed.end(), job.id) > 0 ||
        std::any_of(effects_.changes.jobs.begin(), effects_.changes.jobs.end(), changed))
      continue;
    const Duration kept = job.retain ? *job.retain : settings_.retain.of(job.workspace).value_or(Duration(0));
    delete_job(turn_, job,
               fmt::format("{} ({}) was deleted: it had ended {} ago, and is kept {}", to_string(job.id),
                           job.name, format_duration(turn_.now - *job.ended_at), format_duration(kept)));
    if (auto counted = count_disk({{{job.workspace, job.submitted_by}, to_string(job.id), 0}}); !counted)
      effects_.store_problem = counted.error();
  }
  effects_.timers.push_back(
      {turn_.now + (expired->size() == step ? Duration(100ms) : look_for_expired_every(settings_.retain)),
       RetentionDue{}});
}

Result<void> Controller::remove_job(const Caller& caller, JobId id) {
  auto record = store_.job(id);
  if (!record) return fail(record.error());
  if (!*record || (*record)->workspace != caller.workspace) return fail(no_job(id));
  if (auto removed = control::remove_job(turn_, caller, **record); !removed) return removed;
  return count_disk({{{(*record)->workspace, (*record)->submitted_by}, to_string(id), 0}});
}

// ── folders, datastores, secrets, tokens, users ──

FolderRecord Controller::put_folder(const Caller& caller, const std::string& path, Tags tags) {
  return control::put_folder(turn_, caller, path, std::move(tags));
}
const FolderRecord* Controller::folder(const Caller& caller, const std::string& path) const {
  return find_folder(state_, caller, path);
}
std::vector<FolderRecord> Controller::folders(const Caller& caller, const std::string& prefix) const {
  return list_folders(state_, caller, prefix);
}
void Controller::remove_folder(const Caller& caller, const std::string& path) {
  control::remove_folder(turn_, caller, path);
}
Result<DatastoreRecord> Controller::put_datastore(const Caller& caller, DatastoreRecord record) {
  return control::put_datastore(turn_, caller, std::move(record));
}
bool Controller::is_datastore_name_free(const Caller& caller, const std::string& name) const {
  return !datastore(caller, name) && !state_.removals.contains(datastore_folder(caller.workspace, name));
}
Result<DatastoreRecord> Controller::datastore(const Caller& caller, const std::string& name) const {
  return show_datastore(state_, caller, name);
}
std::vector<DatastoreRecord> Controller::datastores(const Caller& caller) const {
  return list_datastores(state_, caller);
}
Result<void> Controller::delete_datastore(const Caller& caller, const std::string& name) {
  if (auto deleted = control::delete_datastore(turn_, caller, name); !deleted) return deleted;
  return count_disk({{{caller.workspace, {}}, "datastore/" + name, 0}});
}
Result<QuotaView> Controller::change_quota(const Caller& caller, const QuotaKey& key,
                                           const QuotaChange& change) {
  return control::change_quota(turn_, caller, key, change);
}
Result<std::uint64_t> Controller::disk_of(const DiskUse& use) {
  const std::vector<DiskUse>& changed = effects_.changes.disk;
  for (auto one = changed.rbegin(); one != changed.rend(); ++one)
    if (one->key == use.key && one->thing == use.thing) return one->bytes;
  return store_.disk_of(use.key, use.thing);
}
Result<void> Controller::count_disk(const std::vector<DiskUse>& uses) {
  for (DiskUse use : uses) {
    if (const auto id = parse_job_id(use.thing)) {
      const std::vector<JobId>& removed = effects_.changes.jobs_removed;
      auto job = store_.job(*id);
      if (!job) return fail(job.error());
      if (!*job || std::count(removed.begin(), removed.end(), *id) > 0) use.bytes = 0;
    }
    const auto before = disk_of(use);
    if (!before) return fail(before.error());
    if (*before != use.bytes) control::count_disk(turn_, use, *before);
  }
  return {};
}
Result<void> Controller::add_disk(const DiskUse& use) {
  const auto before = disk_of(use);
  if (!before) return fail(before.error());
  control::count_disk(turn_, {use.key, use.thing, *before + use.bytes}, *before);
  return {};
}
Result<SecretRecord> Controller::set_secret(const Caller& caller, const SecretKey& key, std::string sealed) {
  return control::set_secret(turn_, caller, key, std::move(sealed));
}
Result<void> Controller::delete_secret(const Caller& caller, const SecretKey& key) {
  return control::delete_secret(turn_, caller, key);
}
void Controller::files_removed(const std::string& folder) { on_files_removed(turn_, folder); }
Result<TokenRecord> Controller::add_token(const Caller& caller, const TokenRecord& token) {
  return caller.role == Role::admin ? control::add_token(turn_, token)
                                    : control::add_own_token(turn_, caller, token);
}
Result<void> Controller::revoke_token(const Caller& caller, const std::string& id_or_name) {
  return control::revoke_token(turn_, caller, id_or_name);
}
Result<TokenRecord> Controller::rotate_token(const Caller& caller, const std::string& id_or_name,
                                             const Rotation& rotation) {
  return control::rotate_token(turn_, caller, id_or_name, rotation);
}
Result<UserRecord> Controller::add_user(const Caller& caller, const UserRecord& user,
                                        const std::optional<MemberRecord>& member) {
  return control::add_user(turn_, caller, user, member);
}
Result<UserRecord> Controller::enable_user(const Caller& caller, const std::string& name) {
  return control::enable_user(turn_, caller, name);
}
Result<UserDisabled> Controller::disable_user(const Caller& caller, const std::string& name, JobsLeft jobs) {
  return control::disable_user(turn_, caller, name, jobs);
}
Result<std::size_t> Controller::remove_user(const Caller& caller, const std::string& name, JobsLeft jobs) {
  return control::remove_user(turn_, caller, name, jobs);
}
Result<UserRecord> Controller::invite_user(const Caller& caller, const std::string& name,
                                           const std::string& code_hash, Duration good_for) {
  return control::invite_user(turn_, caller, name, code_hash, good_for);
}
Result<MemberRecord> Controller::put_member(const Caller& caller, const MemberRecord& member) {
  return control::put_member(turn_, caller, member);
}
Result<std::size_t> Controller::remove_member(const Caller& caller, const std::string& workspace,
                                              const std::string& user, JobsLeft jobs) {
  return control::remove_member(turn_, caller, workspace, user, jobs);
}
void Controller::note_token_use(const std::map<std::string, TimePoint>& last_used) {
  control::note_token_use(turn_, last_used);
}

}  // namespace slipway::control
