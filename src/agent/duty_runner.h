#pragma once
// Carries out the duties of an agent (duties.h): keeps their records with the keeper, starts the programs
// that push, watches for stalls, completes ends with what the keeper does not look at, and undoes mounts.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/duties.h"
#include "agent/keeper_link.h"
#include "agent/order.h"
#include "agent/secret_folders.h"
#include "agent/stall.h"
#include "base/clock.h"
#include "domain/protocol.h"
#include "net/loop.h"

namespace slipway::agent {

class DutyRunner {
 public:
  struct Options {
    std::string node;    // its name
    std::string folder;  // the agent's own
  };
  struct Callbacks {
    std::function<void(ProcessEnded)> ended;  // and its duties are done
    std::function<void(const WorkKey&, bool)> stalled;
    std::function<void()> act;  // after any of the others, where no call from outside led to it
  };
  // `context` is kept by reference.
  DutyRunner(net::Loop& loop, KeeperLink& keeper, const NodeContext& context, Options options,
             Callbacks callbacks);

  // Before anything is mounted for it.
  void prepare(const PrepareOrder& order);
  // Puts its record into the message that starts it.
  Result<void> start(const StartOrder& order, keeper::StartRequest& message);

  // What the keeper reports. A list is changed to what the core may see; what it leads to is carried out by
  // act(), after the core has received it.
  void keeper_connected(keeper::ProcessList& list);
  void keeper_lost() { duties_.keeper_lost(); }
  void started(const ProcessStarted& start);
  void ended(ProcessEnded end);
  void act();

  void stop(const StopOrder& order);
  // The ends are acknowledged; the keeper forgets them too.
  void forget(std::vector<WorkKey> keys);
  void release(const WorkKey& key);  // it will not start

 private:
  void note_end(const Duty& duty, const ProcessEnded& end) const;
  static void complete(const Duty& duty, ProcessEnded& end);
  void complete_push(ProcessEnded& end) const;
  void watch_wall_time(const ProcessStarted& start);
  void watch_stall(const WorkKey& key, const Duty& duty);
  void check_stalls();
  std::string push_log(const WorkKey& key, std::uint32_t mount) const;
  Result<Sealer> sealer() const;
  void set_timer();

  void carry_out(duty::Record& record);
  void carry_out(duty::Push& push);
  void carry_out(duty::StopPush& stop);
  void carry_out(duty::Stop& stop);
  void carry_out(duty::Report& report);
  void carry_out(duty::Forget& forget);
  void carry_out(duty::Unmount& unmount);

  net::Loop& loop_;
  KeeperLink& keeper_;
  const NodeContext& context_;
  const Options options_;
  const Callbacks callbacks_;
  SystemClock clock_;
  bool keeper_keeps_duties_ = false;
  Duties duties_;
  SecretFolders secrets_;
  StallWatch stalls_{observe_machine};
  std::shared_ptr<net::Loop::Timer> stall_timer_;
  std::shared_ptr<net::Loop::Timer> timer_;
};

}  // namespace slipway::agent
