#pragma once
// The thread that owns the controller. Others post to it; it takes everything that waits as one turn, saves
// once, and then answers.
//
// When saving fails (a full disk), the turn's callers are told, the controller is loaded anew from the store,
// every node's session is cut (they dial again and say what they know), and until a small write succeeds
// again new work is refused while reads go on. It is the same road as a crash, taken on purpose.
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "control/controller.h"
#include "control/store.h"

namespace slipway::control {

// What the loop does to the world, called on its thread after each turn that was saved.
class Effects {
 public:
  virtual ~Effects() = default;
  virtual void carry_out(Outputs outputs, const Controller& controller) = 0;
  virtual void cut_all_sessions(const std::string& why) = 0;
};

class Loop {
 public:
  // Runs within a turn; what it returns is run (on the loop's thread) after the turn was saved.
  using Work = std::function<std::function<void()>(Controller&)>;
  using Failed = std::function<void(const Error&)>;

  Loop(Store& store, const Settings& settings, const Clock& clock, Effects& effects);
  ~Loop();
  Result<void> start();  // loads, takes a first turn, starts the thread

  // `failed` is called instead when the turn could not be saved, or is refused because nothing can be saved
  // now or too much waits already. Thread-safe.
  void change(Work work, Failed failed);
  // As change, but allowed while nothing can be saved: it must not change anything. Its answer waits for no
  // save.
  void read(std::function<void(Controller&)> work);
  // From a node: dropped while nothing can be saved (its session is cut anyway). Thread-safe.
  void from_node(std::function<void(Controller&)> work);

  std::string degraded() const;  // empty, or why nothing can be saved. Thread-safe.
  // Ends what runs and waits until it has ended, or leaves everything as it is; then stops the thread.
  void stop_in_order(bool keep_running);
  void join();

 private:
  struct Input {
    enum class Kind { change, read, node } kind;
    Work work;
    std::function<void(Controller&)> plain;
    Failed failed;
  };
  static constexpr std::size_t inputs_max = 100'000;

  void post(Input input);
  void run();
  void take_turn(std::vector<Input> inputs);
  void recover(const Error& error);
  bool reload();

  Store& store_;
  Settings settings_;
  const Clock& clock_;
  Effects& effects_;
  std::unique_ptr<Controller> controller_;
  std::uint64_t seed_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Input> inputs_;  // guarded by mutex_
  std::string degraded_;       // guarded by mutex_
  bool stop_ = false;          // guarded by mutex_
  bool stopping_in_order_ = false;
  std::jthread thread_;
};

}  // namespace slipway::control
