#pragma once
// Pools: how many nodes of which kind, how a node gets ready, and who decides how many there are.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "domain/deallocation.h"
#include "domain/job.h"
#include "domain/lease.h"
#include "domain/policy.h"
#include "domain/scenario.h"
#include "domain/state.h"

namespace slipway {

// Which node with free capacity takes the next task: the fullest, or the emptiest.
enum class Fill : std::uint8_t { pack, spread };
std::string_view to_string(Fill fill);
std::optional<Fill> parse_fill(std::string_view text);

struct NodeCounts {
  std::uint32_t dedicated = 0;
  std::uint32_t low_priority = 0;  // may be taken away at any time
  std::uint32_t total() const { return dedicated + low_priority; }
  std::uint32_t& of(bool low) { return low ? low_priority : dedicated; }
  std::uint32_t of(bool low) const { return low ? low_priority : dedicated; }
  friend bool operator==(const NodeCounts&, const NodeCounts&) = default;
};

struct StartTask {     // runs once per boot of a node, before it takes work
  std::string script;  // one of the two: a whole file, run as a program; or a command under /bin/sh -c
  std::string command;
  Environment environment;
  bool wait_for_success = true;
  std::uint32_t retries = 0;
  Duration timeout = 10min;
  Environment secrets;  // variables too; sealed (base/seal.h), and never shown
  std::string logs;     // absolute, under the pool's mount root: stdout-NODE.txt is kept there as well
  bool empty() const { return script.empty() && command.empty(); }
  friend bool operator==(const StartTask&, const StartTask&) = default;
};

// Takes low-priority nodes away at random, so that people can see that their work survives it.
struct EvictionRule {
  Duration every{0};  // 0: never
  Duration spread{0};
  std::uint64_t seed = 1;
  friend bool operator==(const EvictionRule&, const EvictionRule&) = default;
};

enum class ScaleBy : std::uint8_t { hand, demand, formula, scenario };
std::string_view to_string(ScaleBy by);
std::optional<ScaleBy> parse_scale_by(std::string_view text);

struct Autoscale {
  ScaleBy by = ScaleBy::hand;
  std::uint32_t min = 0;  // demand: of all nodes
  std::uint32_t max = 0;
  std::uint32_t dedicated_max =
      0;                           // demand: what is needed beyond them is low-priority; 0: see complete_pool
  bool only_low_priority = false;  // demand: none of them is dedicated
  Duration interval = 15s;         // formula, scenario: time between two evaluations
  std::string formula;
  Scenario scenario;
  friend bool operator==(const Autoscale&, const Autoscale&) = default;
};

struct AutoscaleRun {  // the last evaluation of a formula or a scenario
  TimePoint time{};
  std::string results;
  std::string error_code;  // empty: it went well
  std::string error;
  friend bool operator==(const AutoscaleRun&, const AutoscaleRun&) = default;
};

enum class ResizeState : std::uint8_t { steady, resizing };
std::string_view to_string(ResizeState state);
std::optional<ResizeState> parse_resize_state(std::string_view text);

struct ResizeError {
  std::string code;  // AllocationTimedOut, AllocationFailed, ResizeStopped
  std::string text;
  friend bool operator==(const ResizeError&, const ResizeError&) = default;
};

struct Resize {
  ResizeState state = ResizeState::steady;
  TimePoint since{};
  Duration timeout = 15min;
  Deallocation deallocation = Deallocation::requeue;
  std::string asked_by;             // empty: by nobody, it is the pool's own doing
  std::vector<ResizeError> errors;  // of the last one, until the next begins
  friend bool operator==(const Resize&, const Resize&) = default;
};

struct PoolRecord {
  std::string workspace = "default";
  std::string name;
  std::string owner;                  // the user who made it; empty: only admins change it
  std::string provisioner = "local";  // local: nodes of this machine; none: nodes that join by themselves
  NodeCounts target;                  // how many the provisioner should keep up
  Resources per_node;
  bool overcommit = false;
  bool cpu_limit = true;  // processes are held to the cores they were granted
  Duration lease{5s};     // see domain/lease.h; for nodes of other machines
  OnLeaseLoss on_lease_loss = OnLeaseLoss::stop;
  Duration lost_after{60s};  // how long tasks that are kept wait for their node
  TimePoint created_at{};
  Fill fill = Fill::pack;
  std::uint32_t slots_per_node = 0;  // tasks on a node at a time; 0: as many as have capacity
  Duration idle_timeout = 5min;      // demand: a node idle for longer is not needed
  Duration notice = 30s;             // before an evicted node's processes are killed
  Deallocation deallocation = Deallocation::requeue;  // when autoscaling makes it smaller
  StartTask start_task;
  EvictionRule evictions;
  Autoscale autoscale;
  AutoscaleRun last_run;
  Resize resize;
  bool deleting = false;    // it goes with its last job and node
  bool is_default = false;  // takes the jobs of its workspace that name no pool
  PoolPolicy policy;
  Tags tags;
  std::string mount_root;     // see TaskSpec: for the start task, and for the tasks that name the same root
  std::vector<Mount> mounts;  // theirs come after these
  friend bool operator==(const PoolRecord&, const PoolRecord&) = default;
};

// What is asked of a new pool, or of one that changes: what is absent is left to the rules, or as it is.
struct PoolRequest {
  std::string name;
  std::optional<std::uint32_t> dedicated;
  std::optional<std::uint32_t> low_priority;
  std::optional<Millicores> cores_per_node;
  std::optional<Bytes> memory_per_node;
  std::optional<std::uint32_t> gpus_per_node;
  std::optional<std::uint32_t> gpus_per_node_max;  // of the default: an even share, but no more than this
  std::optional<bool> cpu_limit;
  std::string provisioner;
  std::optional<bool> overcommit;
  std::optional<Duration> lease;
  std::optional<OnLeaseLoss> on_lease_loss;
  std::optional<Duration> lost_after;
  std::optional<std::uint32_t> min;
  std::optional<std::uint32_t> max;
  std::optional<Fill> fill;
  std::optional<std::uint32_t> slots_per_node;
  std::optional<Duration> idle_timeout;
  std::optional<Duration> notice;
  std::optional<Deallocation> deallocation;  // of this resize; kept for autoscaling when a pool is made
  std::optional<Duration> resize_timeout;
  std::optional<StartTask> start_task;
  std::optional<EvictionRule> evictions;
  std::optional<Autoscale> autoscale;
  std::optional<PolicyChange> policy;
  std::optional<Tags> tags;
  std::optional<std::string> mount_root;
  std::optional<std::vector<Mount>> mounts;
  std::optional<bool> is_default;
};

// One line of a pool's history: what it should have, what it had, and why that changed.
struct PoolHistoryEntry {
  TimePoint time{};
  std::string workspace = "default";
  std::string pool;
  NodeCounts target;
  NodeCounts present;
  std::map<NodeState, std::uint32_t> nodes;
  std::string reason;
  friend bool operator==(const PoolHistoryEntry&, const PoolHistoryEntry&) = default;
};

// What a pool was like at `count` moments, one `every` so often: the values a formula asks for, by the names
// it uses. Most of the time nothing changes, and one of these stands for an hour.
struct PoolSample {
  TimePoint time{};  // of the first
  Duration every = 5s;
  std::uint32_t count = 1;
  std::string workspace = "default";
  std::string pool;
  std::map<std::string, double> values;  // $ActiveTasks: 3
  friend bool operator==(const PoolSample&, const PoolSample&) = default;
};

}  // namespace slipway
