#pragma once
// What is kept of pools, nodes, jobs, tasks and attempts: the rows of the store, and the answers of the API.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "domain/access.h"
#include "domain/ids.h"
#include "domain/job.h"
#include "domain/pool.h"
#include "domain/state.h"

namespace slipway {

// How a node's start task went.
struct NodeStart {
  enum class State : std::uint8_t { none, waiting, running, succeeded, failed };  // none: it has none to run
  State state = State::none;
  std::uint32_t attempt = 0;  // of all made on this node; also names its folder
  std::uint32_t tries = 0;    // since the node booted or was reset
  std::string boot_id;        // the boot it ran in
  std::optional<int> exit_code;
  std::string detail;      // in plain words
  std::string last_lines;  // of its output, where it failed
  TimePoint began_at{};
  std::optional<TimePoint> ended_at;
  friend bool operator==(const NodeStart&, const NodeStart&) = default;
};
std::string_view to_string(NodeStart::State state);
std::optional<NodeStart::State> parse_start_state(std::string_view text);

struct NodeTransition {  // of a node's state; those between idle and busy are not recorded
  NodeState state = NodeState::joining;
  TimePoint time{};
  std::string reason;
  friend bool operator==(const NodeTransition&, const NodeTransition&) = default;
};

struct NodeRecord {
  NodeId id;
  std::string workspace = "default";
  std::string pool;
  std::string name;
  std::string address;  // where the processes of this node can be reached by those of others
  std::string
      instance;        // which instance of the node's folder; another one knows nothing of the old processes
  std::string host;    // host name of the machine
  bool local = false;  // brought up by the local provisioner of this service
  bool shares_storage = false;  // sees the service's data folder, so its files are read directly
  Resources total;
  std::vector<std::uint32_t>
      gpu_indices;               // ascending, as many as total.gpus: what CUDA_VISIBLE_DEVICES names
  std::string cpu_limit;         // how granted cores are enforced there: cgroup, affinity, off
  std::string cpu_limit_reason;  // with what, or why not better
  bool drained = false;          // takes no new work until resumed
  NodeState state = NodeState::joining;
  std::string reason;              // why it is in this state, in plain words
  std::vector<std::string> notes;  // what the machine does not allow, e.g. "no memory limits: …"
  TimePoint created_at{};
  TimePoint changed_at{};
  bool low_priority = false;
  std::optional<Deallocation> leaving;  // it goes, once nothing runs on it
  std::optional<TimePoint> evict_by;    // what runs there then is killed
  NodeStart start;
  std::string boot;                         // of its machine; empty: it did not say
  std::vector<NodeTransition> transitions;  // the last few
  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

struct TaskCounts {  // of a job, or of one entry of its list
  std::uint64_t waiting = 0, queued = 0, active = 0, succeeded = 0, failed = 0, cancelled = 0, skipped = 0;
  friend bool operator==(const TaskCounts&, const TaskCounts&) = default;
  std::uint64_t total() const { return waiting + queued + active + succeeded + failed + cancelled + skipped; }
};

struct JobRecord {
  JobId id;
  std::string workspace = "default";
  std::string name;
  std::string pool;
  int priority = 0;
  JobState state = JobState::queued;
  std::string reason;        // why it ended as it did, or why it is being stopped
  std::string submitted_by;  // the token's name
  std::string source;        // manifest of the code it runs, or empty
  TimePoint submitted_at{};
  std::optional<TimePoint> started_at;
  std::optional<TimePoint> ended_at;
  TaskCounts counts;
  std::uint32_t max_parallel_tasks = 0;  // placed at a time; 0: no limit
  std::uint32_t max_nodes = 0;           // nodes' worth of capacity held at a time; 0: no limit
  std::string held_by;                   // who keeps its tasks in the queue; empty: nobody
  std::uint64_t evictions = 0;           // attempts that ended because their node was taken away
  std::uint64_t nodes_lost = 0;          // attempts that ended because their node was lost
  Tags tags;
  std::optional<Duration> retain;  // after its end; absent: as the service does
  bool is_pinned = false;          // no rule deletes it
  // Of the attempt that decided how the job ended.
  std::optional<EndReason> end;
  std::optional<int> exit_code;
  friend bool operator==(const JobRecord&, const JobRecord&) = default;
};

// Progress of one entry of a job's list. Tasks at or past `next` have no row of their own: they are all in
// the state `rest`.
struct GroupRecord {
  JobId job;
  std::uint32_t group = 0;
  std::uint32_t next = 0;
  TaskState rest = TaskState::queued;
  TaskCounts counts;
  std::string rest_reason;  // why those have ended, where they have
  friend bool operator==(const GroupRecord&, const GroupRecord&) = default;
};

struct TaskRecord {
  TaskRef ref;
  std::string name;
  TaskState state = TaskState::queued;
  std::uint32_t attempts = 0;         // made so far; the last one's number
  std::uint32_t attempts_before = 0;  // of these, made before it was run again; retries count from there
  std::uint32_t retries_used = 0;
  std::uint32_t evictions = 0;
  std::optional<TimePoint> not_before;  // the wait before the next try
  std::optional<int> exit_code;         // of the last ended attempt
  std::optional<int> signal;
  std::string reason;  // why it is in this state, in plain words
  friend bool operator==(const TaskRecord&, const TaskRecord&) = default;
};

struct ProcessUse {
  Bytes memory_peak = 0;
  Duration cpu_time{0};
  friend bool operator==(const ProcessUse&, const ProcessUse&) = default;
};

struct AttemptNode {  // an attempt on one of its nodes
  NodeId id{0};
  std::string name;
  std::vector<std::uint32_t> gpus{};   // the indices it was given there
  std::vector<std::uint16_t> ports{};  // what the node found for the gang
  bool has_left = false;               // it is no longer a part of this gang, which continues
  friend bool operator==(const AttemptNode&, const AttemptNode&) = default;
};

struct AttemptRecord {
  AttemptKey key;
  std::vector<AttemptNode> nodes;  // in rank order; one that left and came back is there twice
  TimePoint placed_at{};
  std::optional<TimePoint> started_at;
  std::optional<TimePoint> ended_at;
  std::optional<EndReason> end;
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::optional<std::uint32_t> rank;  // whose end decided
  std::string detail;                 // in plain words
  std::string last_lines;             // of the stderr of the one whose end decided, where it failed
  // Set with the orders to start, so that they can be given again: what the nodes found for the gang.
  bool is_launched = false;
  std::string secret;
  ProcessUse use;     // peak of the largest process, CPU of all
  Duration lease{0};  // under which nodes of other machines run it; 0: none
  std::vector<std::string> node_names() const;
  friend bool operator==(const AttemptRecord&, const AttemptRecord&) = default;
};

struct EventRecord {
  std::uint64_t id = 0;  // ascending
  TimePoint time{};
  std::string workspace = "default";
  std::string kind;  // noun.verb: job.submitted, attempt.ended, node.lost
  std::optional<JobId> job;
  std::string task;  // name, where it is about one
  std::optional<std::uint32_t> attempt;
  std::string node;
  std::string pool;
  std::string text;  // what happened and why, in plain words
  friend bool operator==(const EventRecord&, const EventRecord&) = default;
};

// A named place that jobs and pools are filed under by their tags: batchai/lab/ml/main/experiments/digits.
struct FolderRecord {
  std::string workspace = "default";
  std::string path;
  Tags tags;
  TimePoint created_at{};
  TimePoint changed_at{};
  friend bool operator==(const FolderRecord&, const FolderRecord&) = default;
};

// A named place for data. One that nobody described is a folder of the service, made when it is first used.
struct DatastoreRecord {
  std::string workspace = "default";
  std::string name;
  std::string path;   // absolute: a folder that all nodes see; empty: a folder of the service
  std::string url;    // of a blob container: brought before a task that mounts it, sent back after
  std::string key;    // of its account; sealed, and never shown
  std::string owner;  // the user who made it; empty: only admins change it
  TimePoint created_at{};
  friend bool operator==(const DatastoreRecord&, const DatastoreRecord&) = default;
};

struct TokenRecord {
  std::string id;    // shown; the secret never is
  std::string name;  // who or what holds it
  std::string workspace = "default";
  Role role = Role::member;
  std::string hash;  // SHA-256 of the secret
  TimePoint created_at{};
  std::string author{};                      // who made it
  std::string node{};                        // of a node's own key: the node, which alone it lets in
  std::optional<std::uint32_t> uses_left{};  // of a join token: how many machines it still lets in. Absent:
                                             // any number, as the service's own for the nodes it starts
  std::optional<TimePoint> expires_at{};
  std::optional<TimePoint> last_used_at{};  // known to a minute once it is saved
  TokenScope scope = TokenScope::admin;
  std::string pool{};  // jobs are submitted to it only; empty: to any
  std::string user{};  // whose it is; empty: of nobody the service knows, and `name` says who holds it
  const std::string& holder() const { return user.empty() ? name : user; }
  friend bool operator==(const TokenRecord&, const TokenRecord&) = default;
};

// Records with what only the running service knows.
struct PoolView {
  PoolRecord pool;
  std::map<NodeState, std::uint32_t> nodes;
  std::vector<std::string> notes;
  NodeCounts present;  // those that are not leaving
  bool is_deleted = false;
  bool is_default = false;  // jobs that name no pool run there
};

struct NodeView {
  NodeRecord node;
  Resources used;
  std::vector<std::string> running;         // job_1/train
  std::vector<std::uint32_t> gpus_granted;  // indices that attempts hold, ascending
};

struct TaskView {
  TaskRecord task;
  std::vector<std::string> nodes;  // of the last attempt
};

}  // namespace slipway
