#pragma once
// What a user submits: a job and its tasks, as written, after checking.
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/result.h"
#include "domain/ids.h"
#include "domain/lease.h"
#include "domain/secret.h"

namespace slipway {

// Thousandths of a core, so that half a core can be asked for and sums stay exact.
using Millicores = std::uint32_t;

struct Resources {
  Millicores cores = 0;
  Bytes memory = 0;
  std::uint32_t gpus = 0;
  friend auto operator<=>(const Resources&, const Resources&) = default;
};
constexpr Resources operator*(const Resources& one, std::uint32_t times) {
  return {one.cores * times, one.memory * times, one.gpus * times};
}
constexpr Resources operator+(const Resources& a, const Resources& b) {
  return {a.cores + b.cores, a.memory + b.memory, a.gpus + b.gpus};
}
constexpr Resources operator-(const Resources& a, const Resources& b) {  // the caller knows that b fits
  return {a.cores - b.cores, a.memory - b.memory, a.gpus - b.gpus};
}
constexpr bool fits(const Resources& need, const Resources& free) {
  return need.cores <= free.cores && need.memory <= free.memory && need.gpus <= free.gpus;
}
std::string describe(const Resources& resources);  // "2 cores, 1 GiB, 1 GPU"

using Environment = std::map<std::string, std::string>;
// What others write on jobs, pools and folders, to find them by; the core does not read them.
using Tags = std::map<std::string, std::string>;
// Tags whose names begin with `prefix` belong to an API that files its things under them: nobody else writes
// or sees them.
struct ReservedTags {
  std::string prefix;
  std::string owner;  // as messages name it
};
// Who owns a tag of this name; nullptr: whoever writes it.
const ReservedTags* owner_of_tag(std::string_view name, const std::vector<ReservedTags>& reserved);
Tags own_tags(const Tags& tags, const std::vector<ReservedTags>& reserved);  // without the reserved ones

// A string runs under /bin/sh -c; a list runs as it is.
using Command = std::variant<std::string, std::vector<std::string>>;

// What the processes of a gang speak, so what they get to know of each other and how they end.
// ssh: one process on the first node, which may start others on the rest by `ssh HOST COMMAND`.
enum class Toolkit : std::uint8_t { none, tensorflow, horovod, mpi, torch, jax, hostfile, ssh };
std::string_view to_string(Toolkit toolkit);
std::optional<Toolkit> parse_toolkit(std::string_view text);

struct RoleSpec {  // of a gang whose processes differ: chief, worker, ps, …
  std::string name;
  std::uint32_t count = 1;
  Command command;
  Resources resources{.cores = 1000};  // of one process
  std::string log;                     // what its files in TaskSpec::logs are called; empty: as the role
  friend bool operator==(const RoleSpec&, const RoleSpec&) = default;
};

enum class MountKind : std::uint8_t {
  datastore,  // `what` is its name; made when it is not there
  path,       // `what` is a folder of the node
  command,    // `what` is run on the node with the mount point as its last word; undone after the attempt
  scratch,    // of the job on the node, gone with the job
  shared      // of the job, the same for all its nodes: SLIPWAY_SHARED
};
std::string_view to_string(MountKind kind);
std::optional<MountKind> parse_mount_kind(std::string_view text);

// What the processes of a task find under its mount root.
struct Mount {
  std::string at;  // relative to the root: data, mounts/external
  MountKind kind = MountKind::datastore;
  std::string what;
  std::string folder;  // only this folder of a datastore or path; relative
  bool read_only = false;
  friend bool operator==(const Mount&, const Mount&) = default;
};

struct Preparation {             // on every node of a task, before any process of it starts
  std::string command;           // under /bin/bash -c; empty: none
  std::string name = "prepare";  // its output is stdout-prepare.txt, or stdout-prepare-NODE.txt of several
  bool empty() const { return command.empty(); }
  friend bool operator==(const Preparation&, const Preparation&) = default;
};

// A fork bomb leaves the machine alive, and no training run that is known has more threads in one process.
inline constexpr std::uint32_t pids_usual = 4096;

struct ContainerSpec {  // one of the two; both empty: none
  std::string image;
  std::string rootfs;  // absolute: a folder or a tarball on the node
  friend bool operator==(const ContainerSpec&, const ContainerSpec&) = default;
  bool empty() const { return image.empty() && rootfs.empty(); }
};

// What a task waits for of another one.
enum class Needs : std::uint8_t {
  success,  // all its tasks succeed
  end,      // all its tasks end, however they do
  failure,  // they end, and one of them at least has failed
};

struct TaskSpec {
  std::string name;
  Command command;                     // of every process; unless there are roles
  std::optional<std::uint32_t> count;  // an array: tasks name[0] … name[count-1]
  std::uint32_t nodes = 1;             // 0 with roles: as few as hold them
  std::uint32_t nodes_min = 0;         // above 0: elastic, from this many up to `nodes`
  bool framework_elastic = false;      // nodes come and go within an attempt; its framework is notified
  std::uint32_t processes_per_node = 1;
  Toolkit toolkit = Toolkit::none;
  std::vector<RoleSpec> roles;
  std::string ends_with;  // the role whose end is the task's, or all; empty: as the toolkit does
  bool torchrun = false;  // one torchrun per node starts the processes
  ContainerSpec container;
  Resources resources{.cores = 1000};           // per process; memory 0: no limit
  std::uint32_t pids = pids_usual;              // processes and threads that each process may have at a time
  std::vector<std::string> depends_on;          // Needs::success
  std::vector<std::string> after;               // Needs::end
  std::vector<std::string> after_failure;       // Needs::failure
  std::optional<std::uint32_t> max_failures{};  // of an array: with one more, what is left of it is cancelled
  Environment environment;                      // joined over the job's
  std::uint32_t retries = 0;
  Duration max_wall_time{0};  // 0: none
  Duration stop_grace = 5s;
  Duration end_grace = 1min;       // for the other workers, once the one that decides has ended well
  Duration start_timeout = 10min;  // until all have started
  Duration stall_timeout{0};       // without output and CPU time of any; 0: none
  OnLeaseLoss on_lease_loss = OnLeaseLoss::keep;  // the stricter of this and its pool's holds
  std::string workdir;                            // run in this folder of the node instead of a fresh one
  // Where its processes find its mounts: an absolute path that need not exist on the node. Empty: none.
  std::string mount_root;
  std::vector<Mount> mounts;         // those of its pool come first
  std::vector<std::string> folders;  // absolute, under mount_root: made before anything runs
  // Files, likewise: path and content, with placeholders.
  std::vector<std::pair<std::string, std::string>> templates;
  std::string logs;            // absolute, under mount_root: what its processes print is kept there as well
  bool logs_numbered = false;  // stdout-0.txt there also where there is only one
  Preparation preparation;
  Environment process_environment;  // joined over the environment, its values with placeholders
  Environment secrets;              // variables too; sealed (base/seal.h), and never shown
  std::map<std::string, SecretRef> secret_refs{};  // variables from secrets that the service keeps
  std::uint16_t ports_from = 0;                    // its nodes look for ports from here up; 0: anywhere
  bool in_blocks = false;               // roles go to nodes as written, each filling one node after another
  bool whole_nodes = false;             // every process sees all GPUs of its node
  std::uint32_t interruptions_max = 0;  // attempts lost with their nodes or evicted; 0: no limit
  friend bool operator==(const TaskSpec&, const TaskSpec&) = default;

  std::uint32_t tasks() const { return count.value_or(1); }
  bool has_dependencies() const { return !depends_on.empty() || !after.empty() || !after_failure.empty(); }
  bool is_elastic() const { return nodes_min > 0; }
  bool has_secrets() const { return !secrets.empty() || !secret_refs.empty(); }
};

// What is waited for, with how it is written in a job file: depends_on, after, after_failure.
struct Dependencies {
  Needs needs;
  std::string_view key;
  const std::vector<std::string>& names;
};
std::array<Dependencies, 3> dependencies_of(const TaskSpec& task);

struct JobSpec {
  std::string name;
  std::string pool;                      // empty: the only pool
  int priority = 0;                      // -1000 … 1000, higher first
  std::uint32_t max_parallel_tasks = 0;  // placed at a time; 0: no limit
  std::uint32_t max_nodes = 0;           // nodes' worth of capacity held at a time; 0: no limit
  Environment environment;
  std::string source;  // SHA-256 of a snapshot's manifest; empty: none
  Tags tags;
  std::optional<Duration> retain{};  // after its end; then it is deleted. Absent: as the service does
  bool is_patient = false;           // it may ask for more than its pool will ever have
  std::vector<TaskSpec> tasks;       // at least one
  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// Which tasks of a job run again: those that did not succeed, or only some of these.
struct Rerun {
  bool only_failed = false;  // and those that were skipped as they had failed
  std::string task{};        // sweep[3]; empty: all
  friend bool operator==(const Rerun&, const Rerun&) = default;
};

struct JobChange {  // of one that was submitted
  std::optional<int> priority;
  std::optional<std::uint32_t> max_parallel_tasks;  // 0: no limit
  std::optional<bool> held;
  std::optional<bool> pinned;
  friend bool operator==(const JobChange&, const JobChange&) = default;
};

inline constexpr std::string_view usual_mount_root = "/mnt/slipway";

struct JobLimits {
  static constexpr std::size_t name_length_max = 128;
  static constexpr std::uint32_t tasks_max = 10'000'000;  // of one array
  static constexpr std::size_t entries_max = 200'000;     // of the list of tasks
  static constexpr std::uint32_t nodes_max = 100'000;
  static constexpr std::uint32_t retries_max = 1'000;
  static constexpr int priority_max = 1'000;            // and so much below 0
  static constexpr std::uint32_t pids_max = 4'194'304;  // the kernel's own limit
};

// What can be said of a job without knowing any pool: names, counts, dependencies and their cycles.
Result<void> validate(const JobSpec& spec);

Result<void> validate_mounts(std::string_view root, const std::vector<Mount>& mounts);
// Whether `path` leads to something inside `root`, by plain steps.
bool is_under(std::string_view path, std::string_view root);

// Letters, digits, '-', '_' and '.', 1 to 128 of them, beginning with a letter or digit. `kind` is for the
// message.
Result<void> validate_name(std::string_view kind, std::string_view name);

}  // namespace slipway
