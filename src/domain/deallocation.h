#pragma once
// What becomes of the tasks of a node that a smaller pool no longer has.
#include <cstdint>
#include <optional>
#include <string_view>

namespace slipway {

enum class Deallocation : std::uint8_t {
  requeue,          // they go back to the queue; no retry is used
  terminate,        // they fail
  task_completion,  // the node goes when they have ended
  retained_data     // likewise, and when nobody needs what they left on it
};
std::string_view to_string(Deallocation rule);
std::optional<Deallocation> parse_deallocation(std::string_view text);

}  // namespace slipway
