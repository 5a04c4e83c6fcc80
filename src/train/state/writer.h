#pragma once
// Writes checkpoints beside training.
//
// Values change only when an update is applied, so the copy is made by the writer's own thread while the next
// batch is computed: call wait_copied() before the next update. Training stalls only for what of the copy is
// not done by then. At most one checkpoint is under way; asking for another meanwhile is answered `false` and
// costs nothing, because a newer one will be asked for soon.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/result.h"
#include "train/state/checkpoint.h"

namespace slipway::train {

class CheckpointWriter {
 public:
  // Fills the plain values and state; runs on the writer's thread while training reads the same arrays.
  using Copy = std::function<void(std::vector<float>& values, std::vector<float>& state)>;

  explicit CheckpointWriter(CheckpointFolder folder);
  ~CheckpointWriter();  // waits for what is under way
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  bool start(CheckpointInfo info, Copy copy);
  void wait_copied();
  // Waits until nothing is under way; the first error since the last call, if any.
  Result<void> finish();
  // The same without waiting: an error already known.
  std::optional<Error> take_error();
  // Steps of the newest checkpoint known to be on disk.
  std::uint64_t saved_step() const;

 private:
  void run(const std::stop_token& stop);

  CheckpointFolder folder_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<CheckpointInfo> asked_;  // guarded by mutex_
  Copy copy_;                            // guarded by mutex_
  bool copying_ = false;                 // guarded by mutex_
  bool busy_ = false;                    // guarded by mutex_
  std::uint64_t saved_ = 0;              // guarded by mutex_
  std::optional<Error> error_;           // guarded by mutex_
  std::jthread thread_;                  // last: it uses all of the above
};

}  // namespace slipway::train
