#pragma once
// The control plane: what has been asked for, what was seen, and what follows. One thread owns it.
//
// Every method is called within a turn: it changes memory and notes what must be saved. finish_turn() places
// what can be placed, saves the turn's changes as one, and only then hands out messages and events. When
// saving fails, the object must be thrown away and a new one loaded from the store: nothing of the failed
// turn was ever shown to anybody.
//
// No clock, no randomness, no threads, no I/O but the Store: the same inputs give the same outputs.
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "control/outputs.h"
#include "control/store.h"
#include "domain/protocol.h"
#include "domain/queue.h"
#include "domain/records.h"
#include "domain/usage.h"
#include "formula/formula.h"
#include "launch/launch.h"
#include "sched/demand.h"
#include "sched/plan.h"

namespace slipway::control {

struct Machine {  // the one the service runs on
  Resources total;
  std::function<std::vector<std::string>()> engines;  // what it can run containers with; none: nobody looks
};

struct Settings {
  Machine machine;
  Duration reserve_after{1'000'000};
  Duration retry_wait_first{100'000};  // doubled with each retry, plus up to half of itself at random
  Duration retry_wait_max{60'000'000};
  Duration heartbeat_max{700'000};
  Duration reform_after{2'000'000};   // an elastic gang runs at least so long before it is made larger
  Duration refill_after{1'000'000};   // a low-priority node that was taken away is asked for again
  Duration replace_after{5'000'000};  // autoscaling replaces a node whose start task failed
  Duration sample_every{5'000'000};   // of each pool, for formulas; 0: never
};

struct Caller {
  std::string name;  // of the token
  std::string workspace = "default";
};

class Controller {
 public:
  // Loads what the store has. `seed` is for the jitter of retries.
  static Result<std::unique_ptr<Controller>> load(Store& store, const Settings& settings, std::uint64_t seed,
                                                  TimePoint now);
  ~Controller();

  // -- the turn
  // Begins a turn. A clock that goes back is taken to stand still.
  void set_now(TimePoint now) { now_ = std::max(now_, now); }
  // Runs the timers that are due (after the turn's inputs, so that a report that waited behind a slow save is
  // heard before its node is called silent), places, saves, and says what to do.
  [[nodiscard]] Result<Outputs> finish_turn();
  std::optional<TimePoint> next_deadline() const;  // when the next turn must be taken at the latest

  // -- pools
  Result<PoolView> create_pool(const Caller& caller, const PoolRequest& wish);
  Result<PoolView> resize_pool(const Caller& caller, const std::string& name, const PoolRequest& wish);
  Result<PoolView> stop_resize(const Caller& caller, const std::string& name);
  Result<void> delete_pool(const Caller& caller, const std::string& name, bool force = false);
  Result<PoolView> pool(const Caller& caller, const std::string& name) const;
  std::vector<PoolView> pools(const Caller& caller) const;
  Result<std::vector<PoolMoment>> pool_history(const Caller& caller, const std::string& name,
                                               std::uint32_t limit);
  struct Evaluation {
    formula::Outcome outcome;
    AutoscaleRun run;
    std::string why;  // where a scenario says so
  };
  // What a formula (the pool's own, or its scenario, where none is given) would say now; nothing is changed.
  Result<Evaluation> evaluate_autoscale(const Caller& caller, const std::string& name,
                                        const std::optional<std::string>& text) const;

  // -- nodes
  Result<NodeView> node(const Caller& caller, const std::string& name) const;
  std::vector<NodeView> nodes(const Caller& caller, const std::string& pool) const;
  Result<NodeView> drain_node(const Caller& caller, const std::string& name, bool drained);
  Result<NodeView> evict_node(const Caller& caller, const std::string& name, std::optional<Duration> notice,
                              const std::string& reason);
  Result<NodeView> remove_node(const Caller& caller, const std::string& name, Deallocation rule);
  Result<NodeView> reset_node(const Caller& caller, const std::string& name);  // its start task runs again
  std::vector<NodeRecord> local_nodes() const;  // those the local provisioner should keep up

  void hello(SessionId session, const Caller& caller, const Hello& hello);
  void report(SessionId session, const Report& report);
  void disconnected(SessionId session);
  // Somebody who knows, a provisioner, says that the machine is gone: it is not waited for. A node that is
  // lost already or that nobody knows is no news.
  void node_is_lost(const Caller& caller, const std::string& name, const std::string& why);

  // -- jobs
  struct Submitted {
    JobRecord job;
    std::vector<std::string> notes;
    bool repeated = false;  // an idempotency key seen before
  };
  Result<Submitted> submit(const Caller& caller, JobSpec spec, const std::string& idempotency_key);
  Result<JobRecord> cancel(const Caller& caller, JobId id, const std::string& reason);
  Result<void> remove_job(const Caller& caller, JobId id);
  // By id, or by name where that is unique.
  Result<JobRecord> find_job(const Caller& caller, const std::string& id_or_name);

  struct Why {
    std::string answer;
    std::string last_lines;  // of the stderr of the task that failed first
    struct Task {
      std::string name;  // or a range of them: sweep[3-19]
      TaskState state;
      std::string reason;
    };
    std::vector<Task> tasks;
  };
  Result<Why> why(const JobRecord& job);

  // What waits, in the order of the turns; of all pools where none is named.
  Result<std::vector<QueueLine>> queue(const Caller& caller, const std::string& pool, std::uint32_t limit);

  // Where the time of the nodes went.
  Result<Usage> pool_usage(const Caller& caller, const std::string& pool) const;
  Result<Usage> job_usage(const JobRecord& job);

  // -- folders and datastores (folders.cpp)
  FolderRecord put_folder(const Caller& caller, const std::string& path,
                          Tags tags);                                               // made, or its tags anew
  const FolderRecord* folder(const Caller& caller, const std::string& path) const;  // nullptr: none
  // Those whose path begins with `prefix`, in order.
  std::vector<FolderRecord> folders(const Caller& caller, const std::string& prefix) const;
  void remove_folder(const Caller& caller, const std::string& path);
  Result<DatastoreRecord> put_datastore(const Caller& caller, DatastoreRecord record);
  Result<DatastoreRecord> datastore(const Caller& caller, const std::string& name) const;
  std::vector<DatastoreRecord> datastores(const Caller& caller) const;
  Result<void> delete_datastore(const Caller& caller, const std::string& name);
  // The newest job with this tag, live or ended.
  Result<std::optional<JobRecord>> find_job_by_tag(const Caller& caller, const std::string& name,
                                                   const std::string& value);
  Result<std::vector<JobRecord>> jobs_by_tag(const Caller& caller, const std::string& name,
                                             const std::string& value, std::optional<JobId> after,
                                             std::uint32_t limit);

  // -- tokens
  void add_token(const TokenRecord& token);
  Result<void> revoke_token(const Caller& caller, const std::string& id);
  const std::vector<TokenRecord>& tokens() const { return tokens_; }

  // -- stopping the service in order: no more placing; attempts are evicted and queued again for the next
  // start
  void begin_stop();
  bool is_stopped() const { return quit_sent_; }  // nothing runs and the local agents were told to quit

  struct Totals {  // since this object was loaded
    std::uint64_t evictions = 0, nodes_lost = 0, retries = 0;
  };
  const Totals& totals() const { return totals_; }

  // -- for the deterministic simulation: "" or what is broken
  std::string broken_invariant() const;
  Store& store() { return store_; }
  std::size_t live_jobs() const { return jobs_.size(); }

 private:
  struct Process {  // of a live attempt
    enum class State : std::uint8_t { sent, running, ended };
    State state = State::sent;
    std::uint32_t node = 0;  // place in the attempt's list of nodes
    bool decides = true;     // see domain/gang.h
    bool waited_for = false;
    bool matters = true;
    std::string name;  // worker-1; empty where it is the only one
  };
  struct Attempt {
    AttemptRecord record;
    std::vector<Process> processes;  // by rank
    std::vector<Resources> needs;    // by node
    std::vector<bool> released;      // by node: its room was given back
    std::uint32_t processes_left = 0;
    std::optional<TimePoint> first_started_at;  // of any of its processes
    TimePoint last_ended_at{};                  // of its processes
    bool stopping = false;
    bool users_fault = true;
    bool is_ending = false;            // all that decide have ended well: whatever comes now, it succeeded
    std::vector<bool> prepared;        // by node, until it is launched
    std::vector<bool> silent;          // by node
    std::vector<bool> holds;           // by node: it has room there, else it waits among the node's `behind`
    std::vector<sched::Share> shares;  // by node: what its user is charged for it
    struct Metered {                   // see usage.cpp
      std::optional<Spent> as;
      sched::Share share = 0;
    };
    std::vector<Metered> metered;        // by node
    UsageMeter usage;                    // of all of it
    std::optional<TimePoint> marked_at;  // when it last changed its checkpoint folder, as far as it was heard
    // Of a gang whose framework takes nodes that come and lets others go (elastic.cpp):
    std::map<NodeId, std::vector<std::uint32_t>> joining;  // getting ready, with the GPUs kept for it there
    std::set<NodeId> unwilling;                            // tried and failed: not asked again
    TimePoint changed_at{};                                // when a node came or went
  };
  struct Task {
    TaskRecord record;
    std::unique_ptr<Attempt> attempt;  // while one is live
  };
  struct Counts {  // TaskCounts, small: there may be a group for each of 100,000 tasks
    std::uint32_t waiting = 0, queued = 0, active = 0, succeeded = 0, failed = 0, cancelled = 0, skipped = 0;
  };
  struct Group {
    std::string name;
    std::uint32_t tasks = 1;
    std::uint32_t next = 0;
    std::uint32_t shape = 0;      // in the job's list
    std::uint32_t waits_for = 0;  // groups it depends on that have not succeeded
    std::uint16_t retries = 0;
    bool is_array = false;
    bool prepares = false;  // its nodes must get ready first
    TaskState rest = TaskState::queued;
    Counts counts;
    std::unique_ptr<std::map<std::uint32_t, Task>> live;  // placed, or waiting for another try
  };
  struct Shape {
    sched::Shape need;
    std::deque<std::uint32_t> groups;  // with tasks ready that have never been placed
    std::deque<TaskRef> again;         // tasks ready for another try
    double seconds_mean = -1;          // of ended attempts; below 0: none ended yet
  };
  struct Job {
    JobRecord record;
    std::vector<Group> groups;
    std::vector<Shape> shapes;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  // dependency, dependent; sorted
    sched::Turn turn;
    UsageMeter usage;
    bool cancelling = false;
  };
  struct Node {
    NodeRecord record;
    std::optional<SessionId> session;
    TimePoint heard_at{};
    TimePoint sent_at{};
    std::uint64_t received = 0;
    std::uint64_t sent = 0;
    Orders outbox;
    Resources used;
    std::set<std::uint32_t> gpus_free;
    std::set<AttemptKey> attempts;  // with processes here
    std::deque<AttemptKey> behind;  // of those, waiting for room on the node
    std::set<AttemptKey> joining;   // gangs it is getting ready for, while they run elsewhere
    std::uint32_t preparing = 0;    // of both, not launched: the keeper does not know of their room yet
    std::map<AttemptKey, std::set<std::uint32_t>>
        cleaning;          // unknown or fenced ones (their ranks) it must end first
    bool counted = false;  // as a node that is there
    sched::Share metered = 0;
    std::vector<std::string> engines;
    std::string pool_key;  // "workspace/name"
    bool has_joined = false;
    MachineUse use;  // as it last said
  };
  struct SampleRun {  // values that were the same `count` times in a row
    TimePoint first{};
    std::uint32_t count = 0;
    std::array<double, formula::metric_count> values{};
    bool is_saved = false;
  };
  struct Pool : sched::Pool {
    PoolRecord record;
    bool changed = true;  // something that could let a task start
    std::set<NodeId> members;
    std::map<NodeState, std::uint32_t> states;  // how many of them are in which
    NodeCounts present;                         // members that are not leaving
    std::uint32_t coming = 0;                   // members that have never joined
    std::uint64_t name_hint = 1;                // no lower number is free for a node's name
    TimePoint refill_at{};                      // low-priority nodes are asked for again
    EvictionRule rule;                          // the one in force
    Random chances{1};                          // of that rule
    TimePoint evict_at{};
    TimePoint evaluate_at{};
    std::deque<SampleRun> samples;            // oldest first
    std::uint64_t succeeded = 0, failed = 0;  // tasks, since the last sample
    std::vector<std::string> news;            // of this turn, for its history
    UsageMeter usage;
    bool usage_changed = false;
    std::set<sched::UserId> users_changed;          // whose use is to be written down
    std::map<sched::UserId, TimePoint> used_until;  // of what was loaded
  };
  enum class TimerKind : std::uint8_t {
    retry,
    wall_time,
    node_silence,
    look_again,
    start_timeout,
    end_grace,
    start_task_timeout,
    start_task_again,
    replace_node,
    resize_timeout,
    settle,
    evict,
    evaluate,
    sample
  };
  struct Timer {
    TimePoint at;
    TimerKind kind;
    AttemptKey key;    // retry (attempt 0), wall_time, start_timeout, end_grace, and of start tasks
    NodeId node;       // node_silence, and of start tasks
    std::string pool;  // look_again, resize_timeout, settle, evict, evaluate: "workspace/name"
    friend auto operator<=>(const Timer&, const Timer&) = default;
  };

  Controller(Store& store, const Settings& settings, std::uint64_t seed, TimePoint now);

  // loading (controller.cpp)
  void restore(Loaded loaded);
  void restore_job(LiveJob live);
  void restore_task(Job& job, const TaskRecord& record, const AttemptRecord* attempt);
  void run_timer(const Timer& timer);
  void quit_if_stopped();
  Changes take_changes();

  // jobs (jobs.cpp)
  Result<std::string> choose_pool(const Caller& caller, const std::string& asked,
                                  std::vector<std::string>& notes);
  std::uint32_t nodes_for_roles(const Pool& pool, const TaskSpec& task) const;
  Result<void> check_engines(const Pool& pool, const TaskSpec& task) const;
  Result<void> check_fits_ever(const Pool& pool, const JobSpec& spec) const;
  Job make_job(const JobRecord& record, const std::vector<TaskSpec>& tasks) const;
  void make_ready(Job& job, std::uint32_t group);
  void make_ready(Job& job, Task& task);
  void end_rest(Job& job, std::uint32_t group, TaskState state);
  void recount(Job& job, Group& group, TaskState from, TaskState to, std::uint32_t tasks = 1);
  void settle_dependents(Job& job, std::uint32_t group);
  void finish_job_if_done(Job& job);
  void unqueue_if_empty(Job& job, std::uint32_t shape);
  void queue_shape(Job& job, std::uint32_t shape);
  static std::uint64_t tasks_ready(const Job& job, const Shape& shape);

  // placing (placing.cpp)
  void place_ready();
  void place_on(Pool& pool, Job& job, std::uint32_t shape, std::vector<NodeId> nodes, bool behind);
  Task& take_next(Job& job, std::uint32_t shape);
  void place_behind(Pool& pool);
  static void fill_processes(Attempt& attempt, const TaskSpec& spec);
  std::vector<View::Place> places_of(const PoolRecord& pool, const std::vector<Mount>& own,
                                     std::optional<JobId> job) const;
  launch::Placement placement_of(const Attempt& attempt, const TaskSpec& spec);
  std::vector<StartOrder> orders_of(const Attempt& attempt);
  std::vector<PrepareOrder> preparing_orders_of(const Attempt& attempt);
  void launch_attempt(Attempt& attempt);
  Result<std::shared_ptr<const TaskSpec>> spec_of(JobId job, std::uint32_t group);

  // sharing (sharing.cpp)
  void admit(Job& job);
  void set_policy(Pool& pool);
  Result<void> change_policy(const Caller& caller, PoolRecord& pool, const PolicyChange& change);
  void restore_shares(std::vector<ShareRecord> shares);
  void charge(Pool& pool, Attempt& attempt, std::uint32_t node_place, TimePoint since);
  void discharge(Pool& pool, Attempt& attempt, std::uint32_t node_place);
  std::optional<TimePoint> free_by(NodeId node, const Resources& need);
  void note_shares();
  std::string broken_sharing(const Pool& pool) const;
  std::string broken_promise(const Pool& pool) const;

  // usage (usage.cpp)
  std::optional<Spent> doing(const Attempt& attempt, std::uint32_t place) const;
  void meter(Attempt& attempt, std::uint32_t place);
  void meter_all(Attempt& attempt);
  void count_node(Node& node);
  void lose_work(Job& job, const Attempt& attempt);
  void restore_usage(Attempt& attempt);
  void note_usage();
  std::string broken_usage(const Pool& pool) const;

  // elastic gangs (elastic.cpp)
  std::uint64_t more_allowed(const Pool& pool, const TaskSpec& spec, const sched::Turn& turn) const;
  std::vector<NodeId> widened(const Pool& pool, const TaskSpec& spec, std::vector<NodeId> nodes,
                              std::uint64_t nodes_max) const;
  void grow_elastic(const std::string& pool_key, Pool& pool);
  static std::vector<NodeId> present_nodes(const Attempt& attempt);
  bool can_lose(const Attempt& attempt, std::uint32_t node_place);
  void lose_part(Attempt& attempt, std::uint32_t node_place, EndReason reason, const std::string& why);
  void leave_gang(Attempt& attempt, std::uint32_t node_place, const std::string& why);
  void invite(Attempt& attempt, Node& node, const TaskSpec& spec);
  void join_gang(Attempt& attempt, Node& node, const Prepared& prepared);
  std::vector<std::uint32_t> uninvite(Attempt& attempt, Node& node);
  void uninvite_all(Attempt& attempt);
  void uninvite_all(Node& node);
  void tell_hosts(const Attempt& attempt, const TaskSpec& spec);
  void tell_hosts(const Attempt& attempt, const TaskSpec& spec, Node& node);

  // attempts (attempts.cpp, gangs.cpp)
  void process_prepared(Node& node, const Prepared& prepared);
  void fell_silent(NodeId node, const AttemptKey& key, bool is_silent);
  void begin_ending(Attempt& attempt);
  void settle_unstarted();
  void start_timed_out(Attempt& attempt);
  void process_started(const ProcessStarted& started);
  void process_ended(NodeId node, const ProcessEnded& ended);
  void process_is_gone(Attempt& attempt, std::uint32_t rank, TimePoint time);
  void stop_attempt(Attempt& attempt, EndReason reason, std::string detail);
  void kill_lost_processes(NodeId node, const std::string& why);
  void release_node(Attempt& attempt, std::uint32_t node_place);
  void hold_room(Node& node, Attempt& attempt);
  void put_behind(Node& node, Attempt& attempt);
  static std::uint32_t place_of(const Attempt& attempt, NodeId node);
  void start_behind(Node& node);
  bool is_over_on(const Attempt& attempt, std::uint32_t node_place) const;
  void finish_attempt(Job& job, Task& task);
  void end_task(Job& job, Task& task, TaskState state, std::string reason);
  void try_again(Job& job, Task& task, Duration wait, std::string reason);
  Task* find_task(const TaskRef& ref);
  Attempt* find_attempt(const AttemptKey& key);

  // nodes (nodes.cpp)
  Node* find_node(const std::string& workspace, const std::string& name);
  void welcome(Node& node, SessionId session, const Hello& hello);
  void reconcile(Node& node, const Hello& hello, bool same_instance);
  bool is_part(const Node& node, const AttemptKey& key);
  void settle_with(Node& node, const Hello& hello, const AttemptKey& key);
  void settle_room(Node& node, const Hello& hello);
  void refuse(SessionId session, std::string reason, bool final);
  void dismiss(SessionId session, const Hello& hello);
  void lose_node(Node& node, const std::string& why);
  void refresh_node(Node& node, const std::string& reason = {});
  void remove_node_if_empty(NodeId id);
  Orders& orders_to(Node& node);
  void send_orders(Node& node);
  bool is_usable(const Node& node) const;
  void update_capacity(Node& node);
  Duration heartbeat_of(const Node& node) const;
  void set_state(Node& node, NodeState state, const std::string& reason);
  void count_as(Node& node, NodeState state);
  Pool& pool_of(const Node& node);
  const Pool& pool_of(const Node& node) const;
  Pool& pool_of(const Job& job);

  // pools (pools.cpp) and their nodes (resize.cpp)
  Result<void> complete_pool(PoolRecord& pool, const PoolRequest& wish) const;
  void remove_pool_if_empty(const std::string& key);
  std::map<NodeState, std::uint32_t> states_of(const Pool& pool) const;
  void remember(Pool& pool, std::string reason);
  void write_history(Pool& pool);
  Node& add_node(const std::string& key, Pool& pool, NodeRecord record);
  void add_local_node(const std::string& key, Pool& pool, bool low_priority);
  void forget_node(NodeId id);
  void leave_pool(Node& node, Deallocation rule, const std::string& why);
  void begin_resize(const std::string& key, Pool& pool, Deallocation rule, const std::string& asked_by,
                    const std::string& why);
  bool machine_has_room(const Pool& pool) const;
  void settle_pool(const std::string& key, Pool& pool);
  void settle_pools();
  void shrink_pool(Pool& pool);
  void finish_resize(Pool& pool);
  void resize_timed_out(Pool& pool);
  std::string broken_pool() const;

  // eviction (evict.cpp)
  void evict(Node& node, Duration notice, const std::string& why);
  StopOrder stop_order(const Attempt& attempt, const TaskSpec& spec) const;
  bool claim_room(const Pool& pool);
  void begin_evictions(const std::string& key, Pool& pool);
  void plan_eviction(const std::string& key, Pool& pool);
  void evict_at_random(const std::string& key, Pool& pool);

  // start tasks (start_tasks.cpp)
  static bool is_start_task(const AttemptKey& key);
  static AttemptKey start_key(const Node& node);
  bool is_prepared(const Node& node) const;
  void settle_start_task(Node& node, const Hello& hello);
  void begin_start_task(Node& node);
  void send_start_task(Node& node);
  void start_task_timed_out(Node& node, const AttemptKey& key);
  void start_task_ended(Node& node, const ProcessEnded& ended);
  void start_task_again(Node& node, const AttemptKey& key);
  void replace_node(Node& node, const AttemptKey& key);
  void stop_start_task(Node& node);
  void restore_start_task(Node& node);
  void stop_start_tasks();

  // how many nodes (scale.cpp)
  static Result<void> check_formula(const Autoscale& autoscale);
  std::vector<sched::Waiting> startable_work(const Pool& pool) const;
  std::vector<sched::Waiting> work_of(std::vector<sched::Line> lines) const;
  void scale_by_demand(const std::string& key, Pool& pool);
  void drop_idle_nodes(const std::string& key, Pool& pool, std::uint32_t needed);
  std::vector<formula::Sample> samples_of(const Pool& pool, formula::Metric metric) const;
  Evaluation evaluate(const Pool& pool, const std::string& text) const;
  Evaluation evaluate_scenario(const Pool& pool) const;
  std::uint32_t slots_of(const Pool& pool) const;
  void run_autoscale(const std::string& key, Pool& pool);
  void set_target(const std::string& key, Pool& pool, NodeCounts wanted, Deallocation rule,
                  const std::string& why);
  void begin_watching(const std::string& key, Pool& pool);
  void take_samples(TimePoint at);
  void take_sample(Pool& pool, TimePoint at);
  void save_samples(const Pool& pool, const SampleRun& run);
  void flush_samples();
  void restore_samples(const std::vector<PoolSample>& samples);

  // saying (controller.cpp, why.cpp)
  void event(std::string kind, const Job* job, std::string_view task, std::optional<std::uint32_t> attempt,
             std::string text, std::string node = {}, std::string pool = {});
  void event_in(const std::string& workspace, std::string kind, std::string text, std::string node,
                std::string pool);
  std::string why_queued(const Job& job, const Group& group, const std::string& task_name);
  std::string why_no_more_nodes(const Pool& pool) const;
  struct Survey {
    std::string text;
    std::uint32_t able = 0;  // nodes that are large enough
    std::uint32_t free = 0;  // and have room
  };
  Survey survey(const Pool& pool, const sched::Shape& shape, const Job& job);
  std::string why_waits(const Job& job, const sched::Shape& shape);
  std::string why_waits(const Job& job, const sched::Shape& shape, const Survey& room);
  std::string describe_block(const Pool& pool, const Job& job, const sched::Shape& shape,
                             const sched::Block& block) const;
  std::string describe_start(const sched::Reservation& reservation) const;
  std::string describe_turn(const Pool& pool, const Job& job, const sched::Turn& first) const;
  std::string why_waiting(const Job& job, std::uint32_t group) const;
  PoolView view(const Pool& pool) const;
  NodeView view(const Node& node) const;
  std::string name_of(const Job& job, const TaskRef& ref) const;

  Store& store_;
  Settings settings_;
  Random random_;
  TimePoint now_;
  bool stopping_ = false;
  bool quit_sent_ = false;
  TimePoint stop_by_{};  // when nodes that are not connected are no longer waited for

  std::map<std::string, Pool> pools_;  // by "workspace/name"
  std::map<NodeId, Node> nodes_;
  std::map<JobId, Job> jobs_;  // those that have not ended
  std::vector<TokenRecord> tokens_;
  using Named = std::pair<std::string, std::string>;  // workspace, and path or name
  std::map<Named, FolderRecord> folders_;
  std::map<Named, DatastoreRecord> datastores_;
  std::map<SessionId, NodeId> sessions_;
  std::set<Timer> timers_;
  std::set<AttemptKey> elastic_;  // live ones with fewer nodes than they would like
  std::uint64_t job_last_ = 0, node_last_ = 0, event_last_ = 0;
  std::map<std::pair<std::string, std::string>, NodeId> node_names_;  // by workspace and name
  std::set<std::string> addresses_;                                   // of local nodes
  std::uint64_t address_hint_ = 0;
  struct {
    std::uint64_t cores = 0;
    Bytes memory = 0;
  } machine_taken_;  // by local nodes
  bool is_sampling_ = false;
  std::uint64_t samples_taken_ = 0;
  Totals totals_;

  // parsed task specs, the least recently used last
  std::list<std::pair<std::pair<JobId, std::uint32_t>, std::shared_ptr<const TaskSpec>>> specs_;
  std::map<std::pair<JobId, std::uint32_t>, decltype(specs_)::iterator> specs_by_key_;
  void remember_spec(JobId job, std::uint32_t group, std::shared_ptr<const TaskSpec> spec);

  // this turn
  Changes changes_;
  Outputs outputs_;
  std::map<std::pair<std::string, std::string>, JobId> keys_;
  std::set<NodeId> dirty_nodes_;
  std::set<JobId> dirty_jobs_;
  std::map<TaskRef, TaskRecord> dirty_tasks_;
  std::map<AttemptKey, AttemptRecord> dirty_attempts_;
  std::set<std::pair<JobId, std::uint32_t>> dirty_groups_;
  std::set<NodeId> outbox_nodes_;  // with orders to send
  std::set<std::string> dirty_pools_;
  std::set<NodeId> maybe_empty_;        // leaving, and something of them ended
  std::set<std::string> unsettled_;     // pools to look at, as something changed
  std::set<std::string> wanting_room_;  // pools with low-priority nodes to come when this machine has room
  std::vector<JobId> ended_jobs_;
  std::set<JobId> usage_jobs_;          // whose use is to be written down
  std::vector<AttemptKey> unstarted_;   // stopped before anything of them was started
  std::optional<Error> store_problem_;  // a read that placing needed failed: the turn must not be believed
  void touch(const Job& job);
  void touch(const Job& job, std::uint32_t group);
  void touch(const Node& node);
  void touch(const Pool& pool);
  void touch(const Task& task);
  void touch(const Attempt& attempt);
};

}  // namespace slipway::control
