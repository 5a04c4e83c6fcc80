#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "cli/client/log_stream.h"
#include "cli/client/retry.h"
#include "cli/commands/commands.h"
#include "cli/commands/submit.h"
#include "cli/output/interrupt.h"

namespace slipway::cli {
namespace {

struct RunOptions {
  std::string pool;
  std::optional<std::uint32_t> nodes;
  std::optional<double> cores;
  std::optional<Bytes> memory;
  std::optional<std::uint32_t> gpus;
  std::optional<std::uint32_t> retries;
  std::vector<std::string> environment;
  std::string name;
  std::string source;
  std::string workdir;
  bool detach = false;
  bool input = false;
  std::vector<std::string> command;
};

// What was piped in, in a file for as long as the command runs: every attempt and process reads it from the
// beginning.
class SpooledInput {
 public:
  static Outcome<std::unique_ptr<SpooledInput>> read() {
    if (is_terminal(STDIN_FILENO))
      return misuse("-i sends what is piped in, and standard input is a terminal",
                    "slipway run -i -- wc -l < data.csv");
    std::error_code error;
    std::string path = std::filesystem::temp_directory_path(error).string() + "/slipway-stdin-XXXXXX";
    Fd file(::mkostemp(path.data(), O_CLOEXEC));
    if (!file)
      return give_up(to_failure(system_error("cannot make a file for standard input: " + path, errno)));
    auto input = std::make_unique<SpooledInput>(path);
    std::array<char, 64 << 10> buffer;
    for (;;) {
      const ssize_t size = ::read(STDIN_FILENO, buffer.data(), buffer.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return give_up(to_failure(system_error("cannot read standard input", errno)));
      if (size == 0) return input;
      if (auto written = write_all(file.get(), {buffer.data(), static_cast<std::size_t>(size)}, path);
          !written)
        return give_up(written);
    }
  }
  explicit SpooledInput(std::string path) : path_(std::move(path)) {}
  SpooledInput(const SpooledInput&) = delete;
  SpooledInput& operator=(const SpooledInput&) = delete;
  ~SpooledInput() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr const char* input_in_source = ".slipway-stdin";  // where code is sent along

// The command's file name with what names may not have replaced: ./my train.sh → my-train.sh.
std::string name_from(const std::string& program) {
  std::string name = std::filesystem::path(program).filename().string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '-';
  const auto first = std::find_if(name.begin(), name.end(),
                                  [](char c) { return std::isalnum(static_cast<unsigned char>(c)); });
  name.erase(name.begin(), first);
  name.resize(std::min(name.size(), JobLimits::name_length_max));
  return name.empty() ? "run" : name;
}

bool is_this_host(const Value& node) {
  char name[HOST_NAME_MAX + 1] = {};
  const std::string host = node.text_at("host");
  return host.empty() || (::gethostname(name, sizeof name - 1) == 0 && host == name);
}

// Whether every node of a pool is on this machine, so that our current folder is theirs too. A pool without
// nodes yet depends on who will bring them up.
Outcome<bool> is_all_here(Service& service, const Value& pool) {
  bool any = false, all_here = true;
  const std::string target = with_query(resource({"nodes"}), {{"pool", pool.text_at("name")}});
  const Outcome<void> listed = service.pages(target, [&](const std::vector<Value>& nodes) {
    for (const Value& node : nodes) {
      if (node.text_at("state") == "gone") continue;
      any = true;
      all_here = all_here && node.is_true_at("local") && is_this_host(node);
    }
    return all_here;
  });
  if (!listed) return give_up(listed);
  return any ? all_here : pool.text_at("provisioner") == "local" && is_on_loopback(service.url());
}

Outcome<bool> runs_here(Service& service, const std::string& name) {
  if (!name.empty()) {
    const Outcome<Value> pool = service.get(resource({"pools", name}));
    if (!pool) return give_up(pool);
    return is_all_here(service, *pool);
  }
  std::vector<Value> pools;
  const Outcome<void> listed = service.pages(resource({"pools"}), [&](const std::vector<Value>& items) {
    pools.insert(pools.end(), items.begin(), items.end());
    return true;
  });
  if (!listed) return give_up(listed);
  if (pools.empty()) return is_on_loopback(service.url());  // the service makes pool local for it
  const auto chosen =
      std::find_if(pools.begin(), pools.end(), [](const Value& pool) { return pool.is_true_at("default"); });
  return is_all_here(service, chosen == pools.end() ? pools.front() : *chosen);
}

Outcome<std::string> choose_workdir(Context& context, const RunOptions& options) {
  if (!options.workdir.empty() || !options.source.empty()) return options.workdir;
  const Outcome<bool> here = runs_here(context.service(), options.pool);
  if (!here) return give_up(here);
  if (!*here)
    return give_up({ExitCode::usage, "slipway run does not know in which folder to run",
                    "the pool has nodes on other machines, where your current folder may not exist",
                    "--source . sends the folder along; --workdir DIR names one that the nodes have"});
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  if (error) return refuse("the current folder cannot be used", error.message(), "cd to one that exists");
  return folder;
}

Outcome<JobSpec> make_spec(Context& context, const RunOptions& options) {
  Outcome<Environment> environment = parse_environment(options.environment);
  if (!environment) return give_up(environment);
  Outcome<std::string> workdir = choose_workdir(context, options);
  if (!workdir) return give_up(workdir);
  TaskSpec task;
  task.name = name_from(options.command.front());
  task.command = options.command;
  task.nodes = options.nodes.value_or(1);
  task.retries = options.retries.value_or(0);
  if (options.cores) task.resources.cores = static_cast<Millicores>(std::lround(*options.cores * 1000));
  if (options.memory) task.resources.memory = *options.memory;
  if (options.gpus) task.resources.gpus = *options.gpus;
  task.workdir = std::move(*workdir);
  JobSpec spec;
  spec.name = options.name.empty() ? task.name : options.name;
  spec.pool = options.pool;
  spec.environment = std::move(*environment);
  spec.tasks.push_back(std::move(task));
  if (auto valid = validate(spec); !valid) {
    Failure failure = to_failure(valid.error());
    failure.exit_code = ExitCode::usage;
    return give_up(std::move(failure));
  }
  return spec;
}

int exit_code_of(const Value& task) {
  if (const std::optional<double> code = task.number_at("exit_code")) return static_cast<int>(*code);
  if (const std::optional<double> signal = task.number_at("signal"))
    return ExitCode::signalled + static_cast<int>(*signal);
  return task.text_at("state") == "succeeded" ? ExitCode::done : ExitCode::refused;
}

Outcome<Value> wait_quietly(Service& service, const LogSource& source) {
  const std::string wait = with_query(resource({"jobs", source.job, "wait"}), {{"timeout", "60"}});
  for (;;) {
    const Outcome<Value> job = with_retry([&] { return service.get(wait); });
    if (!job) return job;
    if (has_ended(*job)) return service.get(resource({"jobs", source.job, "tasks", source.task}));
  }
}

// The command reads the file; where code is sent along the file goes with it, else the nodes have to be here.
Outcome<void> connect_input(Context& context, const RunOptions& options, const SpooledInput& input,
                            TaskSpec& task, std::vector<std::pair<std::string, std::string>>& files) {
  std::string file = input.path();
  if (!options.source.empty()) {
    file = std::string("./") + input_in_source;
    files.emplace_back(input_in_source, input.path());
  } else {
    const Outcome<bool> here = runs_here(context.service(), options.pool);
    if (!here) return give_up(here);
    if (!*here)
      return misuse("-i needs --source where the pool has nodes on other machines",
                    "slipway run -i --source . -- wc -l < data.csv");
  }
  std::vector<std::string> words{"/bin/sh", "-c", "exec \"$@\" < \"$0\"", std::move(file)};
  words.insert(words.end(), options.command.begin(), options.command.end());
  task.command = std::move(words);
  return {};
}

Outcome<int> run_command(Context& context, const RunOptions& options) {
  if (options.input && options.detach)
    return misuse(
        "-i and --detach exclude each other: what was piped in is kept while the command is waited for",
        "leave out one of them");
  Outcome<JobSpec> spec = make_spec(context, options);
  if (!spec) return give_up(spec);
  const std::string task_name = spec->tasks.front().name;
  std::vector<std::pair<std::string, std::string>> files;
  std::unique_ptr<SpooledInput> input;
  if (options.input) {
    auto read = SpooledInput::read();
    if (!read) return give_up(read);
    input = std::move(*read);
    if (auto connected = connect_input(context, options, *input, spec->tasks.front(), files); !connected)
      return give_up(connected);
  }
  const Outcome<Value> job = submit(context, std::move(*spec), options.source, files);
  if (!job) return give_up(job);
  const std::string id = job->text_at("id");
  if (options.detach) return print(context, *job, id, id + "\n");
  const InterruptMessage interrupt(how_to_resume(id));

  LogSource source;
  source.job = id;
  source.task = task_name;
  SharedOutput out(STDOUT_FILENO), err(STDERR_FILENO);
  const auto say = [&context](const std::string& text) { context.say(text); };
  // JSON and the processes' own output on one stdout could not be separated.
  const Outcome<Value> task =
      context.is_json() ? wait_quietly(context.service(), source)
                        : follow_logs(context.service(), source, {{"stdout", &out}, {"stderr", &err}}, say);
  if (!task) return give_up(task);
  if (context.is_json()) {
    const Outcome<Value> ended = context.service().get(resource({"jobs", id}));
    if (!ended) return give_up(ended);
    write_out(wire::format_json_indented(*ended) + "\n");
  } else if (task->text_at("state") != "succeeded") {
    const std::string reason = task->text_at("reason");
    context.say(
        fmt::format("{} {}{}", id, task->text_at("state"), reason.empty() ? "" : ": " + printable(reason)));
  }
  return exit_code_of(*task);
}

}  // namespace

void add_run(CommandTree& tree, Context& context) {
  auto options = std::make_shared<RunOptions>();
  tree.add("run", "Run a command on a pool, show its output, and exit as it does",
           "slipway run --nodes 2 -e GREETING=hello -- python3 train.py --epochs 3")
      .rest("-- CMD ARG...", options->command, "the command and its arguments")
      .text("--pool POOL", options->pool, "where to run (default: the default pool)")
      .number("--nodes N", options->nodes, "how many nodes, each with one process (default 1)")
      .decimal("--cores N", options->cores, "cores for each process (default 1)")
      .size("--memory SIZE", options->memory, "memory for each process (default: no limit)")
      .number("--gpus N", options->gpus, "GPUs for each process (default: none)")
      .number("--retries N", options->retries, "how often to try again when it fails (default 0)")
      .texts("-e,--env,--environment NAME=VALUE", options->environment,
             "a variable for the processes (repeatable)")
      .text("--name NAME", options->name, "the job's name (default: the command's)")
      .text("--source DIR", options->source, "send this folder along and run in a fresh copy of it")
      .text("--workdir DIR", options->workdir, "run in this folder of the nodes")
      .flag("-i,--stdin", options->input,
            "read standard input to its end first; each process gets it as its own")
      .flag("-d,--detach", options->detach, "print the job's id and return while it runs")
      .runs([&context, options] { return run_command(context, *options); });
}

}  // namespace slipway::cli
