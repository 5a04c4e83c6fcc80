#pragma once
// The times at which the streams of a process grew, as a file beside them keeps it: a line for each,
// "MICROSECONDS STREAM END", where STREAM is 1 (stdout) or 2 (stderr) and END the size it had then.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace slipway {

struct OutputTime {
  TimePoint time{};
  std::uint8_t stream = 1;
  std::uint64_t end = 0;
  friend bool operator==(const OutputTime&, const OutputTime&) = default;
};

// .times-worker-0 from the name of its stdout file, stdout-worker-0.txt. Lists of files leave these out.
std::string output_times_file(std::string_view stdout_file);
bool is_output_times_file(std::string_view name);

// Those of a file, in order; a line that is none, as the last one of a file that is being written, ends it.
std::vector<OutputTime> parse_output_times(std::string_view text);

// Grows by one entry at a time. Entries of one stream that follow each other closely are one; what is close
// grows with the length of the list, so that a process that writes for weeks has a short one too.
class OutputTimeList {
 public:
  void add(const OutputTime& entry);
  // The lines that were not taken before; without the last entry, which may still grow, unless it is over.
  std::string take(bool is_over);
  // Whether it says more than the sizes of the streams and the times of their last changes do.
  bool is_needed() const { return entries_ > (has_both_ ? 2U : 1U); }

 private:
  std::string lines_;  // not yet taken
  OutputTime last_;
  std::uint64_t entries_ = 0;
  bool has_both_ = false;
};

}  // namespace slipway
