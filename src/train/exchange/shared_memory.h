#pragma once
// All-reduce between processes of one machine, through memory they share.
//
// Backward writes gradients straight into the segment. One barrier per step for small arrays: everyone then
// adds up everyone's gradients in the order of the ranks, so all get the same bits. Large arrays are added up
// in slices, one per rank, with a second barrier. Gradients are double-buffered, so a fast rank can begin the
// next step while a slow one still reads. Waiting is a short spin and then a futex; a dead neighbour is
// noticed by its pidfd.
//
// The segment is a memfd that the others open through /proc/<pid>/fd/<n>: no name, nothing left behind.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "train/exchange/socket.h"
#include "train/exchange/sum.h"

namespace slipway::train {

class SharedMemory {
 public:
  struct Layout {
    std::uint32_t rank, ranks;  // within this machine
    std::size_t floats;
    std::vector<std::string> names;  // of the ranks, for messages
  };
  struct Ticket {  // what the others need to open it
    int pid = 0, fd = 0;
  };

  static Result<std::unique_ptr<SharedMemory>> create(Layout layout, WaitLimit wait_limit, Ticket& ticket);
  static Result<std::unique_ptr<SharedMemory>> open(Layout layout, WaitLimit wait_limit, Ticket ticket);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // This rank's own array for its next reduce().
  std::span<float> own();
  // The sum over the ranks, valid until the next reduce(). All ranks must call it equally often. When
  // `between` is given, rank 0 runs it on the sum before the others see it: that is where other machines come
  // in.
  using Between = Result<void> (*)(void* context, std::span<float> sum);
  Result<Sum> reduce(const std::function<void()>& meanwhile, Between between = nullptr,
                     void* context = nullptr);
  // Rank `from`'s array reaches all.
  Result<void> broadcast(std::span<float> values, std::uint32_t from, bool from_is_here,
                         Between between = nullptr, void* context = nullptr);

 private:
  struct Header;
  SharedMemory(Layout layout, WaitLimit wait_limit, Fd fd);
  Result<void> map(bool fresh);
  Result<void> watch_neighbours();
  Result<void> barrier(const std::function<void()>& meanwhile = nullptr);
  Error gone(std::uint32_t rank, std::string_view how) const;
  std::span<float> gradients(std::uint32_t rank, std::uint64_t turn);
  std::span<float> shared_sum();

  Layout layout_;
  WaitLimit wait_limit_;
  Fd fd_;
  std::chrono::microseconds look_first_;
  Header* header_ = nullptr;
  std::size_t mapped_ = 0;
  std::uint32_t barriers_ = 0;
  std::uint64_t turn_ = 0;
  std::vector<Fd> neighbours_;  // pidfds
};

}  // namespace slipway::train
