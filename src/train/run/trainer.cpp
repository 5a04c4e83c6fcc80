#include "train/run/trainer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "base/log.h"
#include "base/quantity.h"
#include "train/data/order.h"
#include "train/exchange/exchange.h"
#include "train/nn/optimizer.h"
#include "train/run/progress.h"
#include "train/state/writer.h"

namespace slipway::train {
namespace {

constexpr std::uint64_t epochs_default = 10, epochs_until_max = 200;

class Run {
 public:
  Run(const Options& options, const Cluster& cluster, const DataPair& data, const Clock& clock,
      const Stop& stop)
      : options_(options), cluster_(cluster), data_(data), clock_(clock), stop_(stop) {}

  Result<RunReport> go(std::FILE* out);

 private:
  bool is_chief() const { return cluster_.index == 0; }
  bool is_async() const { return cluster_.kind == Cluster::Kind::servers && options_.mode != Mode::sync; }
  bool saves_here() const { return is_chief() && writer_ != nullptr && !exchange_->servers_keep_state(); }
  std::uint64_t steps_per_epoch() const;

  Result<void> build();
  Result<OptimizerSpec> optimizer_spec() const;
  Result<void> resume();
  Result<Checkpoint> find_checkpoint(bool& found) const;
  Result<void> take(Checkpoint checkpoint);
  Result<void> connect();
  Result<RunReport> loop();
  Result<StepOutcome> one_step(bool checkpoint, bool finish);
  bool checkpoint_due();
  void start_checkpoint();
  Evaluation test();
  Result<void> at_epoch_end(bool& finish);
  Result<RunReport> end(Ending ending, RunReport report);
  Result<RunReport> not_finite();
  CheckpointInfo info() const;
  std::map<std::string, HyperValue> parameters_of_run() const;

  const Options& options_;
  const Cluster& cluster_;
  const DataPair& data_;
  const Clock& clock_;
  const Stop& stop_;

  ModelSpec model_;
  std::optional<Network> network_, tester_;
  OptimizerSpec optimizer_;
  std::optional<WorkerState> state_;
  std::optional<Order> order_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::unique_ptr<Progress> progress_;
  std::uint64_t steps_total_ = 0, local_step_ = 0, tested_step_ = ~std::uint64_t{0}, saved_step_ = 0;
  TimePoint saved_at_{};
  double accuracy_ = -1;
  std::vector<float> plain_;
  Flat tested_;
};

std::uint64_t Run::steps_per_epoch() const {
  const std::uint64_t batch = options_.batch_size;
  // An asynchronous server counts every worker's step as one.
  return is_async() ? data_.train.count() / batch : data_.train.count() / (batch * cluster_.workers);
}

Result<OptimizerSpec> Run::optimizer_spec() const {
  const GoodDefaults good = good_defaults(model_);
  OptimizerSpec spec;
  const auto kind = parse_optimizer(options_.optimizer.empty() ? good.optimizer : options_.optimizer);
  if (!kind) return fail(kind.error());
  const auto schedule = parse_schedule(options_.schedule.empty() ? good.schedule : options_.schedule);
  if (!schedule) return fail(schedule.error());
  spec.kind = *kind;
  spec.schedule = *schedule;
  double rate = good.learning_rate;
  // Another optimizer than the model's own has another scale.
  if (!options_.optimizer.empty() && options_.optimizer != good.optimizer)
    rate = *kind == OptimizerKind::adam       ? 0.001
           : *kind == OptimizerKind::adagrad  ? 0.01
           : *kind == OptimizerKind::momentum ? 0.02
                                              : 0.1;
  spec.rate = static_cast<float>(options_.learning_rate.value_or(rate));
  spec.steps_total = steps_total_;
  return spec;
}

Result<void> Run::build() {
  auto model = choose_model(options_, data_.train);
  if (!model) return fail(model.error());
  model_ = std::move(*model);
  const std::size_t needed = std::size_t{options_.batch_size} * (is_async() ? 1 : cluster_.workers);
  if (data_.train.count() < needed)
    return fail(
        ErrorCode::invalid,
        fmt::format("{} has {} training samples, and one step of {} workers with batches of {} needs {}",
                    data_.name, data_.train.count(), cluster_.workers, options_.batch_size, needed),
        "use a smaller --batch-size");
  const std::uint64_t epochs =
      options_.epochs.value_or(options_.until_accuracy ? epochs_until_max : epochs_default);
  steps_total_ = options_.steps.value_or(epochs * steps_per_epoch());
  auto spec = optimizer_spec();
  if (!spec) return fail(spec.error());
  optimizer_ = *spec;
  const int threads = static_cast<int>(options_.threads);
  auto network = Network::build(model_, data_.train.classes(),
                                {static_cast<int>(options_.batch_size), true, threads, options_.augment});
  if (!network) return fail(network.error());
  network_.emplace(std::move(*network));
  if (is_chief()) {
    auto tester = Network::build(model_, data_.train.classes(), {100, false, threads, false});
    if (!tester) return fail(tester.error());
    tester_.emplace(std::move(*tester));
    tested_.resize(tester_->floats());
  }
  plain_.resize(network_->plain_floats());
  state_.emplace(WorkerState{Flat(network_->floats()), Optimizer(optimizer_, {0, network_->floats()},
                                                                 statistic_ranges(network_->parameters()))});
  network_->initialise(options_.seed, state_->values);
  order_.emplace(options_.seed, Order::Sizes{data_.train.count(), options_.batch_size, cluster_.workers});
  return {};
}

CheckpointInfo Run::info() const {
  return {.model = format_model(model_),
          .dataset = data_.name,
          .classes = data_.train.classes(),
          .step = state_->step,
          .seed = options_.seed,
          .workers = cluster_.workers,
          .batch = options_.batch_size,
          .optimizer = std::to_string(static_cast<int>(optimizer_.kind)),
          .shard = 0,
          .shards = 1,
          .accuracy = accuracy_};
}

Result<Checkpoint> Run::find_checkpoint(bool& found) const {
  found = true;
  const bool named = options_.resume != "auto";
  if (named && std::filesystem::is_regular_file(options_.resume)) return read_checkpoint(options_.resume);
  const CheckpointFolder folder(named ? options_.resume : options_.checkpoint_dir, 1);
  std::vector<Error> passed_over;
  auto newest = folder.load_newest(passed_over);
  for (const Error& error : passed_over)
    log::warning("checkpoint.passed_over", {{"why", error.what}, {"instead", "the one before it"}});
  if (newest) return std::move(*newest);
  if (named)
    return fail(ErrorCode::not_found, fmt::format("there is no sound checkpoint in {}", options_.resume),
                "--resume takes auto, never, a checkpoint file or a folder of them");
  found = false;
  return Checkpoint{};
}

// Takes up a checkpoint; refuses one of another model, reports what else differs.
Result<void> Run::take(Checkpoint checkpoint) {
  if (checkpoint.info.model != format_model(model_))
    return fail(ErrorCode::conflict,
                fmt::format("the checkpoint of step {} is of another model: {}, not {}", checkpoint.info.step,
                            checkpoint.info.model, format_model(model_)),
                "use another --checkpoint-dir, or --resume never to begin anew");
  if (checkpoint.values.size() != network_->plain_floats())
    return fail(ErrorCode::invalid, fmt::format("the checkpoint has {} values and the model {}",
                                                checkpoint.values.size(), network_->plain_floats()));
  const CheckpointInfo now = info();
  if (checkpoint.info.seed != now.seed || checkpoint.info.batch != now.batch ||
      checkpoint.info.workers != now.workers || checkpoint.info.dataset != now.dataset)
    log::warning("checkpoint.differs",
                 {{"consequence", "training goes on, but not as an undisturbed run would have"},
                  {"workers", fmt::format("{} then, {} now", checkpoint.info.workers, now.workers)},
                  {"batch", fmt::format("{} then, {} now", checkpoint.info.batch, now.batch)}});
  network_->from_plain(checkpoint.values, state_->values);
  const std::size_t blocks = state_->optimizer.state().size() / network_->floats();
  if (checkpoint.info.optimizer == now.optimizer &&
      checkpoint.state.size() == blocks * network_->plain_floats()) {
    for (std::size_t i = 0; i < blocks; ++i)
      network_->from_plain(
          std::span(checkpoint.state).subspan(i * network_->plain_floats(), network_->plain_floats()),
          state_->optimizer.state().subspan(i * network_->floats(), network_->floats()));
  } else if (blocks > 0) {
    log::warning("checkpoint.optimizer_differs", {{"consequence", "its memory starts empty"}});
  }
  state_->step = checkpoint.info.step;
  return {};
}

Result<void> Run::resume() {
  const bool servers = cluster_.kind == Cluster::Kind::servers;
  if (!options_.checkpoint_dir.empty() && is_chief() && !servers)
    writer_ = std::make_unique<CheckpointWriter>(
        CheckpointFolder(options_.checkpoint_dir, static_cast<int>(options_.keep_checkpoints)));
  if (options_.resume == "never" ||
      (options_.resume == "auto" && (options_.checkpoint_dir.empty() || servers)))
    return {};
  bool found = false;
  auto checkpoint = find_checkpoint(found);
  if (!checkpoint) return fail(checkpoint.error());
  return found ? take(std::move(*checkpoint)) : Result<void>{};
}

Result<void> Run::connect() {
  const WaitLimit wait_limit{options_.peer_timeout, &stop_};
  if (cluster_.kind == Cluster::Kind::alone) {
    exchange_ = make_alone(network_->floats(), options_.batch_size);
  } else if (cluster_.kind == Cluster::Kind::all_reduce) {
    auto made =
        make_all_reduce_exchange({cluster_.index, cluster_.workers, cluster_.master, options_.batch_size,
                                  network_->layout_fingerprint(), network_->floats(), wait_limit,
                                  options_.shared_memory, "", cluster_.key});
    if (!made) return fail(made.error());
    exchange_ = std::move(*made);
  } else {
    Plan plan;
    plan.model = format_model(model_);
    plan.dataset = data_.name;
    plan.seed = options_.seed;
    plan.layout = network_->layout_fingerprint();
    plan.floats = network_->floats();
    plan.workers = cluster_.workers;
    plan.servers = static_cast<std::uint32_t>(cluster_.servers.size());
    plan.batch = options_.batch_size;
    plan.mode = options_.mode;
    plan.staleness = options_.staleness;
    plan.backups = options_.backup_workers;
    plan.lost = options_.on_lost_worker;
    plan.optimizer = optimizer_;
    plan.statistics = statistic_ranges(network_->parameters());
    if (plan.backups >= plan.workers)
      return fail(ErrorCode::invalid,
                  fmt::format("--backup-workers {} leaves none of {} workers", plan.backups, plan.workers));
    exchange_ = make_servers_exchange(
        {std::move(plan), cluster_.index, cluster_.servers, options_.compress, wait_limit, cluster_.key});
  }
  return exchange_->join(*state_);
}

bool Run::checkpoint_due() {
  if (!is_chief() || options_.checkpoint_dir.empty()) return false;
  if (options_.checkpoint_every_steps > 0) return (state_->step + 1) % options_.checkpoint_every_steps == 0;
  if (state_->step % 16 != 0 || clock_.now() - saved_at_ < options_.checkpoint_every) return false;
  saved_at_ = clock_.now();
  return true;
}

void Run::start_checkpoint() {
  if (const auto error = writer_->take_error())
    log::warning("checkpoint.failed", {{"why", error->what}, {"try", error->hint}});
  const bool started = writer_->start(info(), [this](std::vector<float>& values, std::vector<float>& state) {
    values.resize(network_->plain_floats());
    network_->to_plain(state_->values, values);
    const std::size_t blocks = state_->optimizer.state().size() / network_->floats();
    state.resize(blocks * network_->plain_floats());
    for (std::size_t i = 0; i < blocks; ++i)
      network_->to_plain(state_->optimizer.state().subspan(i * network_->floats(), network_->floats()),
                         std::span(state).subspan(i * network_->plain_floats(), network_->plain_floats()));
  });
  if (started) saved_step_ = state_->step;
}

Result<StepOutcome> Run::one_step(bool checkpoint, bool finish) {
  StepReport report;
  report.checkpoint = checkpoint && exchange_->servers_keep_state();
  report.tail.stop = stop_.requested() ? 1.0F : 0.0F;
  report.tail.finish = finish ? 1.0F : 0.0F;
  if (report.tail.stop > 0 && is_chief()) report.checkpoint = exchange_->servers_keep_state();
  std::span<float> gradients = exchange_->gradients(state_->step);
  const std::uint64_t at = is_async() ? local_step_ : state_->step;
  if (finish) {
    std::fill(gradients.begin(), gradients.end(), 0.0F);
  } else {
    const BatchResult result =
        network_->train(data_.train, order_->at(at, cluster_.index), mix(options_.seed, at, cluster_.index),
                        state_->values, gradients);
    report.tail.loss = static_cast<float>(result.loss);
    report.tail.correct = static_cast<float>(result.correct);
    report.tail.samples = static_cast<float>(options_.batch_size);
    report.meanwhile = [&] { network_->prepare(data_.train, order_->at(at + 1, cluster_.index)); };
  }
  if (writer_) writer_->wait_copied();
  auto outcome = exchange_->step(*state_, report);
  if (outcome) ++local_step_;
  return outcome;
}

Evaluation Run::test() {
  network_->to_plain(state_->values, plain_);
  tester_->from_plain(plain_, tested_);
  const Evaluation result = evaluate(*tester_, data_.test, tested_);
  accuracy_ = result.accuracy;
  tested_step_ = state_->step;
  return result;
}

Result<void> Run::at_epoch_end(bool& finish) {
  progress_->pause();
  const Evaluation result = test();
  progress_->evaluated(state_->step, result.accuracy, result.loss);
  progress_->histograms(state_->step, network_->parameters(), plain_);
  finish = options_.until_accuracy && result.accuracy >= *options_.until_accuracy;
  progress_->go_on();
  return {};
}

Result<RunReport> Run::not_finite() {
  RunReport report;
  report.step = state_->step;
  std::string kept = "--checkpoint-dir keeps what was good";
  if (saves_here()) {
    if (auto done = writer_->finish(); !done) log::warning("checkpoint.failed", {{"why", done.error().what}});
    kept = writer_->saved_step() > 0 ? fmt::format("the checkpoint of step {} is good", writer_->saved_step())
                                     : "no checkpoint was due yet";
  }
  exchange_->leave(true);
  return fail(ErrorCode::invalid,
              fmt::format("the loss at step {} is not a number (learning rate {})", state_->step,
                          rate_at(optimizer_, state_->step)),
              fmt::format("lower --learning-rate; {}", kept));
}

Result<RunReport> Run::loop() {
  progress_->go_on();
  saved_at_ = clock_.now();
  local_step_ = is_async() ? state_->step / cluster_.workers : state_->step;
  std::uint64_t epoch = state_->step / steps_per_epoch();
  bool finish = false;
  while (state_->step < steps_total_) {
    const bool due = checkpoint_due();
    const std::uint64_t before = state_->step;
    auto outcome = one_step(due, finish);
    if (!outcome && outcome.error().code == ErrorCode::unavailable && !stop_.requested()) {
      log::info("worker.joins_again", {{"step", state_->step}, {"why", outcome.error().what}});
      if (auto joined = exchange_->join(*state_); !joined) {
        if (!stop_.requested()) return fail(joined.error());
        return end(Ending::preempted, {});
      }
      epoch = std::min(epoch, state_->step / steps_per_epoch());
      continue;
    }
    if (!outcome && stop_.requested() && outcome.error().code == ErrorCode::unavailable)
      return end(Ending::preempted, {});
    if (!outcome) return fail(outcome.error());
    if (outcome->not_finite) return not_finite();
    if (outcome->tail.samples > 0 && is_chief() && !finish)
      progress_->step(state_->step, static_cast<double>(outcome->tail.loss),
                      static_cast<double>(outcome->tail.correct), static_cast<double>(outcome->tail.samples));
    if (outcome->finish) break;
    if (due && saves_here() && state_->step != before) start_checkpoint();
    if (outcome->stop) return end(Ending::preempted, {});
    if (const std::uint64_t now = state_->step / steps_per_epoch(); now > epoch && is_chief()) {
      epoch = now;
      if (auto done = at_epoch_end(finish); !done) return fail(done.error());
    }
  }
  return end(Ending::finished, {});
}

Result<RunReport> Run::end(Ending ending, RunReport report) {
  progress_->pause();
  report.ending = ending;
  report.step = state_->step;
  report.seconds = progress_->seconds();
  report.samples_per_second = progress_->samples_per_second();
  exchange_->leave(ending == Ending::finished);
  if (saves_here()) {
    if (auto before = writer_->finish(); !before)
      log::warning("checkpoint.failed", {{"why", before.error().what}});
    if (writer_->saved_step() != state_->step) start_checkpoint();
    if (auto saved = writer_->finish(); !saved) return fail(saved.error());
    report.checkpoint_step = writer_->saved_step();
  }
  if (!is_chief() || ending == Ending::preempted) return report;
  if (tested_step_ != state_->step) {
    const Evaluation result = test();
    progress_->evaluated(state_->step, result.accuracy, result.loss);
  }
  report.accuracy = accuracy_;
  if (!options_.output.empty()) {
    network_->to_plain(state_->values, plain_);
    CheckpointInfo stored = info();
    stored.optimizer.clear();
    if (auto saved = make_folders(options_.output).and_then([&] {
          return write_checkpoint(options_.output + "/model.slipway", stored, plain_, {});
        });
        !saved)
      return fail(saved.error());
  }
  return report;
}

std::map<std::string, HyperValue> Run::parameters_of_run() const {
  const char* optimizers[] = {"sgd", "momentum", "adam", "adagrad"};
  const char* schedules[] = {"constant", "cosine", "step"};
  return {{"model", model_.name},
          {"dataset", data_.name},
          {"learning_rate", static_cast<double>(optimizer_.rate)},
          {"optimizer", std::string(optimizers[static_cast<int>(optimizer_.kind)])},
          {"schedule", std::string(schedules[static_cast<int>(optimizer_.schedule)])},
          {"batch_size", static_cast<double>(options_.batch_size)},
          {"workers", static_cast<double>(cluster_.workers)},
          {"seed", static_cast<double>(options_.seed)},
          {"steps", static_cast<double>(steps_total_)}};
}

Result<RunReport> Run::go(std::FILE* out) {
  if (auto built = build(); !built) return fail(built.error());
  if (auto resumed = resume(); !resumed) return fail(resumed.error());
  const std::uint64_t resumed_at = state_->step;
  if (auto connected = connect(); !connected) {
    if (stop_.requested() && connected.error().code == ErrorCode::unavailable)
      return RunReport{.ending = Ending::preempted, .step = resumed_at};
    return fail(connected.error());
  }
  const bool chief = is_chief();
  auto progress = Progress::open(
      {.json = options_.json && chief,
       .terminal = chief && !options_.json && ::isatty(::fileno(out)) == 1,
       .output = chief ? options_.output : "",
       .log_dir = chief ? options_.log_dir : "",
       .steps_total = options_.until_accuracy && !options_.epochs && !options_.steps ? 0 : steps_total_,
       .steps_per_epoch = steps_per_epoch(),
       .first_step = state_->step},
      clock_, out);
  if (!progress) return fail(progress.error());
  progress_ = std::move(*progress);
  if (chief) {
    progress_->report_event(
        "data",
        fmt::format("data: {} ({}), {} training and {} test samples of {}", data_.name, data_.where,
                    data_.train.count(), data_.test.count(), to_string(data_.train.shape())),
        {{"dataset", data_.name}, {"where", data_.where}});
    progress_->report_event(
        "model",
        fmt::format("model: {}, {} parameters; {} worker{}", model_.name, network_->plain_floats(),
                    cluster_.workers, cluster_.workers == 1 ? "" : "s"),
        {{"model", model_.name}, {"parameters", static_cast<double>(network_->plain_floats())}});
    if (state_->step > 0)
      progress_->report_event("resumed", fmt::format("resuming from step {}", state_->step),
                              {{"step", static_cast<double>(state_->step)}});
    progress_->hyperparameters(parameters_of_run());
  } else {
    log::info("worker.joined", {{"worker", cluster_.index}, {"step", state_->step}});
  }
  auto report = loop();
  if (!report || !chief) return report;
  const auto count = [](std::uint64_t n) { return static_cast<double>(n); };
  if (report->ending == Ending::preempted)
    progress_->report_event(
        "preempted",
        fmt::format(
            "preempted at step {}; {}", report->step,
            exchange_->servers_keep_state() ? "the parameter servers keep the state"
            : report->checkpoint_step > 0
                ? fmt::format("checkpoint of step {} saved, run again to go on", report->checkpoint_step)
                : "nothing was kept (--checkpoint-dir would)"),
        {{"step", count(report->step)}, {"checkpoint_step", count(report->checkpoint_step)}});
  else
    progress_->report_event(
        "done",
        fmt::format("done: {} steps, {:.2f} s of training, {:.0f} samples/s, test accuracy {:.2f} %{}",
                    report->step, report->seconds, report->samples_per_second, report->accuracy * 100,
                    options_.output.empty() ? "" : "; model in " + options_.output + "/model.slipway"),
        {{"step", count(report->step)},
         {"seconds", report->seconds},
         {"test_accuracy", report->accuracy},
         {"samples_per_s", report->samples_per_second}});
  return report;
}

}  // namespace

Result<RunReport> train(const Options& options, const Cluster& cluster, const DataPair& data,
                        const Clock& clock, const Stop& stop, std::FILE* out) {
  return Run(options, cluster, data, clock, stop).go(out);
}

}  // namespace slipway::train
