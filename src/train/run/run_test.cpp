#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "train/data/digits.h"
#include "train/exchange/socket.h"
#include "train/run/cluster.h"
#include "train/run/commands.h"
#include "train/run/options.h"
#include "train/run/progress.h"
#include "train/run/trainer.h"
#include "train/state/export.h"

namespace slipway::train {
namespace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "slipway-run-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Null {  // discards all output
  std::FILE* file = std::fopen("/dev/null", "w");
  ~Null() { std::fclose(file); }
};

Options options_for(std::vector<std::string> arguments) {
  auto options = parse_options(arguments, {});
  EXPECT_TRUE(options) << options.error().what;
  return options.value_or(Options{});
}

const DataPair& digits() {
  static const DataPair data = draw_digits(1, {4000, 1000});
  return data;
}

Result<RunReport> run(const Options& options, const Cluster& cluster = {}, const Stop* stop = nullptr) {
  const Null null;
  const SystemClock clock;
  const Stop never;
  return train(options, cluster, digits(), clock, stop != nullptr ? *stop : never, null.file);
}

TEST(Options, ReadsTheClassicSpelling) {
  const Options options =
      options_for({"--ps_hosts=a:1,b:2", "--worker_hosts", "c:3", "--job_name=worker", "--task_index=0",
                   "--batch_size", "64", "--learning-rate", "0.25", "--until", "accuracy=0.9",
                   "--checkpoint-every", "100steps", "--staleness", "4", "--hidden", "300,100"});
  EXPECT_EQ(options.ps_hosts, (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_EQ(options.batch_size, 64U);
  EXPECT_EQ(options.learning_rate, 0.25);
  EXPECT_EQ(options.until_accuracy, 0.9);
  EXPECT_EQ(options.checkpoint_every_steps, 100U);
  EXPECT_EQ(options.mode, Mode::stale);
  EXPECT_EQ(options.hidden, (std::vector<int>{300, 100}));
  EXPECT_EQ(options_for({"--first-layer-neurons", "200", "--second-layer-neurons", "50"}).hidden,
            (std::vector<int>{200, 50}));
  EXPECT_EQ(parse_options({}, {{"SLIPWAY_CHECKPOINT_DIR", "/c"}, {"SLIPWAY_OUTPUTS", "/o"}})->checkpoint_dir,
            "/c");
}

TEST(Options, RefusesWithAHint) {
  struct Row {
    std::vector<std::string> arguments;
    const char* what;
    const char* hint;
  };
  const Row rows[] = {
      {{"--epoch", "3"}, "there is no option --epoch", "did you mean --epochs?"},
      {{"--epochs"}, "--epochs needs a value", "--epochs N"},
      {{"--epochs", "many"}, "--epochs: many is not a number of epochs", ""},
      {{"--epochs", "-3"}, "--epochs: -3 is not a number of epochs", ""},
      {{"--batch-size", "0"}, "is not a batch size from 1", ""},
      {{"--learning-rate", "nan"}, "is not a learning rate", ""},
      {{"--until", "loss=1"}, "is not a goal like accuracy=0.975", ""},
      {{"--checkpoint-every", "often"}, "is not a time like 5s or a count like 100steps", ""},
      {{"--compress", "zip"}, "--compress zip is not known", "topk=0.01"},
      {{"--epochs", "1", "--steps", "2"}, "both --epochs and --steps", ""},
      {{"--async", "--backup-workers", "1"}, "--backup-workers needs --sync", ""},
      {{"--distribute", "allreduce", "--async"}, "all-reduce is synchronous", "--distribute ps"},
      {{"--distribute", "mpi"}, "is not one of none, ps, allreduce", ""},
      {{"bake"}, "there is no command bake", "train, evaluate"},
      {{"evaluate"}, "evaluate needs a model", "slipway-train evaluate"},
      {{"evaluate", "a", "b"}, "one word too many", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const auto options = parse_options(row.arguments, {});
    ASSERT_FALSE(options);
    EXPECT_NE(options.error().what.find(row.what), std::string::npos) << options.error().what;
    EXPECT_NE(options.error().hint.find(row.hint), std::string::npos) << options.error().hint;
  }
}

TEST(Cluster, IsReadFromEveryLaunchersVariables) {
  const std::string tf =
      R"({"cluster": {"chief": ["a:1"], "worker": ["b:2", "c:3"], "ps": ["d:4", "e:5"]}, "task": {"type": "worker", "index": 1}})";
  struct Row {
    const char* rule;
    std::vector<std::string> arguments;
    Environment environment;
    Cluster::Kind kind;
    bool is_server;
    std::uint32_t index, workers;
    std::size_t servers;
    const char* master;
  };
  using enum Cluster::Kind;
  const Row rows[] = {
      {"no settings", {}, {}, alone, false, 0, 1, 0, ""},
      {"TF_CONFIG: the chief is worker 0", {}, {{"TF_CONFIG", tf}}, servers, false, 2, 3, 2, ""},
      {"TF_CONFIG without ps is an all-reduce",
       {},
       {{"TF_CONFIG", R"({"cluster": {"worker": ["b:2", "c:3"]}, "task": {"type": "worker", "index": 1}})"}},
       all_reduce,
       false,
       1,
       2,
       0,
       "b:2"},
      {"TF_CONFIG of a server",
       {},
       {{"TF_CONFIG",
         R"({"cluster": {"worker": ["b:2"], "ps": ["d:4"]}, "task": {"type": "ps", "index": 0}})"}},
       servers,
       true,
       0,
       1,
       1,
       ""},
      {"TF_CONFIG of a lone process",
       {},
       {{"TF_CONFIG", R"({"cluster": {}, "task": {"type": "worker", "index": 0}})"}},
       alone,
       false,
       0,
       1,
       0,
       ""},
      {"flags",
       {"--ps_hosts", "d:4", "--worker_hosts", "b:2,c:3", "--job_name", "worker", "--task_index", "1"},
       {},
       servers,
       false,
       1,
       2,
       1,
       ""},
      {"flags come before TF_CONFIG",
       {"--worker_hosts", "b:2,c:3", "--job_name", "worker", "--task_index", "0"},
       {{"TF_CONFIG", tf}},
       all_reduce,
       false,
       0,
       2,
       0,
       "b:2"},
      {"torch",
       {},
       {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "::1"}, {"MASTER_PORT", "29500"}},
       all_reduce,
       false,
       1,
       4,
       0,
       "[::1]:29500"},
      {"slipway",
       {"--port", "7000"},
       {{"SLIPWAY_RANK", "3"}, {"SLIPWAY_WORLD_SIZE", "4"}, {"SLIPWAY_NODES", "n1,n2"}},
       all_reduce,
       false,
       3,
       4,
       0,
       "n1:7000"},
      {"slipway, the first ranks serve",
       {"--distribute", "ps", "--port", "7000"},
       {{"SLIPWAY_RANK", "2"}, {"SLIPWAY_WORLD_SIZE", "3"}, {"SLIPWAY_NODES", "n1,n2,n3"}},
       servers,
       false,
       1,
       2,
       1,
       ""},
      {"slipway alone", {}, {{"SLIPWAY_RANK", "0"}, {"SLIPWAY_WORLD_SIZE", "1"}}, alone, false, 0, 1, 0, ""},
      {"asked to be alone", {"--distribute", "none"}, {{"TF_CONFIG", tf}}, alone, false, 0, 1, 0, ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const auto cluster = discover_cluster(options_for(row.arguments), row.environment);
    ASSERT_TRUE(cluster) << cluster.error().what;
    EXPECT_EQ(cluster->kind, row.kind);
    EXPECT_EQ(cluster->is_server, row.is_server);
    EXPECT_EQ(cluster->index, row.index);
    EXPECT_EQ(cluster->workers, row.workers);
    EXPECT_EQ(cluster->servers.size(), row.servers);
    if (*row.master != '\0') {
      EXPECT_EQ(to_string(cluster->master), row.master);
    }
  }
}

TEST(Cluster, RejectsInconsistentClusterSettings) {
  struct Row {
    std::vector<std::string> arguments;
    Environment environment;
    const char* what;
  };
  const Row rows[] = {
      {{}, {{"TF_CONFIG", "{"}}, "TF_CONFIG is not valid YAML"},
      {{}, {{"TF_CONFIG", "{}"}}, "task.type and task.index are missing"},
      {{},
       {{"TF_CONFIG", R"({"cluster": {"worker": ["b:2"]}, "task": {"type": "worker", "index": 5}})"}},
       "worker 5 and lists 1"},
      {{},
       {{"TF_CONFIG", R"({"cluster": {"worker": ["b"]}, "task": {"type": "worker", "index": 0}})"}},
       "b is not an address"},
      {{},
       {{"TF_CONFIG", R"({"cluster": {"worker": ["b:1"]}, "task": {"type": "evaluator", "index": 0}})"}},
       "the role evaluator"},
      {{"--worker_hosts", "b:2"}, {}, "--job-name is missing"},
      {{"--worker_hosts", "b:2", "--job_name", "worker"}, {}, "--task-index is missing"},
      {{}, {{"RANK", "4"}, {"WORLD_SIZE", "4"}}, "RANK is 4 and WORLD_SIZE 4"},
      {{}, {{"RANK", "x"}, {"WORLD_SIZE", "4"}}, "RANK is `x`"},
      {{}, {{"RANK", "1"}, {"WORLD_SIZE", "4"}}, "MASTER_ADDR and MASTER_PORT"},
      {{"--distribute", "ps"}, {}, "no setting names the other processes"},
      {{"--distribute", "ps", "--ps", "3"},
       {{"SLIPWAY_RANK", "0"}, {"SLIPWAY_WORLD_SIZE", "3"}},
       "leaves no worker"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const auto cluster = discover_cluster(options_for(row.arguments), row.environment);
    ASSERT_FALSE(cluster);
    EXPECT_NE(cluster.error().what.find(row.what), std::string::npos) << cluster.error().what;
  }
}

TEST(Cluster, TakesTheKeyOfItsGang) {
  const auto found = [](const Environment& environment) {
    return discover_cluster(options_for({}), environment);
  };
  EXPECT_FALSE(found({}).value().key.is_set());
  const std::string key(64, 'k');
  const auto cluster = found({{"SLIPWAY_GANG_KEY", key}});
  EXPECT_EQ(cluster.value().key.secret, key);
  EXPECT_EQ(cluster.value().key.encryption, GangKey::Encryption::between_hosts);
  const auto trusting = found({{"SLIPWAY_GANG_KEY", key}, {"SLIPWAY_TRUSTED_NETWORK", "1"}});
  EXPECT_EQ(trusting.value().key.secret, key) << "peers still prove themselves";
  EXPECT_EQ(trusting.value().key.encryption, GangKey::Encryption::never);
  const auto weak = found({{"SLIPWAY_GANG_KEY", "guessable"}});
  ASSERT_FALSE(weak);
  EXPECT_EQ(weak.error().what, "SLIPWAY_GANG_KEY has 9 characters, fewer than 16");
  EXPECT_EQ((weak.error().what + weak.error().hint).find("guessable"), std::string::npos) << "it is a secret";
}

TEST(Trainer, LearnsDrawnDigits) {
  const DataPair data = draw_digits(1);
  const Null null;
  const SystemClock clock;
  const Stop never;
  const auto report = train(options_for({"--epochs", "8"}), {}, data, clock, never, null.file);
  ASSERT_TRUE(report) << report.error().what;
  EXPECT_GE(report->accuracy, 0.98);
}

TEST(Trainer, StopsAsSoonAsTheGoalIsReached) {
  const auto report = run(options_for({"--until", "accuracy=0.9"}));
  ASSERT_TRUE(report);
  EXPECT_GE(report->accuracy, 0.9);
  EXPECT_LT(report->step, 400U);
  EXPECT_EQ(report->step % 40, 0U) << "at the end of an epoch, not a step later";
}

std::vector<float> stored_values(const std::string& folder) {
  return read_checkpoint(folder + "/model.slipway").value().values;
}

TEST(Trainer, ResumedRunMatchesAnUninterruptedOne) {
  for (const char* optimizer : {"sgd", "momentum", "adam", "adagrad"}) {
    SCOPED_TRACE(optimizer);
    const Folder folder;
    const std::vector<std::string> common = {"--optimizer", optimizer,   "--learning-rate",
                                             "0.05",        "--dropout", "0.2"};
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.end(), common.begin(), common.end());
      return options_for(more);
    };
    ASSERT_TRUE(run(with({"--steps", "150", "--output", folder.path() + "/whole"})));
    for (const char* steps : {"30", "31", "90", "150"}) {
      const auto report = run(with({"--steps", steps, "--checkpoint-dir", folder.path() + "/c", "--output",
                                    folder.path() + "/parts"}));
      ASSERT_TRUE(report) << report.error().what;
    }
    EXPECT_EQ(stored_values(folder.path() + "/parts"), stored_values(folder.path() + "/whole"))
        << "bit for bit";
  }
}

TEST(Trainer, StopSavesACheckpointAndReportsIt) {
  const Folder folder;
  Stop stop;
  stop.request();
  const auto report = run(options_for({"--checkpoint-dir", folder.path() + "/c"}), {}, &stop);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->ending, Ending::preempted);
  EXPECT_EQ(report->step, 1U) << "at the next step";
  EXPECT_EQ(report->checkpoint_step, 1U);
}

TEST(Trainer, SeveralWorkersMatchOneWithTheGlobalBatch) {
  const Folder folder;
  const auto port_of = [] {
    const auto listener = listen_on({"127.0.0.1", 0});
    return local_port(listener->get()).value();
  };
  ASSERT_TRUE(run(options_for({"--steps", "60", "--batch-size", "120", "--output", folder.path() + "/one"})));
  const std::vector<float> one = stored_values(folder.path() + "/one");
  for (const std::uint32_t workers : {2U, 3U}) {
    Cluster cluster{.kind = Cluster::Kind::all_reduce};
    cluster.workers = workers;
    cluster.master = {"127.0.0.1", port_of()};
    const std::string out = folder.path() + "/" + std::to_string(workers);
    {
      std::vector<std::jthread> threads;
      for (std::uint32_t rank = 0; rank < workers; ++rank)
        threads.emplace_back([&, rank] {
          Cluster own = cluster;
          own.index = rank;
          const auto report = run(
              options_for({"--steps", "60", "--batch-size", std::to_string(120 / workers), "--output", out}),
              own);
          EXPECT_TRUE(report) << report.error().what;
        });
    }
    const std::vector<float> many = stored_values(out);
    ASSERT_EQ(many.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(many[i], one[i], 2e-5) << i;
  }
}

TEST(Trainer, NanLossEndsTheRunAndKeepsGoodCheckpoints) {
  const Folder folder;
  ASSERT_TRUE(run(options_for({"--steps", "20", "--checkpoint-dir", folder.path() + "/c"})));
  const auto report = run(
      options_for({"--model", "replica", "--optimizer", "sgd", "--learning-rate", "1e6", "--steps", "50"}));
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().what.find("is not a number"), std::string::npos) << report.error().what;
  EXPECT_NE(report.error().what.find("step"), std::string::npos);
  EXPECT_NE(report.error().hint.find("--learning-rate"), std::string::npos);
}

TEST(Trainer, RejectsACheckpointOfAnotherModelAndSkipsADamagedOne) {
  const Folder folder;
  const std::string kept = folder.path() + "/c";
  ASSERT_TRUE(run(options_for({"--steps", "20", "--checkpoint-dir", kept, "--checkpoint-every", "10steps"})));
  const auto other = run(options_for({"--model", "mlp2", "--steps", "30", "--checkpoint-dir", kept}));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().what.find("the checkpoint of step 20 is of another model"), std::string::npos);
  EXPECT_NE(other.error().hint.find("--resume never"), std::string::npos);

  std::string bytes = read_file(kept + "/step-000000000020.ckpt").value();
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(write_file_durably(kept + "/step-000000000020.ckpt", bytes));
  const auto after =
      run(options_for({"--steps", "30", "--checkpoint-dir", kept, "--output", folder.path() + "/o"}));
  ASSERT_TRUE(after) << after.error().what;
  ASSERT_TRUE(run(options_for({"--steps", "30", "--output", folder.path() + "/whole"})));
  EXPECT_EQ(stored_values(folder.path() + "/o"), stored_values(folder.path() + "/whole"))
      << "from step 10, bit for bit";
  EXPECT_FALSE(run(options_for({"--resume", folder.path() + "/nowhere"})));
}

TEST(Trainer, RejectsImpossibleOptions) {
  const Folder folder;
  ASSERT_TRUE(write_file_durably(folder.path() + "/net.yaml", "{input: [3, 8, 8], layers: [{dense: 10}]}"));
  const auto shape = run(options_for({"--model", folder.path() + "/net.yaml"}));
  EXPECT_NE(shape.error().what.find("expects pictures of 3x8x8 and the data has 1x28x28"), std::string::npos);
  const auto batch = run(options_for({"--batch-size", "5000"}));
  EXPECT_NE(batch.error().what.find("4000 training samples"), std::string::npos);
  EXPECT_EQ(run(options_for({"--model", "lenett"})).error().hint, "did you mean lenet?");
  EXPECT_FALSE(run(options_for({"--optimizer", "adm"})));
  EXPECT_FALSE(run(options_for({"--model", folder.path() + "/absent.yaml"})));
}

TEST(Trainer, AYamlModelTrains) {
  const Folder folder;
  ASSERT_TRUE(
      write_file_durably(folder.path() + "/net.yaml",
                         "name: tiny\nlayers:\n  - conv: {filters: 6, kernel: 5, stride: 2}\n  - batch_norm\n"
                         "  - relu\n  - max_pool: 2\n  - dropout: 0.1\n  - dense: 10\n"));
  const auto report =
      run(options_for({"--model", folder.path() + "/net.yaml", "--epochs", "3", "--learning-rate", "0.05"}));
  ASSERT_TRUE(report) << report.error().what;
  EXPECT_GE(report->accuracy, 0.9);
}

std::string output_of(const std::vector<std::string>& arguments, int expected) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* memory = ::open_memstream(&text, &size);
  const Stop never;
  EXPECT_EQ(run_command(arguments, {}, never, {memory, memory}), expected);
  std::fclose(memory);
  std::string result(text, size);
  std::free(text);
  return result;
}

TEST(Commands, InspectEvaluateExport) {
  const Folder folder;
  output_of({"--data", "synthetic", "--steps", "300", "--output", folder.path(), "--metrics", "json",
             "--log-dir", folder.path() + "/logs"},
            0);
  const std::string model = folder.path() + "/model.slipway";
  EXPECT_NE(output_of({"inspect", model}, 0).find("dense 100                100"), std::string::npos);
  EXPECT_NE(output_of({"inspect", model, "--metrics", "json"}, 0).find("\"parameters\":79510"),
            std::string::npos);
  EXPECT_NE(output_of({"evaluate", model}, 0).find("mlp on synthetic"), std::string::npos);
  for (const char* format : {"onnx", "npz", "slipway"}) {
    output_of({"export", model, "--output", folder.path() + "/x." + format}, 0);
    EXPECT_TRUE(std::filesystem::exists(folder.path() + "/x." + format));
  }
  EXPECT_NE(output_of({"export", model, "--output", folder.path() + "/x.pt"}, 2).find("no known format"),
            std::string::npos);
  EXPECT_NE(output_of({"evaluate", folder.path() + "/none"}, 1).find("cannot open"), std::string::npos);
  EXPECT_NE(output_of({"inspect", folder.path() + "/metrics.jsonl"}, 1).find("is not a Slipway checkpoint"),
            std::string::npos);
  EXPECT_NE(output_of({"--help"}, 0).find("--staleness K"), std::string::npos);
  const std::string metrics = read_file(folder.path() + "/metrics.jsonl").value();
  EXPECT_NE(metrics.find("\"event\":\"done\""), std::string::npos);
  EXPECT_NE(metrics.find("\"test_accuracy\":"), std::string::npos);
}

TEST(Json, EscapesWhatMustBe) {
  EXPECT_EQ(to_json({{"a\"b", std::string("line\nend\\")}, {"n", 0.5}, {"t", true}, {"x", NAN}}),
            R"({"a\"b":"line\u000aend\\","n":0.5,"t":true,"x":null})");
}

}  // namespace
}  // namespace slipway::train
