// The trainer as users run it: several processes, killed and started again in the middle of a run. A
// synchronous run must end with the same bits as one that nobody disturbed.
#include <optional>
#include <random>

#include "processes.h"
#include "train/exchange/socket.h"
#include "train/state/checkpoint.h"

namespace slipway::train {
namespace {

const std::string program = SLIPWAY_TRAIN_PROGRAM;

// Below the range from which the kernel takes the ports of outgoing connections and of listeners that do
// not care: other programs of this machine, and other tests, would take one of those in the meantime.
std::uint16_t free_port() {
  static std::mt19937 random{std::random_device{}()};
  while (true) {
    const auto port = std::uniform_int_distribution<std::uint16_t>(20000, 32000)(random);
    if (listen_on({"127.0.0.1", port})) return port;
  }
}

std::vector<float> values_in(const std::string& folder) {
  auto model = read_checkpoint(folder + "/model.slipway");
  EXPECT_TRUE(model) << model.error().what;
  return model ? model->values : std::vector<float>{};
}

// How far a worker has come, by its own words: its files may be long behind on a slow disk, and the run
// over before they report.
std::optional<std::uint64_t> last_step(const Process& worker) {
  const std::string output = worker.output();
  const std::size_t at = output.rfind(" step ");
  if (at == std::string::npos) return std::nullopt;
  return std::strtoull(output.c_str() + at + 6, nullptr, 10);
}

bool reaches(const Process& worker, std::uint64_t step) {
  return eventually([&] { return last_step(worker) >= step; });
}

// Of a worker that may have continued from an earlier one's step: until it has done some itself.
bool advances(const Process& worker) {
  std::optional<std::uint64_t> first;
  return eventually([&] {
    const auto step = last_step(worker);
    if (!first) first = step;
    return first && *step >= *first + 300;
  });
}

// One parameter-server run with a folder of its own.
class ServerRun {
 public:
  ServerRun(std::string folder, std::uint32_t servers, std::uint32_t workers, std::vector<std::string> more)
      : folder_(std::move(folder)), more_(std::move(more)) {
    for (std::uint32_t i = 0; i < servers; ++i)
      ps_ += (i > 0 ? "," : "") + std::string("127.0.0.1:") + std::to_string(free_port());
    for (std::uint32_t i = 0; i < workers; ++i) hosts_ += (i > 0 ? "," : "") + std::string("127.0.0.1:1");
    std::filesystem::create_directories(folder_);
  }
  Process start(const std::string& role, int index) const {
    std::vector<std::string> arguments = {program,
                                          "--ps_hosts",
                                          ps_,
                                          "--worker_hosts",
                                          hosts_,
                                          "--job_name",
                                          role,
                                          "--task_index",
                                          std::to_string(index),
                                          "--data",
                                          "synthetic",
                                          "--checkpoint-dir",
                                          checkpoints(),
                                          "--output",
                                          folder_ + "/out"};
    arguments.insert(arguments.end(), more_.begin(), more_.end());
    return Process(arguments, {}, folder_ + "/" + role + std::to_string(index) + ".log");
  }
  std::string checkpoints() const { return folder_ + "/checkpoints"; }
  std::vector<float> values() const { return values_in(folder_ + "/out"); }
  const std::string& path() const { return folder_; }

 private:
  std::string folder_, ps_, hosts_;
  std::vector<std::string> more_;
};

std::vector<float> undisturbed(const ServerRun& run, std::uint32_t servers, std::uint32_t workers) {
  std::vector<Process> all;
  for (std::uint32_t i = 0; i < servers; ++i) all.push_back(run.start("ps", static_cast<int>(i)));
  for (std::uint32_t i = 0; i < workers; ++i) all.push_back(run.start("worker", static_cast<int>(i)));
  for (Process& process : all) EXPECT_EQ(process.wait(), 0) << process.output();
  return run.values();
}

const std::vector<std::string> long_enough = {"--steps",         "2500", "--optimizer",        "momentum",
                                              "--learning-rate", "0.05", "--checkpoint-every", "100steps",
                                              "--hidden",        "64"};

TEST(EndToEnd, ThreeKillsDoNotChangeTheResult) {
  const Folder folder;
  const ServerRun calm(folder / "calm", 1, 2, long_enough), wild(folder / "wild", 1, 2, long_enough);
  const std::vector<float> expected = undisturbed(calm, 1, 2);
  Process server = wild.start("ps", 0), chief = wild.start("worker", 0), second = wild.start("worker", 1);
  ASSERT_TRUE(reaches(chief, 300)) << chief.output();
  second.end();
  second = wild.start("worker", 1);
  ASSERT_TRUE(reaches(chief, 700)) << second.output();
  // A server that dies before its first checkpoint is on disk gets its values from the chief, but nobody has
  // its optimizer's momentum: until there is one the run stands still.
  chief.signal(SIGSTOP);
  ASSERT_TRUE(eventually([&] { return !CheckpointFolder(wild.checkpoints() + "/ps-0", 1).steps().empty(); }))
      << server.output();
  server.end();
  chief.signal(SIGCONT);
  server = wild.start("ps", 0);
  ASSERT_TRUE(reaches(chief, 1200)) << server.output();
  chief.end();
  chief = wild.start("worker", 0);
  EXPECT_EQ(chief.wait(), 0) << chief.output();
  EXPECT_EQ(second.wait(), 0) << second.output();
  EXPECT_EQ(server.wait(), 0) << server.output();
  EXPECT_EQ(wild.values(), expected) << "bit for bit";
}

TEST(EndToEnd, KilledWorkerOfTwoServersDoesNotChangeTheResult) {
  const Folder folder;
  const ServerRun calm(folder / "calm", 2, 2, long_enough), wild(folder / "wild", 2, 2, long_enough);
  const std::vector<float> expected = undisturbed(calm, 2, 2);
  Process a = wild.start("ps", 0), b = wild.start("ps", 1), chief = wild.start("worker", 0),
          second = wild.start("worker", 1);
  for (const std::uint64_t step : {200U, 600U, 1000U}) {
    ASSERT_TRUE(reaches(chief, step)) << chief.output();
    second.end();
    second = wild.start("worker", 1);
  }
  for (Process* process : {&chief, &second, &a, &b}) EXPECT_EQ(process->wait(), 0) << process->output();
  EXPECT_EQ(wild.values(), expected);
}

TEST(EndToEnd, PreemptedGangResumesWhereItStopped) {
  const Folder folder;
  const ServerRun calm(folder / "calm", 1, 2, long_enough), stopped(folder / "stopped", 1, 2, long_enough);
  const std::vector<float> expected = undisturbed(calm, 1, 2);
  for (int attempt = 0; attempt < 3; ++attempt) {
    Process server = stopped.start("ps", 0), chief = stopped.start("worker", 0),
            second = stopped.start("worker", 1);
    ASSERT_TRUE(advances(chief)) << chief.output();
    for (const Process* process : {&server, &chief, &second}) process->signal(SIGTERM);
    EXPECT_EQ(chief.wait(), 0) << chief.output();
    EXPECT_EQ(second.wait(), 0) << second.output();
    EXPECT_EQ(server.wait(), 0) << server.output();
    EXPECT_NE(chief.output().find("preempted at step"), std::string::npos) << chief.output();
  }
  EXPECT_EQ(undisturbed(stopped, 1, 2), expected);
}

std::vector<std::string> alone(const std::string& folder, std::vector<std::string> more) {
  more.insert(more.begin(), {program, "--data", "synthetic", "--output", folder});
  return more;
}

TEST(EndToEnd, SingleProcessRunSurvivesTermAndKill) {
  const Folder folder;
  const std::vector<std::string> how = {"--steps", "8000", "--checkpoint-every", "200steps"};
  Process calm(alone(folder / "calm", how), {}, folder / "calm.log");
  EXPECT_EQ(calm.wait(), 0) << calm.output();
  std::vector<std::string> kept = how;
  kept.insert(kept.end(), {"--checkpoint-dir", folder / "c"});
  for (const int signal : {SIGTERM, SIGKILL, SIGTERM}) {
    Process run(alone(folder / "wild", kept), {}, folder / "wild.log");
    ASSERT_TRUE(advances(run)) << run.output();
    run.signal(signal);
    EXPECT_EQ(run.wait(), signal == SIGTERM ? 0 : 128 + SIGKILL) << run.output();
  }
  EXPECT_NE(content(folder / "wild.log").find("preempted at step"), std::string::npos);
  Process last(alone(folder / "wild", kept), {}, folder / "wild.log");
  EXPECT_EQ(last.wait(), 0) << last.output();
  EXPECT_NE(last.output().find("resuming from step"), std::string::npos);
  EXPECT_EQ(values_in(folder / "wild"), values_in(folder / "calm")) << "bit for bit";
}

TEST(EndToEnd, AnAllReduceSurvivesKillsOfEveryRank) {
  for (const bool shared : {true, false}) {
    SCOPED_TRACE(shared);
    const Folder folder;
    std::vector<std::string> how = {"--steps",         "2500",  "--optimizer",        "adam",
                                    "--learning-rate", "0.001", "--checkpoint-every", "100steps"};
    if (!shared) how.emplace_back("--no-shared-memory");
    const auto start = [&](const std::string& name, int rank, std::uint16_t port) {
      std::vector<std::string> arguments = alone(folder / name, how);
      if (name != "calm") arguments.insert(arguments.end(), {"--checkpoint-dir", folder / "c"});
      return Process(arguments,
                     {"RANK=" + std::to_string(rank), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
                      "MASTER_PORT=" + std::to_string(port)},
                     folder / (name + std::to_string(rank) + ".log"));
    };
    const std::uint16_t first_port = free_port();
    Process calm0 = start("calm", 0, first_port), calm1 = start("calm", 1, first_port);
    EXPECT_EQ(calm0.wait(), 0) << calm0.output();
    EXPECT_EQ(calm1.wait(), 0) << calm1.output();
    const std::uint16_t port = free_port();
    Process zero = start("wild", 0, port), one = start("wild", 1, port);
    ASSERT_TRUE(reaches(zero, 300)) << zero.output();
    one.end();
    one = start("wild", 1, port);
    ASSERT_TRUE(reaches(zero, 900)) << zero.output() << one.output();
    zero.end();
    zero = start("wild", 0, port);
    EXPECT_EQ(zero.wait(), 0) << zero.output();
    EXPECT_EQ(one.wait(), 0) << one.output();
    EXPECT_EQ(values_in(folder / "wild"), values_in(folder / "calm")) << "bit for bit";
  }
}

TEST(EndToEnd, AnAsynchronousRunEndsAndLearns) {
  for (const std::vector<std::string>& how : {std::vector<std::string>{"--async"},
                                              {"--staleness", "2"},
                                              {"--compress", "fp16"},
                                              {"--compress", "topk=0.05", "--async"},
                                              {"--sync", "--on-lost-worker", "drop"}}) {
    SCOPED_TRACE(how[0]);
    const Folder folder;
    std::vector<std::string> more = {"--epochs", "6", "--learning-rate", "0.5"};
    more.insert(more.end(), how.begin(), how.end());
    const ServerRun run(folder / "run", 1, 2, more);
    EXPECT_FALSE(undisturbed(run, 1, 2).empty());
    const auto model = read_checkpoint(run.path() + "/out/model.slipway");
    ASSERT_TRUE(model);
    EXPECT_GE(model->info.accuracy, 0.9);
  }
}

TEST(EndToEnd, PortInUseAndUnreachableServerAreReported) {
  const Folder folder;
  const auto listener = listen_on({"127.0.0.1", 0});
  const std::string taken = "127.0.0.1:" + std::to_string(local_port(listener->get()).value());
  Process server({program, "--ps_hosts", taken, "--worker_hosts", "127.0.0.1:1", "--job_name", "ps",
                  "--task_index", "0"},
                 {}, folder / "ps.log");
  EXPECT_EQ(server.wait(), 1);
  EXPECT_NE(server.output().find("is in use"), std::string::npos) << server.output();
  const std::string nobody = "127.0.0.1:" + std::to_string(free_port());
  Process worker({program, "--ps_hosts", nobody, "--worker_hosts", "127.0.0.1:1", "--job_name", "worker",
                  "--task_index", "0", "--data", "synthetic", "--peer-timeout", "200ms"},
                 {}, folder / "worker.log");
  EXPECT_EQ(worker.wait(), 1);
  EXPECT_NE(worker.output().find("cannot reach parameter server 0 (" + nobody + ")"), std::string::npos)
      << worker.output();
}

}  // namespace
}  // namespace slipway::train
