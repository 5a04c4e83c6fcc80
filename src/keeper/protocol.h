#pragma once
// The messages between an agent and its keeper, over a unix socket.
//
// A frame is a 32-bit length, one byte that names the kind, and the content; all numbers little-endian. Both
// ends are the same program, but a keeper may outlive several agents, so the list says the keeper's version
// and the meaning of a kind never changes.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "domain/protocol.h"
#include "keeper/bytes.h"

namespace slipway::keeper {

// A process the keeper watches, as reported to an agent that has just connected.
struct RunningProcess {
  ProcessStarted started;
  Resources resources;  // of this one process
  friend bool operator==(const RunningProcess&, const RunningProcess&) = default;
};

// An attempt that waits for capacity.
struct WaitingAttempt {
  WorkKey key;
  std::vector<std::uint32_t> ranks;
  friend bool operator==(const WaitingAttempt&, const WaitingAttempt&) = default;
};

// What an agent leaves with the keeper for whichever agent comes next: kept in the journal until the work is
// forgotten. Only agents know what the content means. Part 0 says what there is to do for the work, and is
// there before it starts; others what came of it.
struct DutyRecord {
  WorkKey key;
  std::uint32_t part = 0;
  std::string content;
  friend bool operator==(const DutyRecord&, const DutyRecord&) = default;
};

// Everything a keeper knows. An attempt that is in no list never ran there: an intent is recorded before
// each start.
struct ProcessList {
  std::vector<RunningProcess> running;
  std::vector<ProcessEnded> ended;      // not yet forgotten
  std::vector<std::string> notes;       // what this machine does not allow, in plain words
  std::vector<WaitingAttempt> waiting;  // in the order they will start
  std::string cpu_limit;         // how cores are enforced: cgroup, affinity, off; empty: an old keeper,
  std::string cpu_limit_reason;  // which cannot
  bool keeps_duties = false;     // false: an old keeper, which must not be sent any
  std::vector<DutyRecord> duties;
  friend bool operator==(const ProcessList&, const ProcessList&) = default;
};

// One process as the keeper starts it: everything resolved, all paths absolute.
struct ProcessSpec {
  std::uint32_t rank = 0;
  std::vector<std::string> argv;         // looked up in the PATH of `environment` when it has no slash
  std::vector<std::string> environment;  // NAME=value, complete
  std::vector<std::string> folders;  // made when missing, in this order, with their parents; own one first
  std::string stdout_file;           // appended to
  std::string stderr_file;
  std::string working_folder;
  bool own_working_folder = true;  // false: named by the user; where it is missing, that uses a retry
  Resources resources;             // memory is enforced where the machine allows it; 0: no limit
  friend bool operator==(const ProcessSpec&, const ProcessSpec&) = default;
};

struct StartRequest {
  WorkKey key;
  Duration stop_grace = 5s;
  bool prefetched = false;  // prefetched: starts when it fits into `total`, after those that wait already
  Resources total;          // of the node
  std::vector<ProcessSpec> processes;
  bool cpu_limit = false;           // they are held to their cores; only a keeper that says it can is asked
  Duration lease{0};                // killed when the lease was not renewed for so long; 0: never
  std::string duties;               // part 0 of its records, recorded with the intent; empty: none
  std::uint32_t pids = pids_usual;  // processes and threads that each of them may have at a time
  bool allows_core = true;          // false: no core files, which would hold their secrets
  friend bool operator==(const StartRequest&, const StartRequest&) = default;
};
struct StopRequest {
  WorkKey key;
  Duration grace{0};
  friend bool operator==(const StopRequest&, const StopRequest&) = default;
};
struct ForgetRequest {
  std::vector<WorkKey> keys;
  friend bool operator==(const ForgetRequest&, const ForgetRequest&) = default;
};
struct ListRequest {
  friend bool operator==(const ListRequest&, const ListRequest&) = default;
};
struct RenewRequest {  // of the node's lease
  Duration from{0};    // boot_time() at which it was renewed
  friend bool operator==(const RenewRequest&, const RenewRequest&) = default;
};
struct QuitRequest {  // end every tree, take the cgroups away, forget everything, exit
  friend bool operator==(const QuitRequest&, const QuitRequest&) = default;
};

using ToKeeper = std::variant<ListRequest, StartRequest, StopRequest, ForgetRequest, QuitRequest,
                              RenewRequest, DutyRecord>;
using FromKeeper = std::variant<ProcessList, ProcessStarted, ProcessEnded>;

void append_frame(std::string& out, const ToKeeper& message);
void append_frame(std::string& out, const FromKeeper& message);

constexpr std::size_t frame_size_max = 256u << 20;

// Takes the next whole frame off the front of `bytes`: its kind and content. nullopt: it has not all arrived.
// An error means that the stream is broken.
Result<std::optional<std::string_view>> take_frame(std::string_view& bytes);
Result<ToKeeper> parse_to_keeper(std::string_view frame);
Result<FromKeeper> parse_from_keeper(std::string_view frame);

// Also how the journal writes them.
void write(ByteWriter& out, const WorkKey& key);
void write(ByteWriter& out, const ProcessEnded& end);
void write(ByteWriter& out, const DutyRecord& record);
WorkKey read_key(ByteReader& in);
ProcessEnded read_ended(ByteReader& in);
DutyRecord read_duty(ByteReader& in);

}  // namespace slipway::keeper
