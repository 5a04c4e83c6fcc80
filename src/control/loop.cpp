#include "control/loop.h"

#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/random.h"

namespace slipway::control {
namespace {

constexpr Duration probe_every{1'000'000};

}  // namespace

Loop::Loop(Store& store, const Settings& settings, const Clock& clock, Effects& effects)
    : store_(store), settings_(settings), clock_(clock), effects_(effects), seed_(random_seed()) {}

Loop::~Loop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
}

Result<void> Loop::start() {
  auto loaded = Controller::load(store_, settings_, seed_, clock_.now());
  if (!loaded) return fail(loaded.error());
  controller_ = std::move(*loaded);
  thread_ = std::jthread([this] { run(); });
  return {};
}

void Loop::join() {
  if (thread_.joinable()) thread_.join();
}

void Loop::post(Input input) {
  {
    std::unique_lock lock(mutex_);
    if (inputs_.size() >= inputs_max && input.kind == Input::Kind::change) {
      lock.unlock();
      return input.failed(
          {ErrorCode::unavailable, "too many requests wait already", "try again in a moment"});
    }
    inputs_.push_back(std::move(input));
  }
  wake_.notify_one();
}

void Loop::change(Work work, Failed failed) {
  post({Input::Kind::change, std::move(work), {}, std::move(failed)});
}
void Loop::read(std::function<void(Controller&)> work) { post({Input::Kind::read, {}, std::move(work), {}}); }
void Loop::from_node(std::function<void(Controller&)> work) {
  post({Input::Kind::node, {}, std::move(work), {}});
}

std::string Loop::degraded() const {
  const std::lock_guard lock(mutex_);
  return degraded_;
}

void Loop::stop_in_order(bool keep_running) {
  if (keep_running) {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    wake_.notify_one();
    return;
  }
  change(
      [this](Controller& controller) {
        controller.begin_stop();
        stopping_in_order_ = true;
        return [] {};
      },
      [this](const Error&) {  // nothing can be saved, so nothing can be ended in order either
        const std::lock_guard lock(mutex_);
        stop_ = true;
        wake_.notify_one();
      });
}

void Loop::run() {
  for (;;) {
    std::vector<Input> inputs;
    {
      std::unique_lock lock(mutex_);
      const auto ready = [&] { return !inputs_.empty() || stop_; };
      std::optional<TimePoint> deadline =
          degraded_.empty() ? controller_->next_deadline() : clock_.now() + probe_every;
      if (deadline)
        wake_.wait_for(lock, std::max(Duration(0), *deadline - clock_.now()), ready);
      else
        wake_.wait(lock, ready);
      if (stop_) return;
      inputs.swap(inputs_);
    }
    take_turn(std::move(inputs));
    if (stopping_in_order_ && controller_->is_stopped()) return;
  }
}

void Loop::take_turn(std::vector<Input> inputs) {
  std::string problem = degraded();
  if (!problem.empty()) {
    if (store_.probe() && reload()) {
      log::info("store.recovered");
      const std::lock_guard lock(mutex_);
      degraded_.clear();
      problem.clear();
    }
  }
  std::vector<std::function<void()>> answers;
  std::vector<Failed> failed;
  std::vector<std::function<void(Controller&)>> reads;
  controller_->set_now(clock_.now());
  for (Input& input : inputs) {
    switch (input.kind) {
      case Input::Kind::read: reads.push_back(std::move(input.plain)); break;
      case Input::Kind::node:
        if (problem.empty()) input.plain(*controller_);
        break;
      case Input::Kind::change:
        if (!problem.empty()) {
          input.failed({ErrorCode::unavailable,
                        "nothing can be written down now, so no new work is taken: " + problem,
                        "free some space where the data folder lies; the service goes on by itself"});
        } else {
          answers.push_back(input.work(*controller_));
          failed.push_back(std::move(input.failed));
        }
        break;
    }
  }
  if (problem.empty()) {
    auto outputs = controller_->finish_turn();
    if (outputs) {
      effects_.carry_out(std::move(*outputs), *controller_);
      for (const auto& answer : answers) answer();
    } else {
      for (const Failed& tell : failed)
        tell({ErrorCode::unavailable, "it could not be written down: " + outputs.error().what,
              outputs.error().hint});
      recover(outputs.error());
    }
  }
  for (const auto& read : reads) read(*controller_);  // they see what was saved
}

void Loop::recover(const Error& error) {
  log::error("store.failed", {{"why", error.what}});
  {
    const std::lock_guard lock(mutex_);
    degraded_ = error.what;
  }
  effects_.cut_all_sessions("the service could not save its state");
  reload();  // for reads; where that fails too, the old object answers them until a probe succeeds
}

// Also after a long time without a working store: the nodes get their grace to dial again from now on.
bool Loop::reload() {
  auto loaded = Controller::load(store_, settings_, ++seed_, clock_.now());
  if (!loaded) {
    log::error("store.unreadable", {{"why", loaded.error().what}});
    return false;
  }
  controller_ = std::move(*loaded);
  return true;
}

}  // namespace slipway::control
