#pragma once
// What a function of the control plane works on. A turn is one iteration of the control loop: the events that
// came, what follows from them, one save.
//
// Functions that only read take `const State&`, or `const Turn&` where they need the time or the settings.
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"
#include "control/effects.h"
#include "control/settings.h"
#include "control/spec_cache.h"
#include "control/state.h"

namespace slipway::control {

struct Turn {
  State& state;
  Effects& effects;
  const Settings& settings;
  SpecCache& specs;
  Random& random;
  TimePoint now;
};

// The spec of a task, also of one that was submitted in this very turn.
Result<std::shared_ptr<const TaskSpec>> spec_of(const Turn& turn, JobId job, std::uint32_t group);

// For what is recorded one after the other: now, and never before what was recorded last, whatever the clock
// was set to.
TimePoint recording_time(Turn& turn);

// `pool` is that of the job where it is left empty.
void record_event(Turn& turn, std::string kind, const Job* job, std::string_view task,
                  std::optional<std::uint32_t> attempt, std::string text, std::string node = {},
                  std::string pool = {});
void record_event_in(Turn& turn, const std::string& workspace, std::string kind, std::string text,
                     std::string node, std::string pool);

}  // namespace slipway::control
