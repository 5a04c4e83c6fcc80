#pragma once
// What several files say in the same words.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/quantity.h"
#include "base/result.h"
#include "domain/protocol.h"

namespace slipway::control {

inline Error no_pool(const std::string& name) {
  return {ErrorCode::not_found, fmt::format("there is no pool {}", name),
          "slipway pool list shows the pools"};
}

inline Error no_job(JobId id) {
  return {ErrorCode::not_found, fmt::format("there is no {}", to_string(id)),
          "slipway job list shows the jobs"};
}

inline Error no_task(JobId id, const std::string& name) {
  return {ErrorCode::not_found, fmt::format("there is no task {} in {}", name.substr(0, 200), to_string(id)),
          fmt::format("slipway task list {} shows its tasks", to_string(id))};
}

inline Error no_node(const std::string& name) {
  return {ErrorCode::not_found, fmt::format("there is no node {}", name),
          "slipway node list shows the nodes; slipway events shows those that have gone"};
}

// Of an attempt that was stopped for it; by this a service that was started again knows it.
inline constexpr std::string_view over_wall_time = "exceeded max_wall_time";

// worker-1, or rank 1 where there are no roles.
std::string describe_process(const std::string& name);
// "worker-1 on lab-2 exited with code 3", "rank 1 on …" where there are no roles, "it …" where it is alone.
std::string describe_end(const ProcessEnded& ended, const std::string& name, const std::string& node);

}  // namespace slipway::control
