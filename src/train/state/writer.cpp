#include "train/state/writer.h"

#include <utility>

namespace slipway::train {

CheckpointWriter::CheckpointWriter(CheckpointFolder folder)
    : folder_(std::move(folder)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

CheckpointWriter::~CheckpointWriter() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_ && !asked_; });
}

bool CheckpointWriter::start(CheckpointInfo info, Copy copy) {
  const std::lock_guard lock(mutex_);
  if (busy_ || asked_) return false;
  asked_ = std::move(info);
  copy_ = std::move(copy);
  copying_ = true;
  changed_.notify_all();
  return true;
}

void CheckpointWriter::wait_copied() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !copying_; });
}

Result<void> CheckpointWriter::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_ && !asked_; });
  if (error_) return fail(*std::exchange(error_, std::nullopt));
  return {};
}

std::optional<Error> CheckpointWriter::take_error() {
  const std::lock_guard lock(mutex_);
  return std::exchange(error_, std::nullopt);
}

std::uint64_t CheckpointWriter::saved_step() const {
  const std::lock_guard lock(mutex_);
  return saved_;
}

void CheckpointWriter::run(const std::stop_token& stop) {
  std::vector<float> values, state;  // kept, so that their pages are paid for once
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return asked_.has_value(); })) {
    const CheckpointInfo info = *std::exchange(asked_, std::nullopt);
    const Copy copy = std::exchange(copy_, nullptr);
    busy_ = true;
    lock.unlock();
    copy(values, state);
    lock.lock();
    copying_ = false;
    changed_.notify_all();
    lock.unlock();
    const Result<void> saved = folder_.save(info, values, state);
    lock.lock();
    if (saved)
      saved_ = info.step;
    else if (!error_)
      error_ = saved.error();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace slipway::train
