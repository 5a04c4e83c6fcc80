#pragma once
// What the user asked for on the command line.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "train/exchange/frame.h"
#include "train/exchange/plan.h"

namespace slipway::train {

using Environment = std::map<std::string, std::string>;

enum class Command { train, evaluate, predict, export_model, inspect, help, version };
enum class Distribute { automatic, none, servers, all_reduce };

struct Options {
  Command command = Command::train;
  std::string model = "mlp";  // or, for the other commands, the file
  std::string data, dataset;
  std::optional<std::uint64_t> epochs, steps;
  std::optional<double> until_accuracy;
  std::uint32_t batch_size = 100;
  std::optional<double> learning_rate;
  std::string optimizer, schedule;  // empty: the model's own
  std::optional<double> dropout;
  std::uint64_t seed = 1;
  std::vector<int> hidden;
  bool augment = false;

  Distribute distribute = Distribute::automatic;
  Mode mode = Mode::sync;
  std::uint32_t staleness = 0, backup_workers = 0;
  LostWorker on_lost_worker = LostWorker::wait;
  Compression compress;
  std::uint32_t servers = 1;  // where only ranks are known, the first ones serve
  std::vector<std::string> ps_hosts, worker_hosts;
  std::string job_name;
  std::optional<std::uint32_t> task_index;
  std::uint16_t port = 0;
  Duration peer_timeout = std::chrono::seconds(60);
  bool shared_memory = true;

  std::string checkpoint_dir;
  std::uint64_t checkpoint_every_steps = 0;  // 0: by time
  Duration checkpoint_every = std::chrono::seconds(5);
  std::uint32_t keep_checkpoints = 3;
  std::string resume = "auto";
  std::string output, log_dir, format;
  std::uint32_t threads = 1;
  bool json = false;
};

// `arguments` without the program's name. Names may be written with - or _. Folders that are not given come
// from SLIPWAY_CHECKPOINT_DIR and SLIPWAY_OUTPUTS.
Result<Options> parse_options(const std::vector<std::string>& arguments, const Environment& environment);
std::string help_text();

}  // namespace slipway::train
