#pragma once
// The lifecycle of an attempt: its phases, what can happen to it, and what follows.
//
//   placed ─▶ preparing ─▶ launching ─▶ running ─▶ finishing ─▶ stopping ─▶ ended
//
// Preparing is left out where nothing has to be prepared. An attempt can be stopped in every phase before
// stopping, and ends when the last of its processes has.
#include <array>
#include <optional>
#include <string_view>
#include <variant>

namespace slipway::control {

enum class AttemptPhase {
  placed,     // has nodes; no order has been sent
  preparing,  // its nodes lay out files and find ports
  launching,  // its processes have been ordered to start
  running,    // all of them have started
  finishing,  // all that decide have succeeded: whatever happens now, the attempt succeeds
  stopping,   // its end is decided; the processes that are left have been ordered to stop
  ended,      // no process is left
};
inline constexpr std::array attempt_phases{
    AttemptPhase::placed,    AttemptPhase::preparing, AttemptPhase::launching, AttemptPhase::running,
    AttemptPhase::finishing, AttemptPhase::stopping,  AttemptPhase::ended};
std::string_view to_string(AttemptPhase phase);

struct PrepareSent {};    // its nodes have been ordered to prepare
struct StartSent {};      // its nodes have been ordered to start; all are prepared where that is needed
struct AllStarted {};     // the last process has started
struct AllSucceeded {};   // the last process that decides has succeeded
struct StopRequested {};  // a failure, a lost node, an eviction, a deadline, or the user
struct AllExited {};      // no process is left
using AttemptEvent = std::variant<PrepareSent, StartSent, AllStarted, AllSucceeded, StopRequested, AllExited>;

// The next phase, or nullopt where the event does not apply in this phase: a late or repeated report, which
// is ignored.
std::optional<AttemptPhase> next(AttemptPhase phase, const AttemptEvent& event);

}  // namespace slipway::control
