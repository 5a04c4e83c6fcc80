#pragma once
// How the workers of a run become one: the trainer computes gradients, an Exchange turns them into the next
// values. Alone, by all-reduce, or through parameter servers.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "train/exchange/frame.h"
#include "train/exchange/handshake.h"
#include "train/exchange/plan.h"
#include "train/exchange/socket.h"
#include "train/nn/aligned.h"
#include "train/nn/optimizer.h"

namespace slipway::train {

// What a worker holds between steps: the flat array of values and, where it applies updates itself, the
// optimizer with its state.
struct WorkerState {
  Flat values;
  Optimizer optimizer;
  std::uint64_t step = 0;  // steps done
};

struct StepReport {  // goes out with the gradients
  Tail tail;
  bool checkpoint = false;                  // parameter servers save their parts after this step
  std::function<void()> meanwhile = [] {};  // done while the others are waited for, or not at all
};

struct StepOutcome {
  Tail tail;            // summed over the workers whose gradients were used
  bool applied = true;  // false: finished, or the loss is not finite
  bool finish = false;  // the run is over
  bool stop = false;    // everyone stops after this step
  bool not_finite = false;
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Brings `state` to where the cluster is: starting values (already in `state`) where it is new, its own
  // where it runs. Waits for the others up to the wait limit. Also the way back in after a failed step.
  virtual Result<void> join(WorkerState& state) = 0;

  // Where the gradients of the coming step are to be written; flat-array floats.
  virtual std::span<float> gradients(std::uint64_t step) = 0;

  // Hands over the gradients of state.step and leaves new values in `state`, its step advanced (or set to
  // where the cluster is). Error `unavailable`: a peer is gone; join() again.
  virtual Result<StepOutcome> step(WorkerState& state, const StepReport& report) = 0;

  // True where checkpoints are the servers' task.
  virtual bool servers_keep_state() const { return false; }
  // Leaves in an orderly way, so that the others do not take it for a failure. `finished`: the run is over.
  virtual void leave(bool finished) { static_cast<void>(finished); }
};

// No one else: gradients are applied as they come.
std::unique_ptr<Exchange> make_alone(std::size_t floats, std::uint32_t batch);

// Through parameter servers. The chief is worker 0: it starts servers that have nothing, from a checkpoint
// all of them have or with its own values.
struct ServersOptions {
  Plan plan;
  std::uint32_t worker = 0;
  std::vector<Address> servers;
  Compression compression;
  WaitLimit wait_limit;
  GangKey key = {};
};
std::unique_ptr<Exchange> make_servers_exchange(ServersOptions options);

// By all-reduce among equals. Rank 0 is met at `master`; the ranks find out for themselves who shares a
// machine (shared memory) and who does not (TCP). After a rank is lost the others wait for it, and whoever
// has done most steps hands its state to all.
struct AllReduceOptions {
  std::uint32_t rank = 0, ranks = 1;
  Address master;
  std::uint32_t batch = 100;
  std::uint64_t layout = 0;  // Network::layout_fingerprint: all must agree
  std::size_t floats = 0;
  WaitLimit wait_limit;
  bool shared_memory = true;  // false: TCP even within a machine
  std::string machine = {};   // which machine this is; empty: find out
  GangKey key = {};
};
Result<std::unique_ptr<Exchange>> make_all_reduce_exchange(AllReduceOptions options);

}  // namespace slipway::train
