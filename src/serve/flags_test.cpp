#include "serve/flags.h"

#include <gtest/gtest.h>

namespace slipway::serve {
namespace {

using Arguments = std::vector<std::string>;

TEST(Flags, TensorFlowsCommandLineInEverySpelling) {
  for (const Arguments& arguments :
       {Arguments{"--port=9000", "--model_name=mnist", "--model_base_path=/m", "--rest_api_port=9001",
                  "--enable_batching"},
        Arguments{"-port", "9000", "-model-name", "mnist", "--model-base-path", "/m", "-rest_api_port",
                  "9001", "-enable_batching", "true"},
        Arguments{"--port", "9000", "--model_name", "mnist", "-model_base_path=/m", "--rest-api-port=9001",
                  "--enable-batching=1"}}) {
    const auto flags = parse_flags("tensorflow_model_server", arguments);
    ASSERT_TRUE(flags) << flags.error().what;
    EXPECT_EQ(flags->grpc_port, 9000);
    EXPECT_EQ(flags->rest_port, 9001);
    EXPECT_TRUE(flags->is_batching);
    ASSERT_EQ(flags->models.models.size(), 1u);
    EXPECT_EQ(flags->models.models[0], (ModelConfig{"mnist", "/m", "", LatestPolicy{}, {}}));
  }
}

TEST(Flags, DefaultsDependOnTheName) {
  const auto theirs = parse_flags("tensorflow_model_server", {"--model_base_path=/m"});
  EXPECT_EQ(theirs->rest_port, -1);
  EXPECT_EQ(theirs->grpc_port, 8500);
  EXPECT_EQ(parse_flags("tensorflow_model_server", {"--model_base_path=/m", "--port=0"})->grpc_port, -1);
  EXPECT_EQ(theirs->models.models[0].name, "default");
  EXPECT_EQ(theirs->rest_timeout, 30s);
  EXPECT_EQ(theirs->retry.retries_max, 5);
  EXPECT_EQ(theirs->retry.interval, 60s);
  EXPECT_EQ(theirs->folder_poll, 1s);
  const auto ours = parse_flags("slipway-serve", {"--model", "a=/a", "--model", "b=/b=c"});
  EXPECT_EQ(ours->rest_port, 8501);
  EXPECT_EQ(ours->grpc_port, -1);
  EXPECT_EQ(ours->address, "127.0.0.1");
  EXPECT_EQ(ours->models.models[1].base_path, "/b=c");
}

TEST(Flags, TimesAndSwitches) {
  const auto flags = parse_flags(
      "slipway-serve", {"--model=a=/a", "--rest_api_timeout_in_ms=1500",
                        "--file_system_poll_wait_seconds=0.5", "--load_retry_interval_micros=2000000",
                        "--body-max=1MiB", "--insecure=false", "--tensorflow_session_parallelism=4"});
  ASSERT_TRUE(flags) << flags.error().what;
  EXPECT_EQ(flags->rest_timeout, 1500ms);
  EXPECT_EQ(flags->folder_poll, 500ms);
  EXPECT_EQ(flags->retry.interval, 2s);
  EXPECT_EQ(flags->body_max, 1u << 20);
  EXPECT_EQ(flags->without_effect, Arguments{"tensorflow_session_parallelism"});
}

TEST(Flags, WrongOnesSayWhatIsWrong) {
  struct Row {
    Arguments arguments;
    const char* what;
    const char* hint;
  };
  const Row rows[] = {
      {{}, "there is nothing to serve", "--model NAME=FOLDER"},
      {{"--modell=a=/a"}, "there is no flag --modell", "did you mean --model?"},
      {{"mnist"}, "`mnist` is no flag", "--model NAME=FOLDER"},
      {{"--model"}, "--model has no value", "--help"},
      {{"--model", "mnist"}, "--model is `mnist`", "NAME=FOLDER"},
      {{"--model=a=/a", "--port=99999"}, "--port is `99999`", "a port"},
      {{"--model=a=/a", "--enable_batching=maybe"}, "--enable_batching is `maybe`", "true or false"},
      {{"--model=a=/a", "--model=a=/b"}, "two models are called a", "a name of its own"},
      {{"--model=a=/a", "--model_config_file=f"},
       "models are given by a config file and by flags at once",
       "either"},
      {{"--model_name=a"}, "--model_name is a without a --model_base_path", "version folders"},
      {{"--model=a=models:/a/3"},
       "models:/a/3 is in the model registry, which this server cannot reach",
       "folder"},
      {{"--model=a=/a", "--batching_parameters_file=f"},
       "--batching_parameters_file is given without",
       "--enable_batching"},
  };
  for (const Row& row : rows) {
    const auto flags = parse_flags("slipway-serve", row.arguments);
    ASSERT_FALSE(flags) << row.what;
    EXPECT_NE(flags.error().what.find(row.what), std::string::npos) << flags.error().what;
    EXPECT_NE(flags.error().hint.find(row.hint), std::string::npos) << flags.error().hint;
  }
}

TEST(Flags, HelpNeedsNothingElse) {
  EXPECT_TRUE(parse_flags("slipway-serve", {"--help"})->shows_help);
  EXPECT_TRUE(parse_flags("slipway-serve", {"-h"})->shows_help);
  EXPECT_NE(help_text().find("--model_config_file"), std::string::npos);
}

}  // namespace
}  // namespace slipway::serve
