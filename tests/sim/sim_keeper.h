#pragma once
// A simulated keeper and its guard: what keeper/processes.h, recover.h and guard.h do, over processes that
// are only records. Its journal survives it; a killed one is replaced at once.
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "keeper/capacity.h"
#include "keeper/leases.h"
#include "keeper/protocol.h"
#include "sim/history.h"

namespace slipway::sim {

class SimKeeper {
 public:
  SimKeeper(std::string node, Context context);

  // In order. While it is stopped they wait, and those that wait die with it.
  void send(keeper::ToKeeper message) { inbox_.push_back(std::move(message)); }
  void run(TimePoint now);  // what waits for it, leases, ends that are due; its guard
  // What its agent hears; none: the end of their connection.
  std::vector<std::optional<keeper::FromKeeper>> take_events() { return std::exchange(events_, {}); }
  bool has_events() const { return !events_.empty(); }
  void lose_agent();  // what it would have told that one goes nowhere

  // Faults.
  void stop_until(TimePoint until) { stopped_until_ = until; }
  void go_on(TimePoint now) { stopped_until_ = std::min(stopped_until_, now); }
  bool is_stopped(TimePoint now) const { return stopped_until_ > now; }
  void kill(TimePoint now);               // its processes die with it
  void forget_everything(TimePoint now);  // likewise, and its journal with it

  bool runs(const ProcessKey& process, TimePoint now) const;
  Resources running_now(TimePoint now) const;
  // Attempts of which processes or pushes run now, whether or not the keeper has looked.
  std::set<AttemptKey> attempts_running(TimePoint now) const;
  // What CUDA_VISIBLE_DEVICES names for the processes of attempts that run now.
  std::vector<std::pair<ProcessKey, std::vector<std::uint32_t>>> gpus_visible(TimePoint now) const;

  // As the size of its output shows it: how long it has made progress. None: it has ended unnoticed.
  std::optional<Duration> progress_of(std::int64_t pid, TimePoint now) const;

 private:
  struct Running {
    ProcessStarted started;
    Resources resources;
    std::vector<std::uint32_t> gpus;
    TimePoint ends_at;
    ProcessEndKind kind;
    int code;
    bool is_quiet = false;  // it makes no progress before `resumes_at`
    std::optional<TimePoint> resumes_at;
  };
  struct Work {
    std::size_t left = 0;  // processes that have not ended
    std::vector<ProcessEnded> ended;
  };
  void tell(const keeper::FromKeeper& event);
  void look_at_guard(TimePoint now);
  void set_guard();
  void take(keeper::ToKeeper& message, TimePoint now);
  void start(keeper::StartRequest start, TimePoint now);
  void start_waiting(TimePoint now);
  void begin(const keeper::StartRequest& start, TimePoint now);
  void begin_push(const keeper::StartRequest& start, TimePoint now);
  void plan_end(const keeper::StartRequest& start, const keeper::ProcessSpec& process, Running& running,
                TimePoint now);
  void stop(const keeper::StopRequest& stop, TimePoint now);
  void forget(const std::vector<WorkKey>& keys);
  void note(const keeper::DutyRecord& record);
  void end_leases(TimePoint now);
  void end_due(TimePoint now);
  void did_not_start(const keeper::StartRequest& start, ProcessEndKind kind, const std::string& why,
                     TimePoint now);
  void end(const ProcessKey& key, ProcessEndKind kind, int code, TimePoint now);
  void note_end(ProcessEnded end, TimePoint now);
  void note_outputs(const ProcessEnded& end);
  keeper::ProcessList list() const;
  Outputs* outputs_of(const WorkKey& key);

  std::string node_;
  Context context_;
  double slowness_;  // of its clock
  TimePoint stopped_until_{};
  std::int64_t last_pid_ = 1;
  bool has_agent_ = false;  // one that has the list
  std::deque<keeper::ToKeeper> inbox_;
  std::vector<std::optional<keeper::FromKeeper>> events_;

  keeper::Leases leases_;
  std::optional<Duration> guard_deadline_;
  keeper::Capacity capacity_;
  std::map<WorkKey, keeper::StartRequest> waiting_;  // for free capacity
  std::map<WorkKey, Work> works_;
  std::map<ProcessKey, Running> running_;
  std::map<ProcessKey, std::string> duties_;  // by part
};

}  // namespace slipway::sim
