#pragma once
// What an agent decides. Pure: no I/O, no clock, no threads; the time is handed in, and same inputs give same
// effects. The real agent (agent.cpp) and the simulation of the control plane drive this same class.
//
// The driver hands over what happened, then calls take_effects() and carries them out in order. It may hand
// over many things before it asks: what there is to report by then travels in one message.
//
// Promises:
// - Hello says everything that is known: attempts that wait, processes that run, ends not yet forgotten.
// - Reports and Orders are numbered from 1 in a session. Orders seen before are dropped; a gap, or anything
//   out of turn, closes the session, and the next Hello puts everything right.
// - A StartOrder whose attempt is known, in whatever state, changes nothing.
// - Attempts are handed to the keeper as soon as their code is laid out. One that is prefetched goes only
// when
//   everything ordered before it has gone; the keeper starts it when there is capacity (keeper/capacity.h).
// - An end is remembered, and reported in every Hello, until the service says `forget`.
// - What there is to report is sent at once; only while at least as much waits in the keeper as has ended may
//   it wait a moment and travel together, for then nothing is idle that the service could use.
// - A session renews the lease of the node (domain/lease.h) as of the sending of what the service
//   acknowledges, after what it ordered to stop and before what it ordered to start.
// - Nothing here ends a process but a StopOrder. The keeper ends those whose lease was not renewed in time.
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "domain/ids.h"
#include "domain/protocol.h"
#include "keeper/protocol.h"

namespace slipway::agent {

namespace effect {
struct Send {
  SessionId session;
  FromAgent message;
};
struct CloseSession {  // and dial again, after a wait
  SessionId session;
  std::string why;
};
// Lay out the source, write the files and find ports; then call staged(). The ports and the files of an
// attempt are the edge's until Start or Release.
struct Stage {
  PrepareOrder order;
};
struct Release {  // what was found and laid out for an attempt that will not be started
  WorkKey key;
};
struct WriteFiles {  // of an attempt that runs
  FilesOrder order;
};
struct RemoveFolder {  // of a job that was deleted; then call removed()
  std::string folder;
};
struct Start {  // hand the whole attempt to the keeper, as one message: all its processes or none
  StartOrder order;
};
struct Stop {  // the whole trees of every process of the attempt, after it was given notice
  StopOrder order;
};
struct RenewLease {  // what the keeper runs may continue for its lease from then
  TimePoint from;
};
struct Forget {
  std::vector<WorkKey> keys;
};
struct Quit {          // the agent ends
  std::string reason;  // not empty: the service refuses this node for good; say why and exit 1, and leave the
                       // keeper and its processes alone. Empty: as ordered; the keeper quits too, exit 0.
};
}  // namespace effect
using Effect = std::variant<effect::Send, effect::CloseSession, effect::Stage, effect::Release,
                            effect::WriteFiles, effect::RemoveFolder, effect::Start, effect::Stop,
                            effect::RenewLease, effect::Forget, effect::Quit>;

class AgentCore {
 public:
  struct Options {  // what Hello says of the node itself
    std::string name;
    std::string pool;
    std::string instance;
    std::string boot;
    std::string address;
    std::string host;
    std::string version;
    bool local = false;
    bool shares_storage = false;
    Resources total;
    std::vector<std::string> notes;  // the keeper's are added to them
    std::vector<std::string> engines;
    std::optional<std::vector<std::uint32_t>> gpu_indices{};
  };
  explicit AgentCore(Options options);

  // Known only once the service was asked; before the first connected().
  void set_shares_storage(bool shares) { options_.shares_storage = shares; }
  void add_note(std::string note) { options_.notes.push_back(std::move(note)); }  // before connected()
  // Cards may be gone, or back: looked at before each connected().
  void set_gpus(std::vector<std::uint32_t> indices) {
    options_.total.gpus = static_cast<std::uint32_t>(indices.size());
    options_.gpu_indices = std::move(indices);
  }

  // The connection to the service. A session is over after disconnected(), and also once CloseSession was
  // given out; what comes of any but the current session is ignored. Hello waits for the keeper's list.
  void connected(SessionId session, TimePoint now);
  void disconnected(SessionId session);
  void received(SessionId session, ToAgent message, TimePoint now);

  // The keeper. Until the first list, and from keeper_lost() to the next list, starts are held back. The
  // list of a new keeper corrects what is believed: what was handed to the old one and is in no list was
  // lost.
  void keeper_connected(keeper::ProcessList list, TimePoint now);
  void keeper_lost();
  void started(const ProcessStarted& start);
  void ended(ProcessEnded end);

  // The answer to effect::Stage, in any order; with a problem where it failed. It is reported to the service
  // where that asked for it; for an order to start it ends the attempt as start_failed, which does not use a
  // retry.
  void staged(Prepared result, TimePoint now);

  // Of an attempt that asked for it: none of its processes here makes progress any more, or one does again.
  void stalled(const WorkKey& key, bool is_stalled);

  // Sent with the next heartbeat.
  void used(const MachineUse& use) { report_.use = use; }
  void removed(const std::string& folder) { report_.removed.push_back(folder); }

  // Heartbeats sent and missed. Call at wake_at() or later; calling early is harmless.
  void tick(TimePoint now);
  std::optional<TimePoint> wake_at() const;

  std::vector<Effect> take_effects(TimePoint now);

  // For tests, the simulation's invariants and the agent's own messages.
  bool is_welcome() const { return welcome_.has_value(); }
  bool is_idle() const { return keeper_ready_ && attempts_.empty(); }  // and the keeper has nothing to keep
  std::size_t waiting() const { return waiting_; }

 private:
  struct Process {
    std::uint32_t rank = 0;
    std::optional<ProcessStarted> started;
    std::optional<ProcessEnded> ended;
  };
  struct Attempt {
    std::uint64_t number = 0;  // in the order they came
    bool prefetched = false;
    bool staged = false;                                     // its source is laid out, or it has none
    std::optional<Prepared> prepared;                        // what was found, until it is started
    std::vector<std::pair<std::string, std::string>> files;  // those it was prepared with
    std::optional<StartOrder> preparation;                   // what must end well before it is ready
    std::optional<Prepared> found;                           // until that has
    bool ordered = false;                                    // to start; before, it is only being prepared
    bool handed = false;                                     // given to the keeper, its order with it
    bool waits = false;                                      // there, for capacity
    bool stalled = false;
    StartOrder order;
    std::optional<StopOrder> stop;  // requested while there was no keeper
    std::vector<Process> processes;
    bool is_over() const;
  };
  using Attempts = std::map<WorkKey, Attempt>;

  void send_hello(TimePoint now);
  void close(std::string why);
  void renew_lease(std::uint64_t received);
  void apply(Orders orders, TimePoint now);
  void drop_what_is_not_asked_for(const std::vector<PrepareOrder>& asked);
  void prepare(const PrepareOrder& order);
  void begin_preparation(const AttemptKey& of, Attempt& attempt);
  void settle_preparations();
  void accept(StartOrder order);
  void stop(const StopOrder& order, TimePoint now);
  void forget(const std::vector<WorkKey>& keys);
  void hand_over_what_may();
  // Ends every process of the attempt that has not ended, as `how` says.
  void end_rest(Attempt& attempt, ProcessEnded how);
  static ProcessEnded end_of(ProcessEndKind kind, std::string detail, TimePoint now);
  void note_start(Attempt& attempt, Process& process, const ProcessStarted& start);
  void note_begun(Attempt& attempt);
  void note_end(Attempt& attempt, Process& process, ProcessEnded end);
  void adopt(const keeper::ProcessList& list);
  void correct_what_was_handed(const keeper::ProcessList& list, TimePoint now);
  Attempt& attempt_of(const WorkKey& key);
  static Process& process_of(Attempt& attempt, std::uint32_t rank);
  bool may_quit() const;
  bool may_hold_report(TimePoint now) const;

  Options options_;
  std::vector<std::string> keeper_notes_;
  std::string keeper_cpu_limit_, keeper_cpu_limit_reason_;
  bool keeper_ready_ = false;
  Attempts attempts_;
  std::uint64_t last_number_ = 0;
  std::deque<WorkKey> unhanded_;       // in the order they came
  std::size_t waiting_ = 0;            // attempts that wait in the keeper
  std::vector<WorkKey> forget_later_;  // while there is no keeper
  std::vector<PreparationRun> preparations_ended_;

  std::optional<SessionId> session_;
  bool is_hello_sent_ = false;
  std::optional<Welcome> welcome_;
  std::uint64_t report_number_ = 0;
  std::uint64_t orders_number_ = 0;
  Report report_;                                                   // what the next report will say
  std::optional<TimePoint> report_since_;                           // when its first line was seen
  std::deque<std::pair<std::uint64_t, TimePoint>> unacknowledged_;  // reports, and when they were sent
  TimePoint hello_sent_{};
  TimePoint last_sent_{};
  TimePoint last_received_{};
  bool heartbeat_due_ = false;
  bool ends_unsaid_ = false;  // some end was in no Hello and no Report yet
  bool quitting_ = false;
  bool quit_given_ = false;

  std::vector<Effect> effects_;
};

}  // namespace slipway::agent
