#include "train/run/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/quantity.h"
#include "train/data/bytes.h"
#include "train/data/find.h"
#include "train/exchange/parameter_server.h"
#include "train/run/cluster.h"
#include "train/run/progress.h"
#include "train/run/trainer.h"
#include "train/state/export.h"

namespace slipway::train {
namespace {

int complain(const Error& error, std::FILE* to, int code = 1) {
  fmt::print(to, "error: {}\n", error.what);
  if (!error.hint.empty()) fmt::print(to, "try:   {}\n", error.hint);
  std::fflush(to);
  return code;
}

int serve(const Options& options, const Cluster& cluster, const Stop& stop, Speech speech) {
  auto listener = listen_on(cluster.servers[cluster.index]);
  if (!listener) return complain(listener.error(), speech.err);
  ServerOptions server;
  server.index = cluster.index;
  server.checkpoints_kept = static_cast<int>(options.keep_checkpoints);
  server.resume = options.resume != "never";
  server.worker_timeout = options.peer_timeout;
  server.key = cluster.key;
  if (!options.checkpoint_dir.empty())
    server.checkpoint_folder = fmt::format("{}/ps-{}", options.checkpoint_dir, cluster.index);
  log::info("server.listening",
            {{"server", cluster.index}, {"at", to_string(cluster.servers[cluster.index])}});
  const auto report = serve_parameters(std::move(*listener), server, stop);
  if (!report) return complain(report.error(), speech.err);
  fmt::print(speech.out, "parameter server {}: {} at step {}\n", cluster.index,
             report->finished ? "done" : "preempted", report->step);
  std::fflush(speech.out);
  return 0;
}

int run_training(const Options& options, const Environment& environment, const Stop& stop, Speech speech) {
  const auto cluster = discover_cluster(options, environment);
  if (!cluster) return complain(cluster.error(), speech.err, 2);
  if (cluster->is_server) return serve(options, *cluster, stop, speech);
  const auto data = find_data({options.data, options.dataset, options.seed}, data_places(environment));
  if (!data) return complain(data.error(), speech.err);
  const SystemClock clock;
  const auto report = train(options, *cluster, *data, clock, stop, speech.out);
  return report ? 0 : complain(report.error(), speech.err);
}

int run_evaluation(const Options& options, const Environment& environment, Speech speech) {
  auto stored = load_model(options.model, 100);
  if (!stored) return complain(stored.error(), speech.err);
  DataChoice choice{options.data, options.dataset, stored->info.seed};
  // Unless requested otherwise: what it was trained on.
  if (choice.folder.empty() && choice.dataset.empty())
    (stored->info.dataset == "synthetic" ? choice.folder : choice.dataset) = stored->info.dataset;
  const auto data = find_data(choice, data_places(environment));
  if (!data) return complain(data.error(), speech.err);
  if (data->test.shape() != stored->model.input || data->test.classes() != stored->info.classes)
    return complain({ErrorCode::invalid,
                     fmt::format("{} takes pictures of {} and {} has {}", options.model,
                                 to_string(stored->model.input), data->name, to_string(data->test.shape())),
                     "name the data it was trained on with --dataset or --data"},
                    speech.err);
  const Evaluation result = evaluate(stored->network, data->test, stored->values);
  if (options.json)
    fmt::print(speech.out, "{}\n",
               to_json({{"dataset", data->name},
                        {"test_accuracy", result.accuracy},
                        {"test_loss", result.loss},
                        {"samples", static_cast<double>(data->test.count())}}));
  else
    fmt::print(speech.out, "{} on {} ({}): accuracy {:.2f} %, loss {:.4f}, {} samples\n", stored->model.name,
               data->name, data->where, result.accuracy * 100, result.loss, data->test.count());
  return 0;
}

// Raw floats in, probabilities out, as JSON: for comparing with other programs and for a quick look.
int run_prediction(const Options& options, Speech speech) {
  auto stored = load_model(options.model, 64);
  if (!stored) return complain(stored.error(), speech.err);
  const auto bytes = map_file(options.data);
  if (!bytes) return complain(bytes.error(), speech.err);
  const std::size_t sample = static_cast<std::size_t>(stored->model.input.size()) * sizeof(float);
  if (bytes->view.empty() || bytes->view.size() % sample != 0)
    return complain({ErrorCode::invalid,
                     fmt::format("{} has {} bytes, not a whole number of samples of {} floats", options.data,
                                 bytes->view.size(), stored->model.input.size()),
                     "write 32-bit floats from 0 to 1, one sample after another"},
                    speech.err);
  const std::size_t count = bytes->view.size() / sample,
                    classes = static_cast<std::size_t>(stored->info.classes);
  std::vector<float> outputs(count * classes);
  stored->network.predict(reinterpret_cast<const float*>(bytes->view.data()), count, stored->values,
                          outputs.data());
  std::string text = "{\"predictions\":[";
  for (std::size_t i = 0; i < count; ++i)
    text += fmt::format("{}[{}]", i > 0 ? "," : "",
                        fmt::join(outputs.begin() + static_cast<std::ptrdiff_t>(i * classes),
                                  outputs.begin() + static_cast<std::ptrdiff_t>((i + 1) * classes), ","));
  fmt::print(speech.out, "{}]}}\n", text);
  return 0;
}

int run_export(const Options& options, Speech speech) {
  auto stored = load_model(options.model, 1);
  if (!stored) return complain(stored.error(), speech.err);
  if (options.output.empty())
    return complain(
        {ErrorCode::invalid, "export needs --output", "--output model.onnx, model.npz or model.slipway"},
        speech.err, 2);
  std::string format = options.format;
  if (format.empty())
    for (const char* known : {"onnx", "npz", "slipway"})
      if (options.output.ends_with(std::string(".") + known)) format = known;
  Result<void> written;
  const auto& parameters = stored->network.parameters();
  if (format == "onnx") {
    written = write_file_durably(options.output, to_onnx(stored->model, parameters, stored->plain));
  } else if (format == "npz") {
    written = write_file_durably(options.output, to_npz(parameters, stored->plain));
  } else if (format == "slipway") {
    CheckpointInfo info = stored->info;
    info.optimizer.clear();
    written = write_checkpoint(options.output, info, stored->plain, {});
  } else {
    return complain({ErrorCode::invalid, fmt::format("{} has no known format", options.output),
                     "--format onnx, npz or slipway, or a file name that ends so"},
                    speech.err, 2);
  }
  if (!written) return complain(written.error(), speech.err);
  fmt::print(speech.out, "{}\n", options.output);
  return 0;
}

int run_inspection(const Options& options, Speech speech) {
  auto stored = load_model(options.model, 1);
  if (!stored) return complain(stored.error(), speech.err);
  const CheckpointInfo& info = stored->info;
  if (options.json) {
    fmt::print(speech.out, "{}\n",
               to_json({{"model", info.model},
                        {"dataset", info.dataset},
                        {"step", static_cast<double>(info.step)},
                        {"seed", static_cast<double>(info.seed)},
                        {"workers", static_cast<double>(info.workers)},
                        {"batch_size", static_cast<double>(info.batch)},
                        {"test_accuracy", info.accuracy},
                        {"parameters", static_cast<double>(stored->plain.size())}}));
    return 0;
  }
  fmt::print(speech.out, "{}: {}\n", options.model,
             info.optimizer.empty() ? "a stored model" : "a checkpoint");
  fmt::print(speech.out, "trained on {} for {} steps by {} worker{} with batches of {}, seed {}\n",
             info.dataset, info.step, info.workers, info.workers == 1 ? "" : "s", info.batch, info.seed);
  if (info.accuracy >= 0) fmt::print(speech.out, "test accuracy {:.2f} %\n", info.accuracy * 100);
  const auto shapes = check_model(stored->model, info.classes);
  if (!shapes) return complain(shapes.error(), speech.err);
  fmt::print(speech.out, "{}, {} parameters\n  {:<24} {}\n", stored->model.name, stored->plain.size(),
             "input", to_string(stored->model.input));
  for (std::size_t i = 0; i < shapes->size(); ++i)
    fmt::print(speech.out, "  {:<24} {}\n", to_string(stored->model.layers[i]), to_string((*shapes)[i]));
  for (const Parameter& parameter : stored->network.parameters())
    fmt::print(speech.out, "  {:<24} {}\n", parameter.name, fmt::join(parameter.shape, "x"));
  return 0;
}

}  // namespace

int run_command(const std::vector<std::string>& arguments, const Environment& environment, const Stop& stop,
                Speech speech) {
  const auto options = parse_options(arguments, environment);
  if (!options) return complain(options.error(), speech.err, 2);
  switch (options->command) {
    case Command::train: return run_training(*options, environment, stop, speech);
    case Command::evaluate: return run_evaluation(*options, environment, speech);
    case Command::predict: return run_prediction(*options, speech);
    case Command::export_model: return run_export(*options, speech);
    case Command::inspect: return run_inspection(*options, speech);
    case Command::help: fmt::print(speech.out, "{}", help_text()); return 0;
    case Command::version: fmt::print(speech.out, "slipway-train {}\n", SLIPWAY_VERSION); return 0;
  }
  return 2;
}

}  // namespace slipway::train
