#pragma once
// The control plane: owns the state, runs the turns, and is the only one that knows the Store.
//
// Every method is called within a turn: it changes the state and records effects. finish_turn() places what
// can be placed, saves the turn's changes as one, and only then returns messages and events. When saving
// fails, the object must be thrown away and a new one loaded from the store: nothing of the failed turn was
// ever shown to anybody.
//
// No clock, no randomness, no threads, no I/O but the Store: the same inputs give the same outputs. One
// thread owns it. What each method does is in the headers included below.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "control/catalog.h"
#include "control/effects.h"
#include "control/jobs.h"
#include "control/live.h"
#include "control/nodes.h"
#include "control/outputs.h"
#include "control/pools.h"
#include "control/scale.h"
#include "control/settings.h"
#include "control/snapshot.h"
#include "control/spec_cache.h"
#include "control/state.h"
#include "control/store.h"
#include "control/turn.h"
#include "control/users.h"

namespace slipway::control {

class Controller {
 public:
  using Submitted = control::Submitted;
  using Totals = control::Totals;

  // Loads what the store has. `seed` is for the jitter of retries.
  static Result<std::unique_ptr<Controller>> load(Store& store, const Settings& settings, std::uint64_t seed,
                                                  TimePoint now);
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;
  ~Controller();

  // -- the turn
  // Begins a turn. A clock that goes back is taken to stand still.
  void set_now(TimePoint now) { turn_.now = std::max(turn_.now, now); }
  // Runs the timers that are due (after the turn's inputs, so that a report that waited for a slow save is
  // applied before its node is called lost), places, saves, and returns what to do.
  [[nodiscard]] Result<Outputs> finish_turn();
  const SavedTurn& saved() const { return state_.saved; }  // the last turn that was
  std::optional<TimePoint> next_deadline() const;          // when the next turn must be taken at the latest

  // -- pools
  Result<PoolView> create_pool(const Caller& caller, const PoolRequest& request);
  Result<PoolView> resize_pool(const Caller& caller, const std::string& name, const PoolRequest& request);
  Result<PoolView> stop_resize(const Caller& caller, const std::string& name);
  Result<void> delete_pool(const Caller& caller, const std::string& name, bool force = false);
  Result<void> may_delete_pool(const Caller& caller, const std::string& name) const;
  Result<PoolView> pool(const Caller& caller, const std::string& name) const;
  std::vector<PoolView> pools(const Caller& caller) const;

  // -- nodes
  Result<NodeView> node(const Caller& caller, const std::string& name) const;
  std::vector<NodeView> nodes(const Caller& caller, const std::string& pool) const;
  Result<NodeView> drain_node(const Caller& caller, const std::string& name, bool drained);
  Result<NodeView> evict_node(const Caller& caller, const std::string& name, std::optional<Duration> notice,
                              const std::string& reason);
  Result<NodeView> remove_node(const Caller& caller, const std::string& name, Deallocation rule);
  Result<NodeView> reset_node(const Caller& caller, const std::string& name);  // its start task runs again
  std::vector<NodeRecord> local_nodes() const;  // those the local provisioner should keep up

  const Turn& turn() const { return turn_; }
  void hello(SessionId session, const Caller& caller, const Hello& hello, const Credential& credential = {});
  void report(SessionId session, const Report& report);
  void disconnected(SessionId session);
  // Everything that nodes sent before `until` has been handed over. Never called: that is always so.
  void all_received(TimePoint until);
  void service_paused(Duration pause);  // it did not run for so long
  void node_is_lost(const Caller& caller, const std::string& name, const std::string& why);

  // -- jobs
  Result<Submitted> submit(const Caller& caller, JobSpec spec, const std::string& idempotency_key);
  Result<JobRecord> update_job(const Caller& caller, JobId id, const JobChange& change);
  Result<JobRecord> cancel(const Caller& caller, JobId id, const std::string& reason);
  Result<JobRecord> cancel_task(const Caller& caller, JobId id, const std::string& task,
                                const std::string& reason);
  Result<JobRecord> rerun(const Caller& caller, JobId id, const Rerun& asked);
  Result<void> remove_job(const Caller& caller, JobId id);
  // By id, or the newest of a name.
  Result<JobRecord> find_job(const Caller& caller, const std::string& id_or_name);
  Result<std::vector<std::vector<AttemptRecord>>> attempts_of(const std::vector<TaskRef>& tasks) {
    return store_.attempts_of(tasks);
  }

  // -- folders, datastores, quotas and secrets
  FolderRecord put_folder(const Caller& caller, const std::string& path, Tags tags);
  const FolderRecord* folder(const Caller& caller, const std::string& path) const;
  std::vector<FolderRecord> folders(const Caller& caller, const std::string& prefix) const;
  void remove_folder(const Caller& caller, const std::string& path);
  Result<DatastoreRecord> put_datastore(const Caller& caller, DatastoreRecord record);
  Result<DatastoreRecord> datastore(const Caller& caller, const std::string& name) const;
  std::vector<DatastoreRecord> datastores(const Caller& caller) const;
  bool is_datastore_name_free(const Caller& caller,
                              const std::string& name) const;  // its files are gone, too
  Result<void> delete_datastore(const Caller& caller, const std::string& name);
  Result<QuotaView> change_quota(const Caller& caller, const QuotaKey& key, const QuotaChange& change);
  // What these things take of the disk, as of a count. Of jobs that are gone nothing is kept.
  Result<void> count_disk(const std::vector<DiskUse>& uses);
  // So much more, until the next count.
  Result<void> add_disk(const DiskUse& use);
  Result<SecretRecord> set_secret(const Caller& caller, const SecretKey& key, std::string sealed);
  Result<void> delete_secret(const Caller& caller, const SecretKey& key);
  void files_removed(const std::string& folder);  // of Outputs::folders_removed, and now it is gone
  // The newest job with this tag, live or ended.
  Result<std::optional<JobRecord>> find_job_by_tag(const Caller& caller, const std::string& name,
                                                   const std::string& value);
  Result<std::vector<JobRecord>> jobs_by_tag(const Caller& caller, const std::string& name,
                                             const std::string& value, std::optional<JobId> after,
                                             std::uint32_t limit);

  // -- tokens
  Result<TokenRecord> add_token(const Caller& caller, const TokenRecord& token);
  Result<void> revoke_token(const Caller& caller, const std::string& id_or_name);
  Result<TokenRecord> rotate_token(const Caller& caller, const std::string& id_or_name,
                                   const Rotation& rotation);
  void note_token_use(const std::map<std::string, TimePoint>& last_used);
  // -- users
  Result<UserRecord> add_user(const Caller& caller, const UserRecord& user,
                              const std::optional<MemberRecord>& member);
  Result<UserRecord> enable_user(const Caller& caller, const std::string& name);
  Result<UserDisabled> disable_user(const Caller& caller, const std::string& name, JobsLeft jobs);
  Result<std::size_t> remove_user(const Caller& caller, const std::string& name, JobsLeft jobs);
  Result<UserRecord> invite_user(const Caller& caller, const std::string& name, const std::string& code_hash,
                                 Duration good_for);
  Result<MemberRecord> put_member(const Caller& caller, const MemberRecord& member);
  Result<std::size_t> remove_member(const Caller& caller, const std::string& workspace,
                                    const std::string& user, JobsLeft jobs);
  Result<TokenRecord> sign_in(const SignIn& request) { return control::sign_in(turn_, request); }
  Result<TokenRecord> sign_in_provided(const ProvidedUser& who, const SignIn& request) {
    return control::sign_in_provided(turn_, who, request);
  }
  Result<void> sign_out(const std::string& token) { return control::sign_out(turn_, token); }

  const std::vector<TokenRecord>& tokens() const { return state_.tokens; }

  // -- stopping the service in order: nothing is placed any more; attempts are evicted and queued again for
  // the next start
  void begin_stop();
  bool is_stopped() const { return state_.quit_sent; }  // nothing runs and the local agents were sent `quit`

  // -- copies for the read threads, made between two turns
  const Totals& totals() const { return state_.totals; }
  void fill(Snapshot& snapshot) const;  // snapshot.cpp
  LiveView live(const LiveQuery& query) const { return copy_live(turn_, query); }

  // -- for the deterministic simulation: "" or what is broken
  std::string broken_invariant() const;
  const State& state() const { return state_; }
  std::size_t live_jobs() const { return state_.jobs.size(); }

 private:
  Result<std::uint64_t> disk_of(const DiskUse& use);
  // As it is on record; nullopt where it still runs, or is not of the caller's workspace.
  Result<std::optional<JobRecord>> ended_job(const Caller& caller, JobId id);
  Controller(Store& store, const Settings& settings, std::uint64_t seed, TimePoint now);

  // The job that an idempotency key was used for before, if any.
  Result<std::optional<JobRecord>> submitted_before(const Caller& caller, const std::string& key);
  void set_timers();
  void run_timers();
  void drop_ended_jobs();
  void remove_expired();

  Store& store_;
  Settings settings_;
  Random random_;
  State state_;
  Effects effects_;
  SpecCache specs_;
  Turn turn_;
};

}  // namespace slipway::control
