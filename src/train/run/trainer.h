#pragma once
// One worker's run from data to stored model.
#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "train/data/dataset.h"
#include "train/exchange/stop.h"
#include "train/nn/network.h"
#include "train/run/cluster.h"
#include "train/run/options.h"
#include "train/state/checkpoint.h"

namespace slipway::train {

enum class Ending { finished, preempted };

struct RunReport {
  Ending ending = Ending::finished;
  std::uint64_t step = 0;
  double accuracy = -1;  // on the test set; only the chief measures
  double seconds = 0, samples_per_second = 0;
  std::uint64_t checkpoint_step = 0;  // newest on disk; 0 when there is none
};

// The model a run trains: a built-in name or a YAML file, fitted to the data.
Result<ModelSpec> choose_model(const Options& options, const Dataset& data);

// Trains as the worker that `cluster` describes. Writes to `out`; worker 0 evaluates, checkpoints and stores
// the model.
Result<RunReport> train(const Options& options, const Cluster& cluster, const DataPair& data,
                        const Clock& clock, const Stop& stop, std::FILE* out);

// A stored model or checkpoint, ready to predict.
struct StoredModel {
  CheckpointInfo info;
  ModelSpec model;
  Network network;
  Flat values;
  std::vector<float> plain;
};
Result<StoredModel> load_model(const std::string& path, int batch);

}  // namespace slipway::train
