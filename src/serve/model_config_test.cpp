#include "serve/model_config.h"

#include <gtest/gtest.h>

namespace slipway::serve {
namespace {

TEST(ModelConfig, ReadsEverySpellingOfProtobufText) {
  const auto config = parse_server_config(R"(
    # two models
    model_config_list: {
      config { name: 'a' base_path: "/models/" "a"; model_platform: "tensorflow",
        model_version_policy { specific { versions: 42 versions: 43 } }
        version_labels { key: 'stable' value: 42 } version_labels < key: "canary", value: 43 > }
      config: { name: "b\x62\142" base_path: "/b" model_version_policy: { all: {} } model_type: TENSORFLOW }
      config { name: "c" base_path: "/c" model_version_policy { specific { versions: [1, 2] } } logging_config { } }
    })",
                                          "f");
  ASSERT_TRUE(config) << config.error().what;
  ASSERT_EQ(config->models.size(), 3u);
  EXPECT_EQ(config->models[0],
            (ModelConfig{
                "a", "/models/a", "tensorflow", SpecificPolicy{{42, 43}}, {{"canary", 43}, {"stable", 42}}}));
  EXPECT_EQ(config->models[1], (ModelConfig{"bbb", "/b", "", AllPolicy{}, {}}));
  EXPECT_EQ(config->models[2].policy, VersionPolicy(SpecificPolicy{{1, 2}}));
  EXPECT_EQ(*parse_server_config(format_server_config(*config), "f"), *config);
}

TEST(ModelConfig, RefusesWithLineAndReason) {
  struct Row {
    const char* text;
    const char* error;
  };
  const Row rows[] = {
      {"model_config_lst {}",
       "f:1: model_config_lst is no field of the model config; did you mean model_config_list?"},
      {"model_config_list {\n config { nme: 'a' } }", "f:2: nme is no field of config; did you mean name?"},
      {"model_config_list { config { name: 1 } }", "f:1: name takes a string in quotes"},
      {"model_config_list { config { name: 'a' } }", "f: the model a has no base_path"},
      {"model_config_list { config { name: 'a' base_path: '/a' } config { name: 'a' base_path: '/b' } }",
       "f: two models are called a"},
      {"model_config_list { config { name: 'a/b' base_path: '/a' } }", "f: the model name a/b has a / or :"},
      {"model_config_list {", "f:1: the end comes before `}`"},
      {"model_config_list { config { name: 'a\n' } }", "f:1: a string has no end"},
      {"model_config_list { config { name 'a' } }", "f:1: after name comes neither `:` nor `{`"},
      {"model_config_list { config { version_labels { key: 'a b' value: 1 } } }",
       "f:1: version_labels `a b` is no label: letters, digits and _"},
      {"model_config_list { config { model_version_policy { latest { num_versions: 1.5 } } } }",
       "f:1: num_versions takes a whole number"},
      {"}", "f:1: expected a field's name and found `}`"},
  };
  for (const Row& row : rows) {
    const auto config = parse_server_config(row.text, "f");
    ASSERT_FALSE(config) << row.text;
    EXPECT_EQ(config.error().what, row.error);
  }
  EXPECT_FALSE(parse_server_config(std::string(100'000, '{'), "f"));
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "a{";
  EXPECT_FALSE(parse_server_config(deep, "f"));
}

TEST(ModelConfig, BatchingParametersAreCheckedTogether) {
  const auto parameters = parse_batching_parameters(
      "max_batch_size { value: 128 } batch_timeout_micros { value: 500 } num_batch_threads { value: 2 }\n"
      "max_enqueued_batches { value: 7 } allowed_batch_sizes: [1, 64, 128] pad_variable_length_inputs: true\n"
      "thread_pool_name { value: 'pool' } enable_large_batch_splitting { value: false }",
      "f");
  ASSERT_TRUE(parameters) << parameters.error().what;
  EXPECT_EQ(*parameters, (BatchingParameters{.max_batch_size = 128,
                                             .timeout = 500us,
                                             .max_enqueued_batches = 7,
                                             .threads = 2,
                                             .allowed_batch_sizes = {1, 64, 128},
                                             .pads_variable_lengths = true}));
  for (const char* bad :
       {"max_batch_size { value: 0 }", "allowed_batch_sizes: 4",
        "max_batch_size: 4 allowed_batch_sizes: [4, 2]", "batch_timeout_micros { value: -1 }",
        "max_enqueued_batches: 0", "max_execution_batch_size: 2000"})
    EXPECT_FALSE(parse_batching_parameters(bad, "f")) << bad;
}

TEST(ModelConfig, Monitoring) {
  EXPECT_EQ(*parse_monitoring("prometheus_config { enable: true path: '/m' }", "f"),
            (Monitoring{true, "/m"}));
  EXPECT_EQ(*parse_monitoring("", "f"), Monitoring{});
  EXPECT_FALSE(parse_monitoring("prometheus_config { enable: true path: 'm' }", "f"));
}

}  // namespace
}  // namespace slipway::serve
