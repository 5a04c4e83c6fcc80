#include "train/exchange/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "train/nn/kernels.h"

namespace slipway::train {
namespace {

constexpr std::size_t line = 64;
constexpr std::size_t small_floats = std::size_t{1} << 20;  // up to here and ...
constexpr std::uint32_t small_ranks = 4;                    // ... here one barrier beats two
// A sleeping rank needs tens of microseconds to wake, as long as a fifth of a small step; so it looks for a
// while first, and only where each rank can have a core to itself.
constexpr std::chrono::microseconds look_first_alone{100};
constexpr std::chrono::microseconds look_first_crowded{5};
constexpr long neighbour_check_ns = 20'000'000;  // how often a waiting rank checks that its neighbours run

struct alignas(line) Slot {
  std::atomic<std::uint32_t> arrived;
  std::atomic<std::int32_t> pid;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

void wake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  const timespec limit{0, neighbour_check_ns};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

std::uint32_t cores() {  // this process may use
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<std::uint32_t>(CPU_COUNT(&set)) : 1;
}

std::size_t padded(std::size_t floats) { return (floats + 15) / 16 * 16; }

}  // namespace

struct SharedMemory::Header {
  alignas(line) std::atomic<std::uint32_t> broken;
  Slot slots[1];  // one per rank; the arrays follow
};

SharedMemory::SharedMemory(Layout layout, WaitLimit wait_limit, Fd fd)
    : layout_(std::move(layout)),
      wait_limit_(wait_limit),
      fd_(std::move(fd)),
      look_first_(layout_.ranks <= cores() ? look_first_alone : look_first_crowded) {}

SharedMemory::~SharedMemory() {
  if (header_ == nullptr) return;
  // Whoever still waits for us learns at once that this group is over.
  header_->broken.store(1);
  for (std::uint32_t rank = 0; rank < layout_.ranks; ++rank) wake(header_->slots[rank].arrived);
  ::munmap(header_, mapped_);
}

Result<void> SharedMemory::map(bool fresh) {
  const std::size_t head = line + layout_.ranks * sizeof(Slot);
  mapped_ = head + (2 * layout_.ranks + 1) * padded(layout_.floats) * sizeof(float);
  // A memfd is open to all; whoever may not look into this process cannot reach it anyway.
  if (fresh && ::fchmod(fd_.get(), S_IRUSR | S_IWUSR) != 0)
    return fail(system_error("cannot close shared memory to other users", errno));
  if (fresh && ::ftruncate(fd_.get(), static_cast<off_t>(mapped_)) != 0)
    return fail(system_error("cannot size shared memory", errno));
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0 || status.st_size != static_cast<off_t>(mapped_))
    return fail(ErrorCode::conflict, "the shared memory of this machine's ranks has another size",
                "start every rank with the same model and options");
  void* address = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (address == MAP_FAILED) return fail(system_error("cannot map shared memory", errno));
  header_ = static_cast<Header*>(address);
  header_->slots[layout_.rank].pid.store(::getpid());
  return {};
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::create(Layout layout, WaitLimit wait_limit,
                                                           Ticket& ticket) {
  Fd fd(static_cast<int>(::syscall(SYS_memfd_create, "slipway-train", MFD_CLOEXEC)));
  if (!fd) return fail(system_error("cannot create shared memory", errno));
  std::unique_ptr<SharedMemory> made(new SharedMemory(std::move(layout), wait_limit, std::move(fd)));
  if (auto mapped = made->map(true); !mapped) return fail(mapped.error());
  ticket = {::getpid(), made->fd_.get()};
  return made;
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::open(Layout layout, WaitLimit wait_limit, Ticket ticket) {
  const std::string path = fmt::format("/proc/{}/fd/{}", ticket.pid, ticket.fd);
  Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd)
    return fail(lost(layout.names[0], fmt::format("does not share its memory: {}", std::strerror(errno))));
  std::unique_ptr<SharedMemory> made(new SharedMemory(std::move(layout), wait_limit, std::move(fd)));
  if (auto mapped = made->map(false); !mapped) return fail(mapped.error());
  return made;
}

Error SharedMemory::gone(std::uint32_t rank, std::string_view how) const {
  return lost(layout_.names[rank], how);
}

std::span<float> SharedMemory::gradients(std::uint32_t rank, std::uint64_t turn) {
  auto* first =
      reinterpret_cast<float*>(reinterpret_cast<char*>(header_) + line + layout_.ranks * sizeof(Slot));
  return {first + (rank * 2 + (turn & 1)) * padded(layout_.floats), layout_.floats};
}
std::span<float> SharedMemory::shared_sum() {
  return {gradients(layout_.ranks - 1, 1).data() + padded(layout_.floats), layout_.floats};
}
std::span<float> SharedMemory::own() { return gradients(layout_.rank, turn_); }

// A pid alone could be someone else's by now; a pidfd taken while the rank is known to run cannot.
Result<void> SharedMemory::watch_neighbours() {
  neighbours_.resize(layout_.ranks);
  for (std::uint32_t rank = 0; rank < layout_.ranks; ++rank) {
    const int pid = header_->slots[rank].pid.load();
    if (rank == layout_.rank || neighbours_[rank] || pid == 0) continue;
    neighbours_[rank] = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!neighbours_[rank]) return fail(gone(rank, "has ended"));
  }
  for (std::uint32_t rank = 0; rank < layout_.ranks; ++rank) {
    pollfd ended{neighbours_[rank].get(), POLLIN, 0};
    if (neighbours_[rank] && ::poll(&ended, 1, 0) > 0) return fail(gone(rank, "has ended"));
  }
  return {};
}

Result<void> SharedMemory::barrier(const std::function<void()>& meanwhile) {
  const std::uint32_t goal = ++barriers_;
  std::atomic<std::uint32_t>& mine = header_->slots[layout_.rank].arrived;
  mine.store(goal, std::memory_order_release);
  wake(mine);
  if (meanwhile) meanwhile();
  const Steady::time_point deadline = Steady::now() + wait_limit_.timeout;
  for (std::uint32_t rank = 0; rank < layout_.ranks; ++rank) {
    std::atomic<std::uint32_t>& other = header_->slots[rank].arrived;
    // Compared as a difference: a rank may already be one barrier further, and counters wrap.
    const auto is_behind = [&](std::uint32_t seen) { return static_cast<std::int32_t>(seen - goal) < 0; };
    std::uint32_t seen = other.load(std::memory_order_acquire);
    const Steady::time_point sleep_at = is_behind(seen) ? Steady::now() + look_first_ : Steady::time_point();
    while (is_behind(seen) && Steady::now() < sleep_at) {
      for (int i = 0; i < 16 && is_behind(seen); ++i) {
        __builtin_ia32_pause();
        seen = other.load(std::memory_order_acquire);
      }
    }
    while (is_behind(seen)) {
      sleep_while(other, seen);
      seen = other.load(std::memory_order_acquire);
      if (!is_behind(seen)) break;
      if (header_->broken.load() != 0) return fail(gone(rank, "or another rank of this machine gave up"));
      if (auto alive = watch_neighbours(); !alive) return alive;
      const Steady::time_point limit =
          wait_limit_.stop != nullptr ? wait_limit_.stop->limit(deadline) : deadline;
      if (Steady::now() >= limit) return fail(gone(rank, "timed out"));
    }
  }
  return {};
}

Result<Sum> SharedMemory::reduce(const std::function<void()>& meanwhile, Between between, void* context) {
  const std::uint64_t turn = turn_++;
  if (auto all = barrier(meanwhile); !all) return fail(all.error());
  std::vector<const float*> from;
  for (std::uint32_t rank = 0; rank < layout_.ranks; ++rank) from.push_back(gradients(rank, turn).data());
  if (between == nullptr && layout_.floats <= small_floats && layout_.ranks <= small_ranks)
    return Sum(std::move(from), layout_.floats);
  const std::span<float> sum = shared_sum();
  const std::size_t blocks = padded(layout_.floats) / 16;
  const std::size_t begin = std::min(layout_.floats, blocks * layout_.rank / layout_.ranks * 16);
  const std::size_t end = std::min(layout_.floats, blocks * (layout_.rank + 1) / layout_.ranks * 16);
  kernels().sum(sum.data() + begin, from.data(), from.size(), begin, end - begin);
  if (auto all = barrier(); !all) return fail(all.error());
  if (between == nullptr) return Sum(sum);
  if (layout_.rank == 0)
    if (auto done = between(context, sum); !done) return fail(done.error());
  if (auto all = barrier(); !all) return fail(all.error());
  return Sum(sum);
}

Result<void> SharedMemory::broadcast(std::span<float> values, std::uint32_t from, bool from_is_here,
                                     Between between, void* context) {
  SLIPWAY_CHECK(values.size() <= layout_.floats);
  const std::span<float> shared = shared_sum().first(values.size());
  if (from_is_here && layout_.rank == from) std::memcpy(shared.data(), values.data(), values.size_bytes());
  if (auto all = barrier(); !all) return all;
  if (between != nullptr && layout_.rank == 0)
    if (auto done = between(context, shared); !done) return done;
  if (auto all = barrier(); !all) return all;
  if (!from_is_here || layout_.rank != from) std::memcpy(values.data(), shared.data(), values.size_bytes());
  return barrier();  // nobody writes the next one before all have read this one
}

}  // namespace slipway::train
