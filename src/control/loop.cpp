#include "control/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/random.h"

namespace slipway::control {
namespace {

constexpr Duration probe_every = 1s;
constexpr auto look_every = 1s;
constexpr Duration pause_least = 300ms;
// Reads run for about so long at a time, and are then held back nine times as long: a submit waits for one
// slice at most, and for none nine times out of ten.
constexpr auto reads_slice = 1ms;
constexpr int turns_per_read = 9;

Error inbox_full(std::string_view what) {
  return {ErrorCode::unavailable,
          fmt::format("too many {} wait already: the control loop takes a bounded number", what),
          "try again in a second; what was answered before is done"};
}

}  // namespace

Loop::Loop(Store& store, const Settings& settings, const Clock& clock, OutputHandler& outputs,
           const InboxLimits& limits)
    : store_(store),
      settings_(settings),
      clock_(clock),
      outputs_(outputs),
      limits_(limits),
      seed_(random_seed()) {}

Loop::~Loop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
}

Result<void> Loop::start(std::string degraded) {
  degraded_ = std::move(degraded);
  auto loaded = Controller::load(store_, settings_, seed_, clock_.now());
  if (!loaded) return fail(loaded.error());
  controller_ = std::move(*loaded);
  controller_->all_received(clock_.now());
  saved_ = controller_->saved();
  inputs_.push_back({{}, {}, [](Controller&) {}});  // a turn at once: what was begun before continues
  thread_ = std::jthread([this] { run(); });
  return {};
}

void Loop::join() {
  if (thread_.joinable()) thread_.join();
}

void Loop::change(Work work, Failed failed) {
  {
    std::unique_lock lock(mutex_);
    if (changes_ >= limits_.changes_max) {
      lock.unlock();
      return failed(inbox_full("changes"));
    }
    ++changes_;
    inputs_.push_back({std::move(work), std::move(failed)});
  }
  wake_.notify_one();
}

void Loop::snapshot(WithSnapshot then, Failed failed) {
  std::shared_ptr<const Snapshot> current;
  {
    std::unique_lock lock(mutex_);
    if (snapshot_ && snapshot_->turn == turn_) {
      current = snapshot_;
    } else if (snapshot_waiters_.size() >= limits_.reads_max) {
      lock.unlock();
      return failed(inbox_full("questions"));
    } else {
      snapshot_waiters_.emplace_back(std::move(then), std::move(failed));
    }
  }
  if (current) return then(std::move(current));
  wake_.notify_one();
}

void Loop::live(LiveQuery query, WithLive then, Failed failed) {
  {
    std::unique_lock lock(mutex_);
    if (live_requests_.size() >= limits_.reads_max) {
      lock.unlock();
      return failed(inbox_full("questions"));
    }
    live_requests_.push_back({std::move(query), std::move(then)});
  }
  wake_.notify_one();
}

Loop::Reading Loop::from_node(SessionId session, std::size_t bytes, std::function<void(Controller&)> work,
                              Unsaved unsaved) {
  bool paused = false;
  {
    const std::lock_guard lock(mutex_);
    Waiting& waiting = sessions_[session];
    ++waiting.messages;
    waiting.bytes += bytes;
    if (waiting.messages >= limits_.session_messages_max || waiting.bytes >= limits_.session_bytes_max)
      waiting.paused = true;
    paused = waiting.paused;
    inputs_.push_back({{}, {}, std::move(work), session, bytes, std::move(unsaved)});
  }
  wake_.notify_one();
  return paused ? Reading::paused : Reading::open;
}

void Loop::notice(std::function<void(Controller&)> work) {
  {
    const std::lock_guard lock(mutex_);
    inputs_.push_back({{}, {}, std::move(work)});
  }
  wake_.notify_one();
}

// What a session sent counts until its turn is over, so a turn and the inbox together hold no more than that.
void Loop::count_taken(const std::vector<Input>& inputs) {
  std::vector<SessionId> resumed;
  {
    const std::lock_guard lock(mutex_);
    for (const Input& input : inputs) {
      const auto found = sessions_.find(input.session);
      if (found == sessions_.end()) continue;
      Waiting& waiting = found->second;
      waiting.bytes -= input.bytes;
      if (--waiting.messages > 0) continue;
      if (waiting.paused) resumed.push_back(input.session);
      sessions_.erase(found);
    }
  }
  if (!resumed.empty()) outputs_.resume_sessions(std::move(resumed));
}

std::string Loop::degraded() const {
  const std::lock_guard lock(mutex_);
  return degraded_;
}

std::string Loop::degraded_hint() const {
  const std::lock_guard lock(mutex_);
  return degraded_hint_.empty()
             ? "free some space where the data folder lies; the service continues by itself"
             : degraded_hint_;
}

SavedTurn Loop::saved() const {
  const std::lock_guard lock(mutex_);
  return saved_;
}

void Loop::stop_in_order(bool keep_running) {
  const auto stop_now = [this] {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    wake_.notify_one();
  };
  if (keep_running) return stop_now();
  change(
      [this](Controller& controller) {
        controller.begin_stop();
        stopping_in_order_ = true;
        return [] {};
      },
      [stop_now](const Error&) { stop_now(); });  // nothing can be saved, so nothing can be ended in order
}

void Loop::run() {
  for (;;) {
    std::vector<Input> inputs;
    bool is_due = false;
    std::optional<TimePoint> deadline;
    {
      std::unique_lock lock(mutex_);
      const auto ready = [&] {
        return !inputs_.empty() || stop_ || (has_reads() && Steady::now() >= reads_from_);
      };
      deadline = degraded_.empty() ? controller_->next_deadline() : clock_.now() + probe_every;
      std::optional<Duration> wait;
      if (deadline) wait = std::max(Duration(0), *deadline - clock_.now());
      if (has_reads())
        wait =
            std::min(wait.value_or(1s),
                     std::chrono::ceil<Duration>(std::max(Steady::duration(0), reads_from_ - Steady::now())));
      if (degraded_.empty()) wait = std::min<Duration>(wait.value_or(look_every), look_every);
      if (has_removals_ && degraded_.empty())
        wait = std::min(wait.value_or(1s), std::chrono::ceil<Duration>(
                                               std::max(Steady::duration(0), remove_from_ - Steady::now())));
      // A read that comes while nothing else is awaited may have to wait for its share: it sets a new
      // deadline.
      const bool knows_reads = has_reads();
      const auto woken = [&] { return ready() || (!knows_reads && has_reads()); };
      if (wait)
        wake_.wait_for(lock, *wait, woken);
      else
        wake_.wait(lock, woken);
      if (stop_) return;
      inputs.swap(inputs_);
      changes_ = 0;
      is_due = !degraded_.empty() || (deadline && clock_.now() >= *deadline);
    }
    notice_pause(deadline);
    if (!inputs.empty() || is_due) take_turn(inputs);
    count_taken(inputs);
    run_reads();
    remove_rows();
    look();
    if (stopping_in_order_ && controller_->is_stopped()) return;
    awake_at_ = clock_.now();
  }
}

// Woken long after it was due, the thread was stopped or starved, perhaps since it last ran: nothing that was
// not received in that time is held against a node.
void Loop::notice_pause(std::optional<TimePoint> deadline) {
  const TimePoint now = clock_.now();
  if (!deadline || awake_at_ == TimePoint{} || now < *deadline + pause_least) return;
  log::warning("service.paused", {{"seconds", seconds(now - awake_at_)}});
  controller_->set_now(now);
  controller_->service_paused(now - awake_at_);
}

void Loop::take_turn(std::vector<Input>& inputs) {
  std::string problem = degraded();
  if (!problem.empty() && !is_lost_ && store_.probe() && reload()) {
    log::info("store.recovered");
    unsaved_sessions_.clear();
    outputs_.cut_all_sessions("the service can save its state again");
    const std::lock_guard lock(mutex_);
    degraded_.clear();
    problem.clear();
  }
  std::vector<std::function<void()>> answers;
  std::vector<Failed> failed;
  controller_->set_now(clock_.now());
  for (Input& input : inputs) {
    if (input.from_node) {
      if (problem.empty())
        input.from_node(*controller_);
      else
        take_unsaved(input);
    } else if (!problem.empty()) {
      input.failed({ErrorCode::unavailable, "the store is read-only, so no new work is taken: " + problem,
                    degraded_hint()});
    } else {
      answers.push_back(input.work(*controller_));
      failed.push_back(std::move(input.failed));
    }
  }
  if (problem.empty()) finish_turn(answers, failed);
}

void Loop::take_unsaved(const Input& input) {
  if (!input.unsaved) return;
  std::optional<ToAgent> answer = input.unsaved(*controller_, unsaved_sessions_);
  if (!answer) return;
  Outputs outputs;
  outputs.messages.emplace_back(input.session, std::move(*answer));
  outputs_.carry_out(std::move(outputs), *controller_);
}

void Loop::finish_turn(const std::vector<std::function<void()>>& answers, const std::vector<Failed>& failed) {
  auto outputs = controller_->finish_turn();
  if (!outputs) {
    for (const Failed& notify : failed)
      notify(
          {ErrorCode::unavailable, "it could not be saved: " + outputs.error().what, outputs.error().hint});
    return recover(outputs.error());
  }
  has_removals_ = has_removals_ || outputs->sources_changed;
  end_turn();  // before anybody is notified: who then asks for a snapshot gets one of this turn
  outputs_.carry_out(std::move(*outputs), *controller_);
  for (const auto& answer : answers) answer();
}

void Loop::end_turn() {
  const std::lock_guard lock(mutex_);
  ++turn_;
  saved_ = controller_->saved();
}

void Loop::run_reads() {
  const auto begun = Steady::now();
  {
    const std::lock_guard lock(mutex_);
    if (!has_reads() || begun < reads_from_) return;
  }
  controller_->set_now(clock_.now());
  publish_snapshot();
  while (Steady::now() - begun < reads_slice) {
    const auto request = next_live_request();
    if (!request) break;
    request->then(std::make_shared<const LiveView>(controller_->live(request->query)));
  }
  const auto ended = Steady::now();
  reads_from_ = ended + turns_per_read * (ended - begun);
}

// What a large job leaves goes in steps, a tenth of the time at most, so that no turn waits for all of it.
void Loop::remove_rows() {
  const auto begun = Steady::now();
  if (!has_removals_ || begun < remove_from_ || !degraded().empty()) return;
  const auto more = store_.remove_some();
  if (!more) log::warning("store.removal", {{"why", more.error().what}});
  const auto ended = Steady::now();
  has_removals_ = more.value_or(true);
  remove_from_ = ended + (more ? turns_per_read * (ended - begun) : Steady::duration(probe_every));
}

std::optional<Loop::LiveRequest> Loop::next_live_request() {
  const std::lock_guard lock(mutex_);
  if (live_requests_.empty()) return std::nullopt;
  LiveRequest request = std::move(live_requests_.front());
  live_requests_.pop_front();
  return request;
}

void Loop::publish_snapshot() {
  decltype(snapshot_waiters_) waiters;
  auto made = std::make_shared<Snapshot>();
  {
    const std::lock_guard lock(mutex_);
    waiters.swap(snapshot_waiters_);
    made->turn = turn_;
  }
  if (waiters.empty()) return;
  controller_->fill(*made);
  {
    const std::lock_guard lock(mutex_);
    snapshot_ = made;
  }
  for (const auto& [then, failed] : waiters) then(made);
}

void Loop::recover(const Error& error) {
  log::error("store.failed", {{"why", error.what}});
  {
    const std::lock_guard lock(mutex_);
    degraded_ = error.what;
    degraded_hint_ = error.hint;
  }
  is_lost_ = error.code == ErrorCode::conflict;
  outputs_.cut_all_sessions("the service could not save its state");
  reload();  // for reads; where that fails too, the old object answers them until a probe succeeds
}

// Between turns too: who submits next should not be the one to find out.
void Loop::look() {
  if (Steady::now() < look_at_ || !degraded().empty()) return;
  look_at_ = Steady::now() + look_every;
  if (auto there = store_.look(); !there) recover(there.error());
}

// Also after a long time without a working store: nodes get their full grace period to connect again.
bool Loop::reload() {
  auto loaded = Controller::load(store_, settings_, ++seed_, clock_.now());
  if (!loaded) {
    log::error("store.unreadable", {{"why", loaded.error().what}});
    return false;
  }
  controller_ = std::move(*loaded);
  controller_->all_received(clock_.now());
  end_turn();
  return true;
}

}  // namespace slipway::control
