#include "train/run/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/quantity.h"
#include "base/suggest.h"

namespace slipway::train {
namespace {

using Setter = std::function<Result<void>(Options&, const std::string&)>;

struct Option {
  const char* name;
  const char* value;  // shown in help; null for a switch
  const char* help;
  Setter set;
};

tl::unexpected<Error> wrong(const std::string& value, const std::string& want) {
  return fail(ErrorCode::invalid, fmt::format("{} is not {}", value.empty() ? "nothing" : value, want));
}

template <class T>
Result<T> number(const std::string& text, const std::string& want, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() ||
      !(value >= least && value <= most))
    return wrong(text, want);
  return value;
}

template <class T, class Field>
Setter into(Field Options::*field, T least, T most, const char* want) {
  return [=](Options& options, const std::string& text) -> Result<void> {
    const auto value = number<T>(text, want, least, most);
    if (!value) return fail(value.error());
    options.*field = *value;
    return {};
  };
}

Setter into(std::string Options::*field) {
  return [=](Options& options, const std::string& text) -> Result<void> {
    if (text.empty()) return wrong(text, "a value");
    options.*field = text;
    return {};
  };
}

template <class T>
Setter one_of(T Options::*field, std::vector<std::pair<std::string, T>> words) {
  return [=](Options& options, const std::string& text) -> Result<void> {
    std::vector<std::string> known;
    for (const auto& [word, value] : words) {
      if (word == text) return options.*field = value, Result<void>{};
      known.push_back(word);
    }
    std::string all;
    for (const std::string& word : known) all += (all.empty() ? "" : ", ") + word;
    return wrong(text, "one of " + all);
  };
}

template <class T>
Setter fixed(T Options::*field, T value) {
  return [=](Options& options, const std::string&) { return options.*field = value, Result<void>{}; };
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

Result<void> set_hidden(Options& options, const std::string& text) {
  options.hidden.clear();
  for (const std::string& part : split(text)) {
    const auto units = number<int>(part, "a number of units from 1 to 16384", 1, 16384);
    if (!units) return fail(units.error());
    options.hidden.push_back(*units);
  }
  return options.hidden.empty() ? Result<void>(wrong(text, "a list like 300,100")) : Result<void>{};
}

Setter hidden_layer(std::size_t index) {
  return [=](Options& options, const std::string& text) -> Result<void> {
    const auto units = number<int>(text, "a number of units from 1 to 16384", 1, 16384);
    if (!units) return fail(units.error());
    if (options.hidden.size() <= index) options.hidden.resize(index + 1, index == 0 ? *units : 300);
    options.hidden[index] = *units;
    return {};
  };
}

Result<void> set_until(Options& options, const std::string& text) {
  if (!text.starts_with("accuracy=")) return wrong(text, "a goal like accuracy=0.975");
  const auto goal = number<double>(text.substr(9), "an accuracy from 0 to 1", 0, 1);
  if (!goal) return fail(goal.error());
  options.until_accuracy = *goal;
  return {};
}

Result<void> set_checkpoint_every(Options& options, const std::string& text) {
  const std::size_t word = text.find("step");
  if (word != std::string::npos && (text.substr(word) == "steps" || text.substr(word) == "step")) {
    const auto steps =
        number<std::uint64_t>(text.substr(0, word), "a number of steps", 1, ~std::uint64_t{0} / 2);
    if (!steps) return fail(steps.error());
    options.checkpoint_every_steps = *steps;
    return {};
  }
  const auto every = parse_duration(text);
  if (!every || every->count() <= 0) return wrong(text, "a time like 5s or a count like 100steps");
  options.checkpoint_every_steps = 0;
  options.checkpoint_every = *every;
  return {};
}

Result<void> set_staleness(Options& options, const std::string& text) {
  const auto bound = number<std::uint32_t>(text, "a number of steps", 0, 1U << 20);
  if (!bound) return fail(bound.error());
  options.mode = Mode::stale;
  options.staleness = *bound;
  return {};
}

Setter set_hosts(std::vector<std::string> Options::*field) {
  return [=](Options& options, const std::string& text) -> Result<void> {
    options.*field = split(text);
    return (options.*field).empty() ? Result<void>(wrong(text, "a list like host1:7000,host2:7000"))
                                    : Result<void>{};
  };
}

Result<void> set_timeout(Options& options, const std::string& text) {
  const auto timeout = parse_duration(text);
  if (!timeout || timeout->count() <= 0) return wrong(text, "a time like 60s");
  options.peer_timeout = *timeout;
  return {};
}

Result<void> set_compress(Options& options, const std::string& text) {
  auto compression = parse_compression(text);
  if (!compression) return fail(compression.error());
  options.compress = *compression;
  return {};
}

const std::vector<Option>& table() {
  using O = Options;
  constexpr std::uint64_t many = 1ULL << 50;
  static const std::vector<Option> options = {
      {"model", "NAME|FILE", "mlp, mlp2, replica, lenet, cnn, vgg, or a .yaml file of layers",
       into(&O::model)},
      {"data", "DIR|synthetic",
       "where the data lies; absent: $SLIPWAY_DATA, Debian's packages, else drawn digits", into(&O::data)},
      {"dataset", "NAME", "mnist, fashion-mnist or cifar10", into(&O::dataset)},
      {"epochs", "N", "times through the training set (default 10)",
       into<std::uint64_t>(&O::epochs, 1, many, "a number of epochs")},
      {"steps", "N", "steps instead of epochs", into<std::uint64_t>(&O::steps, 1, many, "a number of steps")},
      {"until", "accuracy=X", "stop as soon as the test accuracy is reached", set_until},
      {"batch-size", "N", "samples per worker and step (default 100)",
       into<std::uint32_t>(&O::batch_size, 1, 65'536, "a batch size from 1 to 65536")},
      {"learning-rate", "R", "default: what suits the model",
       into<double>(&O::learning_rate, 0, 1e6, "a learning rate from 0 up")},
      {"optimizer", "NAME", "sgd, momentum, adam, adagrad", into(&O::optimizer)},
      {"schedule", "NAME", "constant, cosine, step", into(&O::schedule)},
      {"dropout", "P", "share dropped after hidden dense layers",
       into<double>(&O::dropout, 0, 0.99, "a share from 0 to 0.99")},
      {"seed", "N", "same seed, same run (default 1)",
       into<std::uint64_t>(&O::seed, 0, ~std::uint64_t{0}, "a whole number")},
      {"hidden", "N,N", "units of the hidden layers", set_hidden},
      {"first-layer-neurons", "N", "the same, one by one", hidden_layer(0)},
      {"second-layer-neurons", "N", "", hidden_layer(1)},
      {"augment", nullptr, "flip and shift colour pictures at random", fixed(&O::augment, true)},
      {"distribute", "HOW", "none, ps, allreduce (default: what the environment describes)",
       one_of<Distribute>(
           &O::distribute,
           {{"none", Distribute::none}, {"ps", Distribute::servers}, {"allreduce", Distribute::all_reduce}})},
      {"sync", nullptr, "parameter servers add up all workers' gradients (default)",
       fixed(&O::mode, Mode::sync)},
      {"async", nullptr, "parameter servers apply gradients as they come", fixed(&O::mode, Mode::async)},
      {"staleness", "K", "async, but nobody gets more than K steps ahead", set_staleness},
      {"backup-workers", "K", "a synchronous step is done without the K slowest",
       into<std::uint32_t>(&O::backup_workers, 0, 65'535, "a number of workers")},
      {"on-lost-worker", "HOW", "wait for it (default) or drop it and go on",
       one_of<LostWorker>(&O::on_lost_worker, {{"wait", LostWorker::wait}, {"drop", LostWorker::drop}})},
      {"compress", "HOW", "gradients to servers: none, fp16, topk=0.01", set_compress},
      {"ps", "N", "how many ranks serve where only ranks are known (default 1)",
       into<std::uint32_t>(&O::servers, 1, 1024, "a number of servers")},
      {"ps-hosts", "H:P,…", "parameter servers", set_hosts(&O::ps_hosts)},
      {"worker-hosts", "H:P,…", "workers", set_hosts(&O::worker_hosts)},
      {"job-name", "ROLE", "ps or worker", into(&O::job_name)},
      {"task-index", "N", "which of them this is",
       into<std::uint32_t>(&O::task_index, 0, 65'535, "a task index")},
      {"port", "N", "first port where the environment names none",
       into<std::uint16_t>(&O::port, 1, 65'535, "a port")},
      {"peer-timeout", "T", "how long to wait for another process (default 60s)", set_timeout},
      {"no-shared-memory", nullptr, "all-reduce over TCP even within a machine",
       fixed(&O::shared_memory, false)},
      {"checkpoint-dir", "DIR", "keep checkpoints there and go on from them", into(&O::checkpoint_dir)},
      {"checkpoint-every", "T|Nsteps", "how often (default 5s)", set_checkpoint_every},
      {"keep-checkpoints", "K", "how many stay (default 3)",
       into<std::uint32_t>(&O::keep_checkpoints, 1, 1000, "a number from 1 to 1000")},
      {"resume", "HOW", "auto, never, or a checkpoint", into(&O::resume)},
      {"output", "DIR", "the model and metrics.jsonl; for export the file", into(&O::output)},
      {"log-dir", "DIR", "TensorBoard event files", into(&O::log_dir)},
      {"format", "NAME", "export: onnx, npz or slipway (default: by the file's name)", into(&O::format)},
      {"threads", "N", "of a lone worker (default 1; more processes beat more threads)",
       into<std::uint32_t>(&O::threads, 1, 1024, "a number of threads")},
      {"metrics", "HOW", "text or json", one_of<bool>(&O::json, {{"text", false}, {"json", true}})},
  };
  return options;
}

const Option* find(const std::string& name) {
  for (const Option& option : table())
    if (option.name == name) return &option;
  return nullptr;
}

Result<void> check(const Options& options) {
  const auto refuse = [](const char* what, const char* hint) { return fail(ErrorCode::invalid, what, hint); };
  if (options.epochs && options.steps)
    return refuse("both --epochs and --steps were given", "one of them sets how long to train");
  if (options.backup_workers > 0 && options.mode != Mode::sync)
    return refuse("--backup-workers needs --sync", "an asynchronous run never waits for the slowest anyway");
  if (options.distribute == Distribute::all_reduce && options.mode != Mode::sync)
    return refuse("all-reduce is synchronous", "--async and --staleness go with --distribute ps");
  if (options.distribute == Distribute::all_reduce && options.compress.kind != Compression::Kind::none)
    return refuse("--compress works between workers and parameter servers",
                  "use --distribute ps, or --compress none");
  return {};
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& arguments, const Environment& environment) {
  Options options;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "-h" || argument == "--help") return options.command = Command::help, options;
    if (argument == "--version") return options.command = Command::version, options;
    if (!argument.starts_with("--")) {
      words.push_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    std::string name = argument.substr(2, equals == std::string::npos ? std::string::npos : equals - 2);
    std::replace(name.begin(), name.end(), '_', '-');
    const Option* option = find(name);
    if (option == nullptr) {
      std::vector<std::string> names;
      for (const Option& known : table()) names.emplace_back(known.name);
      const std::string near = nearest(name, names);
      return fail(ErrorCode::invalid, "there is no option --" + name,
                  near.empty() ? "slipway-train --help lists them" : "did you mean --" + near + "?");
    }
    std::string value;
    if (option->value != nullptr && equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (option->value != nullptr) {
      if (i + 1 == arguments.size())
        return fail(ErrorCode::invalid, fmt::format("--{} needs a value", name),
                    fmt::format("--{} {}", name, option->value));
      value = arguments[++i];
    }
    if (auto set = option->set(options, value); !set)
      return fail(ErrorCode::invalid, fmt::format("--{}: {}", name, set.error().what),
                  set.error().hint.empty() ? option->help : set.error().hint);
  }
  if (!words.empty()) {
    const std::vector<std::pair<std::string, Command>> commands = {
        {"train", Command::train},         {"evaluate", Command::evaluate}, {"predict", Command::predict},
        {"export", Command::export_model}, {"inspect", Command::inspect},   {"help", Command::help}};
    const auto found =
        std::find_if(commands.begin(), commands.end(), [&](const auto& c) { return c.first == words[0]; });
    if (found == commands.end())
      return fail(ErrorCode::invalid, "there is no command " + words[0],
                  "known are train, evaluate, predict, export, inspect");
    options.command = found->second;
    const bool takes_file = options.command != Command::train && options.command != Command::help;
    if (words.size() > (takes_file ? 2U : 1U))
      return fail(ErrorCode::invalid, words.back() + " is one word too many");
    if (takes_file && words.size() < 2)
      return fail(ErrorCode::invalid, words[0] + " needs a model",
                  fmt::format("slipway-train {} output/model.slipway", words[0]));
    if (takes_file) options.model = words[1];
  }
  const auto from_environment = [&](std::string& to, const char* name) {
    const auto found = environment.find(name);
    if (to.empty() && found != environment.end()) to = found->second;
  };
  if (options.command == Command::train) {
    from_environment(options.checkpoint_dir, "SLIPWAY_CHECKPOINT_DIR");
    from_environment(options.output, "SLIPWAY_OUTPUTS");
  }
  if (auto sound = check(options); !sound) return fail(sound.error());
  return options;
}

std::string help_text() {
  std::string text =
      "slipway-train: trains networks on one machine or many\n\n"
      "  slipway-train --model mlp --epochs 10 --output out\n"
      "  slipway-train evaluate out/model.slipway\n"
      "  slipway-train predict out/model.slipway --data samples.f32     (32-bit floats, one sample after "
      "another)\n"
      "  slipway-train export out/model.slipway --output model.onnx\n"
      "  slipway-train inspect out/model.slipway\n\n"
      "Where TF_CONFIG, --ps-hosts and --worker-hosts, RANK and WORLD_SIZE, or SLIPWAY_RANK say that this "
      "process is\n"
      "one of several, it trains with the others.\n\n";
  for (const Option& option : table())
    text += fmt::format("  {:<28} {}\n",
                        fmt::format("--{} {}", option.name, option.value == nullptr ? "" : option.value),
                        option.help);
  return text;
}

}  // namespace slipway::train
