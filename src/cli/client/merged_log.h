#pragma once
// The streams of several processes of one attempt as one log, in the order in which they were written.
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client/log_stream.h"

namespace slipway::cli {

struct MergedStream {
  std::string process;
  std::string stream;
  std::string prefix;
  SharedOutput* output = nullptr;
  std::uint64_t offset = 0;  // how far it was printed
};

enum class LastLine { printed, kept };  // one that has not ended, where every line gets a prefix or a time

// Prints what is there now of one attempt, the last `tail` lines where that is set; the streams' offsets say
// where to continue.
Outcome<void> copy_merged(Service& service, const LogSource& source, std::uint32_t attempt,
                          LastLine last_line, std::vector<MergedStream>& streams);

}  // namespace slipway::cli
