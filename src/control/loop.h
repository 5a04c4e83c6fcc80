#pragma once
// The thread that owns the controller. Others post to it; it takes everything that waits as one turn, saves
// once, and then answers.
//
// When saving fails (a full disk), the turn's callers get an error, the controller is loaded anew from the
// store, every node's session is cut (agents connect again and report what they know), and until a small
// write succeeds the store is read-only: new work is refused while reads continue, and heartbeats of nodes
// are acknowledged (read_only.h). It is the same path as after a crash.
//
// The inbox is bounded for every kind of message:
//   changes    10,000 wait at most; further ones are refused, to be tried again (HTTP 503 with Retry-After)
//   reads      1,000 wait at most, refused likewise; together they get a tenth of the thread's time
//   of nodes   64 messages or 4 MiB of one session, and the message that exceeds it; then the session is not
//              read any more until they have been applied, so the node itself waits. Nothing is dropped.
//   notices    one for each session that ended, and one of all_received() at a time
// Timers are part of the controller and need no queue.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "control/controller.h"
#include "control/read_only.h"
#include "control/snapshot.h"
#include "control/store.h"

namespace slipway::control {

// What the loop does to the world, called on its thread after each turn that was saved.
class OutputHandler {
 public:
  virtual ~OutputHandler() = default;
  virtual void carry_out(Outputs outputs, const Controller& controller) = 0;
  virtual void cut_all_sessions(const std::string& why) = 0;
  virtual void resume_sessions(std::vector<SessionId> sessions) = 0;  // see Loop::from_node()
};

struct InboxLimits {
  std::size_t changes_max = 10'000;
  std::size_t reads_max = 1'000;
  std::size_t session_messages_max = 64;
  std::size_t session_bytes_max = 4u << 20;
};

class Loop {
 public:
  // Runs within a turn; what it returns is run (on the loop's thread) after the turn was saved.
  using Work = std::function<std::function<void()>(Controller&)>;
  using Failed = std::function<void(const Error&)>;
  using WithSnapshot = std::function<void(std::shared_ptr<const Snapshot>)>;

  Loop(Store& store, const Settings& settings, const Clock& clock, OutputHandler& outputs,
       const InboxLimits& limits = {});
  ~Loop();
  // Loads and starts the thread. `degraded`: why nothing can be saved now, as the caller has found.
  Result<void> start(std::string degraded = {});

  // `failed` is called instead when the turn could not be saved, or is refused because the store is read-only
  // or the inbox is full. Thread-safe.
  void change(Work work, Failed failed);

  // Live state at least as new as every turn whose answers or events were sent before this call. Made by the
  // loop's thread when somebody asks and a turn was taken since the last one, for all who wait; `then` runs
  // there, or at once where nothing has changed. Thread-safe.
  void snapshot(WithSnapshot then, Failed failed);

  // A copy of what one query needs, made between two turns, also while the store is read-only; `then` runs on
  // the loop's thread and hands it on. Thread-safe.
  using WithLive = std::function<void(std::shared_ptr<const LiveView>)>;
  void live(LiveQuery query, WithLive then, Failed failed);

  // From a node's session, with the size of the message. While the store is read-only `unsaved` is called in
  // its place, and gives what to answer. `paused`: so much of the session waits that no more should be read
  // from it until resume_sessions() names it. Thread-safe.
  using Unsaved = std::function<std::optional<ToAgent>(const Controller&, ReadOnlySessions&)>;
  enum class Reading { open, paused };
  [[nodiscard]] Reading from_node(SessionId session, std::size_t bytes, std::function<void(Controller&)> work,
                                  Unsaved unsaved = {});
  // From the service itself, about nodes: what happens at most once to a session. Thread-safe.
  void notice(std::function<void(Controller&)> work);

  // Everything that nodes sent before `until` was posted by from_node() before this; what a
  // paused session has not been read yet follows messages that were. Called when the turn's
  // outputs ask for it (Outputs::checks_nodes). Thread-safe.
  void all_received(TimePoint until) {
    notice([until](Controller& controller) { controller.all_received(until); });
  }

  // Reads of what was saved, for one other thread; no turn is needed for them. Thread-safe.
  Result<std::shared_ptr<ReadStore>> open_reader() { return store_.open_reader(); }

  std::string degraded() const;  // empty, or why nothing can be saved. Thread-safe.
  std::string degraded_hint() const;
  SavedTurn saved() const;  // the last one. Thread-safe.
  // Ends what runs and waits until it has ended, or leaves everything as it is; then stops the thread.
  void stop_in_order(bool keep_running);
  void join();

 private:
  using Steady = std::chrono::steady_clock;
  struct Input {
    Work work;  // of a change
    Failed failed;
    std::function<void(Controller&)> from_node{};
    SessionId session{0};  // of those that count for one
    std::size_t bytes = 0;
    Unsaved unsaved{};
  };
  struct Waiting {  // messages of one session
    std::size_t messages = 0, bytes = 0;
    bool paused = false;
  };
  struct LiveRequest {
    LiveQuery query;
    WithLive then;
  };

  void run();
  void take_turn(std::vector<Input>& inputs);
  void take_unsaved(const Input& input);
  void finish_turn(const std::vector<std::function<void()>>& answers, const std::vector<Failed>& failed);
  void count_taken(const std::vector<Input>& inputs);
  void run_reads();
  void publish_snapshot();
  void remove_rows();
  std::optional<LiveRequest> next_live_request();
  bool has_reads() const { return !live_requests_.empty() || !snapshot_waiters_.empty(); }  // holds mutex_
  void end_turn();
  void notice_pause(std::optional<TimePoint> deadline);
  void recover(const Error& error);
  void look();
  bool reload();

  Store& store_;
  Settings settings_;
  const Clock& clock_;
  OutputHandler& outputs_;
  InboxLimits limits_;
  std::unique_ptr<Controller> controller_;
  ReadOnlySessions unsaved_sessions_;  // while the store is read-only
  std::uint64_t seed_;
  TimePoint awake_at_{};             // when it last had nothing left to do
  Steady::time_point reads_from_{};  // none before: they had their share
  bool has_removals_ = true;         // deleted jobs have left rows, perhaps
  Steady::time_point remove_from_{};

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Input> inputs_;              // guarded by mutex_
  std::size_t changes_ = 0;                // of those inputs; guarded by mutex_
  std::map<SessionId, Waiting> sessions_;  // with messages that were not applied yet; guarded by mutex_
  std::deque<LiveRequest> live_requests_;  // guarded by mutex_
  std::vector<std::pair<WithSnapshot, Failed>> snapshot_waiters_;  // guarded by mutex_
  std::shared_ptr<const Snapshot> snapshot_;                       // the last one made; guarded by mutex_
  std::uint64_t turn_ = 0;                                         // turns taken; guarded by mutex_
  SavedTurn saved_;                                                // guarded by mutex_
  std::string degraded_;                                           // guarded by mutex_
  std::string degraded_hint_;                                      // guarded by mutex_
  bool is_lost_ = false;          // turns are: degraded until somebody starts it with what is left
  Steady::time_point look_at_{};  // at the store's files
  bool stop_ = false;             // guarded by mutex_
  bool stopping_in_order_ = false;
  std::jthread thread_;
};

}  // namespace slipway::control
