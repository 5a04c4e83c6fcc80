#pragma once
// What an agent and its keeper say to each other over a unix socket.
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
#include "node/bytes.h"

namespace slipway::node {

// A process the keeper watches, as told to an agent that just came.
struct KeptProcess {
  ProcessStarted started;
  Resources resources;  // of this one process
  friend bool operator==(const KeptProcess&, const KeptProcess&) = default;
};

// An attempt that waits for room.
struct WaitingAttempt {
  AttemptKey key;
  std::vector<std::uint32_t> ranks;
  friend bool operator==(const WaitingAttempt&, const WaitingAttempt&) = default;
};

// Everything a keeper knows. An attempt that is in no list never ran there: an intent is written down before
// each start.
struct KeeperList {
  std::vector<KeptProcess> running;
  std::vector<ProcessEnded> ended;      // not yet forgotten
  std::vector<std::string> notes;       // what this machine does not allow, in plain words
  std::vector<WaitingAttempt> waiting;  // in the order they will start
  friend bool operator==(const KeeperList&, const KeeperList&) = default;
};

// One process as the keeper starts it: everything resolved, all paths absolute.
struct KeeperProcess {
  std::uint32_t rank = 0;
  std::vector<std::string> argv;         // looked up in the PATH of `environment` when it has no slash
  std::vector<std::string> environment;  // NAME=value, complete
  std::vector<std::string> folders;  // made when missing, in this order, with their parents; own one first
  std::string stdout_file;           // appended to
  std::string stderr_file;
  std::string working_folder;
  bool own_working_folder = true;  // false: named by the user, whose fault it is when it is missing
  Resources resources;             // memory is enforced where the machine allows it; 0: no limit
  friend bool operator==(const KeeperProcess&, const KeeperProcess&) = default;
};

struct KeeperStart {
  AttemptKey key;
  Duration stop_grace{5'000'000};
  bool behind = false;  // it starts when it fits into `total`, behind those that wait already
  Resources total;      // of the node
  std::vector<KeeperProcess> processes;
  friend bool operator==(const KeeperStart&, const KeeperStart&) = default;
};
struct KeeperStop {
  AttemptKey key;
  Duration grace{0};
  friend bool operator==(const KeeperStop&, const KeeperStop&) = default;
};
struct KeeperForget {
  std::vector<AttemptKey> keys;
  friend bool operator==(const KeeperForget&, const KeeperForget&) = default;
};
struct KeeperAskList {
  friend bool operator==(const KeeperAskList&, const KeeperAskList&) = default;
};
struct KeeperQuit {  // end every tree, take the cgroups away, forget everything, exit
  friend bool operator==(const KeeperQuit&, const KeeperQuit&) = default;
};

using ToKeeper = std::variant<KeeperAskList, KeeperStart, KeeperStop, KeeperForget, KeeperQuit>;
using FromKeeper = std::variant<KeeperList, ProcessStarted, ProcessEnded>;

void append_frame(std::string& out, const ToKeeper& message);
void append_frame(std::string& out, const FromKeeper& message);

constexpr std::size_t frame_size_max = 256u << 20;

// Takes the next whole frame off the front of `bytes`: its kind and content. nullopt: it has not all arrived.
// An error means that the stream is broken.
Result<std::optional<std::string_view>> take_frame(std::string_view& bytes);
Result<ToKeeper> parse_to_keeper(std::string_view frame);
Result<FromKeeper> parse_from_keeper(std::string_view frame);

// Also how the journal writes them.
void write(ByteWriter& out, const AttemptKey& key);
void write(ByteWriter& out, const ProcessEnded& end);
AttemptKey read_key(ByteReader& in);
ProcessEnded read_ended(ByteReader& in);

}  // namespace slipway::node
