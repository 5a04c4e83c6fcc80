#pragma once
// What all processes of a parameter-server run must agree on. Every worker sends it with its hello; a server
// takes the first and refuses whoever differs, naming the difference.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/nn/optimizer.h"

namespace slipway::train {

enum class Mode : std::uint8_t { sync, async, stale };  // stale: asynchronous within a bound
enum class LostWorker : std::uint8_t { wait, drop };

struct Plan {
  std::string model;  // format_model
  std::string dataset;
  std::uint64_t seed = 1;
  std::uint64_t layout = 0;  // Network::layout_fingerprint
  std::uint64_t floats = 0;  // of the flat array
  std::uint32_t workers = 1, servers = 1, batch = 100;
  Mode mode = Mode::sync;
  std::uint32_t staleness = 0;  // stale: how far the fastest worker may be ahead of the slowest
  std::uint32_t backups = 0;    // sync: a step is done when all but this many have answered
  LostWorker lost = LostWorker::wait;
  OptimizerSpec optimizer;  // its steps_total is the run's length
  std::vector<Range> statistics;
};

std::string format_plan(const Plan& plan);
Result<Plan> parse_plan(std::string_view text);
// The first line in which two formatted plans differ, as "mine, not theirs".
std::string difference(const std::string& mine, const std::string& theirs);

// The part of the flat array that server `index` of `servers` keeps: equal sizes, cut at multiples of 16.
Range server_slice(std::uint64_t floats, std::uint32_t servers, std::uint32_t index);

}  // namespace slipway::train
