#pragma once
// What the service and a node's agent say to each other, over one connection that the agent opens.
//
// The agent says Hello with everything it knows (its processes, and ends nobody has acknowledged); the
// service answers Welcome or Refused. From then on the agent sends Reports and the service Orders. Both are
// numbered from 1 in each session and empty ones are heartbeats; a number already seen is dropped, a number
// skipped ends the session, and the next Hello puts everything right. So a lost, repeated or reordered
// message can delay but never confuse.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "domain/ids.h"
#include "domain/job.h"
#include "domain/records.h"
#include "domain/run_as.h"
#include "domain/work_key.h"

namespace slipway {

enum class ProcessEndKind : std::uint8_t {
  exited,
  signalled,
  start_failed,  // never ran: detail says why
  lost,          // the keeper that watched it died; its tree was ended
  not_started,   // stopped before it ran
};
std::string_view to_string(ProcessEndKind kind);
std::optional<ProcessEndKind> parse_process_end_kind(std::string_view text);

struct ProcessStarted {
  WorkKey key;
  std::uint32_t rank = 0;
  std::int64_t pid = 0;
  TimePoint time{};
  std::optional<Duration> age{};  // in a Hello: how long it has run, by the monotonic clock of the node
  friend bool operator==(const ProcessStarted&, const ProcessStarted&) = default;
};

struct ProcessEnded {
  WorkKey key;
  std::uint32_t rank = 0;
  ProcessEndKind kind = ProcessEndKind::exited;
  int code = 0;  // exit code, or signal number
  bool counts_against_retries =
      true;  // start_failed only: a missing command is, a full disk of the node is not
  std::string detail;
  ProcessUse use;
  TimePoint started_at{};
  TimePoint ended_at{};
  std::string last_lines;              // of its stderr, where it did not end well
  std::optional<TimePoint> marked_at;  // likewise: the newest change in its checkpoint folder
  std::string outputs_problem;         // not empty: what the attempt wrote was not sent, and this is why
  friend bool operator==(const ProcessEnded&, const ProcessEnded&) = default;
};

// What the processes of an attempt see under a path of their own, and where that lies on the node.
struct View {
  struct Mount {
    std::string at;  // relative to the root
    MountKind kind = MountKind::path;
    std::string source;    // absolute, or under the data folder
    std::string command;   // of a mount command
    std::string url, key;  // of a blob container that `source` is a copy of
    bool pulls = true;     // else another node of the gang brings what `url` has into the same folder
    bool read_only = false;
    friend bool operator==(const Mount&, const Mount&) = default;
  };
  std::string root;                  // empty: there is no view
  std::string tree;                  // what is there beside the mounts; under the data folder
  std::vector<Mount> mounts;         // inner ones after outer ones
  std::vector<std::string> folders;  // absolute, under the root: to be made
  std::vector<std::pair<std::string, std::string>> files;  // likewise: path, content
  std::string logs;     // likewise: where streams are kept as well, by ProcessStart::log_out and log_err
  std::string journal;  // name of a file there that says what the node did; empty: none
  friend bool operator==(const View&, const View&) = default;
};

// A secret that the service keeps, as it is given to a process.
struct GivenSecret {
  std::string variable;
  SecretKey key;
  std::string sealed;  // empty: it is not there any more
  bool file = false;   // the variable holds the path of a file with the value
  friend bool operator==(const GivenSecret&, const GivenSecret&) = default;
};

// One process of an attempt as the node must start it.
struct ProcessStart {
  std::uint32_t rank = 0;
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> environment;  // added to the agent's own small base
  std::string stdout_name;  // in the attempt's folder: stdout.txt, or stdout-1.txt for rank 1 of several
  std::string stderr_name;
  std::string wd_name;  // wd, or wd-1
  std::vector<std::uint32_t> gpus;
  Resources resources;
  std::vector<std::uint16_t> listens;  // of the ports its node found, those meant for it
  std::vector<std::pair<std::string, std::string>> secrets;  // variables too; sealed until they are sent
  std::string log_out, log_err;                              // in View::logs; empty: not kept there
  std::vector<GivenSecret> given{};  // never sent: when they are opened they join `secrets` or the files
  std::vector<std::pair<std::string, std::string>> secret_files{};  // variable, content
  std::string problem{};  // not empty: it must not be started, and this is why
  friend bool operator==(const ProcessStart&, const ProcessStart&) = default;
};

// What a node does before a gang may start: lay out the files and find ports. Nothing runs until every node
// of the gang has said Prepared.
struct PrepareOrder {
  WorkKey key;
  std::string folder;                // of the attempt
  std::string source;                // manifest hash, or empty
  std::vector<std::string> folders;  // under the data folder: where the source is laid out
  std::vector<std::pair<std::string, std::string>> files;  // name in the attempt's folder, content
  std::uint32_t ports = 0;
  std::uint16_t ports_from = 0;  // the lowest to look at; 0: anywhere
  View view;
  std::vector<ProcessStart> preparation;  // one that must end well before the node is ready, or none
  std::optional<RunAs> run_as{};          // of the preparation
  Duration stop_grace = 5s;
  Duration lease{0};  // what prepares runs under it; 0: none
  friend bool operator==(const PrepareOrder&, const PrepareOrder&) = default;
};

struct Prepared {
  WorkKey key;
  std::vector<std::uint16_t> ports;  // kept for it until it is started
  std::string secret;                // unguessable, for what the processes say to each other
  std::string problem;               // not empty: it cannot be started here, and this is why
  std::optional<int> exit_code;      // of a preparation that failed by itself, which uses a retry
  std::string last_lines;            // of its output
  bool is_permanent = false;         // the problem will be the same at the next try, which so uses a retry
  friend bool operator==(const Prepared&, const Prepared&) = default;
};

struct StartOrder {
  WorkKey key;
  std::string folder;       // of the attempt, under the data folder: workspaces/default/jobs/job_1/train.1
  std::string shared;       // SLIPWAY_SHARED, likewise
  std::string workdir;      // absolute; empty: a fresh folder (with a copy of `source`, if any)
  std::string source;       // manifest hash, or empty
  std::string checkpoints;  // SLIPWAY_CHECKPOINT_DIR, under the data folder; empty: none
  std::vector<std::pair<std::string, std::string>> files;  // name in the attempt's folder, content
  Duration stop_grace = 5s;
  // Above 0: the node reports when none of its processes had output or CPU time for so long.
  Duration stall_timeout{0};
  Duration wall_time_max{0};        // above 0: the node stops what has run for so long
  bool prefetched = false;          // waits on the node until there is capacity, and starts then at once
  bool cpu_limit = true;            // its processes are held to their cores
  std::uint32_t pids = pids_usual;  // that each of its processes may have
  std::vector<ProcessStart> processes;
  View view;
  Duration lease{0};              // killed when the node's lease was not renewed for so long; 0: never
  std::optional<RunAs> run_as{};  // none: its processes run as the agent does
  friend bool operator==(const StartOrder&, const StartOrder&) = default;
};

// The files of an attempt that runs, anew: its gang has changed.
struct FilesOrder {
  AttemptKey key;
  std::string folder;                                      // of the attempt
  std::vector<std::pair<std::string, std::string>> files;  // name in that folder, content
  friend bool operator==(const FilesOrder&, const FilesOrder&) = default;
};

struct StopOrder {
  WorkKey key;
  Duration grace = 5s;  // SIGTERM, then SIGKILL after this; 0: SIGKILL at once
  // An eviction: what the attempt finds in its SLIPWAY_EVICTION_FILE. Empty: none.
  std::string folder{};  // of the attempt
  std::string notice{};
  // For so long what it wrote may still be sent to its containers; absent: for as long as that takes.
  std::optional<Duration> outputs_within{};
  friend bool operator==(const StopOrder&, const StopOrder&) = default;
};

// Beside its join token an agent shows the key it made for its node, by which it is known from its first
// welcome on.
inline constexpr const char* node_key_header = "Slipway-Node-Key";
inline constexpr std::size_t node_key_size_min = 32;

// How far a service has saved. One that has saved less than a node has seen has lost
// turns.
struct SavedTurn {
  std::string service;       // its random id; empty: not known
  std::uint64_t number = 0;  // of the last turn that was saved; it only grows
  std::string proof;         // that the service sent this number: see control/turn_history.h
  std::string run;           // of the service, from one start to the next; empty: one of before says none
  friend bool operator==(const SavedTurn&, const SavedTurn&) = default;
};

struct Hello {
  std::string name;
  std::string pool;
  std::string instance;
  std::string boot;  // of the machine: another one has run no start task yet
  std::string address;
  std::string host;
  std::string version;
  bool local = false;
  bool shares_storage = false;
  Resources total;
  // The GPUs that are there now. Absent: an agent of before it was said; it counts them in `total`.
  std::optional<std::vector<std::uint32_t>> gpu_indices;
  std::string cpu_limit;  // see NodeRecord; empty: an agent of before
  std::string cpu_limit_reason;
  std::vector<std::string> notes;
  std::vector<std::string> engines;  // what it can run containers with; empty also where nobody looked
  std::vector<WorkKey> waiting;      // accepted, not yet started, in the order they will start
  std::vector<ProcessStarted> running;
  std::vector<ProcessEnded> ended;  // not yet acknowledged by forget
  std::vector<Prepared> prepared;   // not yet started
  SavedTurn seen;                   // the last turn of a service that it has seen
  friend bool operator==(const Hello&, const Hello&) = default;
};

struct Welcome {
  NodeId node;
  Duration heartbeat = 500ms;
  Duration heartbeat_timeout = 2s;  // hearing nothing for longer, the agent dials again
  std::string service;              // whose node it is; empty: a service of before says none
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

struct Refused {
  std::string reason;
  bool final = false;  // do not try again: the agent exits and says why
  friend bool operator==(const Refused&, const Refused&) = default;
};

// How busy the machine was since the last time this was said; sizes in bytes.
struct MachineUse {
  double cpu = 0;               // share of all cores, 0 to 1
  double memory = 0, disk = 0;  // in use now
  double disk_read = 0, disk_written = 0, disk_reads = 0, disk_writes = 0;
  double network_in = 0, network_out = 0;
  friend bool operator==(const MachineUse&, const MachineUse&) = default;
};

struct Report {
  std::uint64_t number = 0;
  std::vector<ProcessStarted> started;
  std::vector<ProcessEnded> ended;
  std::vector<Prepared> prepared;
  std::vector<std::pair<WorkKey, bool>> stalled;  // stalled (see StartOrder), or no longer
  std::optional<MachineUse> use;                  // now and then
  std::vector<std::string> removed;               // of Orders::remove: nothing is left of them
  friend bool operator==(const Report&, const Report&) = default;
};

struct Orders {
  std::uint64_t number = 0;
  std::vector<StartOrder> start;  // an attempt that was started already is left alone
  std::vector<StopOrder> stop;
  std::vector<WorkKey> forget;  // their ends are saved; the node need not remember them
  bool quit = false;            // end the agent and its keeper once nothing runs
  std::vector<PrepareOrder> prepare;
  std::vector<FilesOrder> files;
  std::vector<std::string> remove;  // folders of jobs that were deleted; said to be removed in a report
  std::uint64_t received = 0;  // the last report that was applied: the lease is renewed as of its sending
  std::uint64_t turn = 0;      // the last one that is saved
  std::string turn_run;        // and the run of the service that saved it
  std::string turn_proof;
  friend bool operator==(const Orders&, const Orders&) = default;
};

using FromAgent = std::variant<Hello, Report>;
using ToAgent = std::variant<Welcome, Refused, Orders>;

}  // namespace slipway
