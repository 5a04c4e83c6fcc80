#pragma once
// Where the time of nodes goes.
//
// A part of an attempt on a node counts with its share of that node. Amounts are microseconds times
// millionths of a node, in whole numbers, so that sums are exact however they are taken.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace slipway {

__extension__ typedef __int128 NodeTime;
constexpr std::uint32_t node_whole = 1'000'000;

enum class Spent : std::uint8_t {
  computing,  // all of its processes have started
  staging,    // placed, and not started yet
  waiting,    // started, for others of its gang
  lost        // computed in vain: since the last mark of an attempt that did not end well
};
constexpr std::size_t spent_kinds = 4;

// Counts by itself as time passes, from rates that change only when something happens.
class UsageMeter {
 public:
  void change(Spent kind, std::int64_t share,
              TimePoint now);                           // so much more, or less, is spent so from now on
  void change_wall(std::int64_t share, TimePoint now);  // so much more, or less, is there
  void lose(NodeTime amount);                           // of what was computing
  void stop_all(TimePoint now);                         // everything stops, until it is started again
  void advance(TimePoint now);                          // a clock that went back counts nothing

  NodeTime spent(Spent kind) const { return spent_[static_cast<std::size_t>(kind)]; }
  NodeTime spent() const;
  NodeTime wall() const { return wall_; }
  std::uint64_t rate(Spent kind) const { return rates_[static_cast<std::size_t>(kind)]; }
  std::uint64_t wall_rate() const { return wall_rate_; }
  bool is_going_on() const { return rates_ != decltype(rates_){}; }

  std::string to_string() const;  // as it is saved
  static Result<UsageMeter> parse(std::string_view text);
  friend bool operator==(const UsageMeter&, const UsageMeter&) = default;

 private:
  TimePoint at_{};
  std::array<NodeTime, spent_kinds> spent_{};
  std::array<std::uint64_t, spent_kinds> rates_{};
  NodeTime wall_ = 0;
  std::uint64_t wall_rate_ = 0;
};

// In whole microseconds of a node. What is lost by rounding down is idle, so that all parts add up to `wall`.
struct Usage {
  std::array<std::int64_t, spent_kinds> spent{};
  std::int64_t idle = 0;
  std::int64_t wall = 0;
  friend bool operator==(const Usage&, const Usage&) = default;
};
Usage usage_of_pool(const UsageMeter& meter);
Usage usage_of_job(const UsageMeter& meter);  // a job has no idle nodes: wall is what it spent

struct PoolUsageRecord {
  std::string workspace = "default";
  std::string pool;
  UsageMeter meter;
};

}  // namespace slipway
