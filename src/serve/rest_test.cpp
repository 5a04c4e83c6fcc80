// The server without its sockets: real models on disk, the manager, the executor and every route.
#include "serve/rest.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>

#include "serve/testing.h"

namespace slipway::serve {
namespace {

class Fixture {
 public:
  explicit Fixture(ExecutorOptions options = {}, ModelManagerOptions manager = {.poll_interval = 50ms})
      : models(manager, clock), executor(std::move(options), clock, metrics) {}

  std::string base(const std::string& name) const { return folder.path() + "/" + name; }
  ModelConfig model(const std::string& name) const { return {name, base(name), "", LatestPolicy{}, {}}; }

  net::Response ask(const std::string& method, const std::string& target, const std::string& body = "",
                    net::Headers headers = {}) {
    net::Request request;
    request.method = method;
    request.target = target;
    request.path = target.substr(0, target.find('?'));
    request.headers = std::move(headers);
    request.body = body;
    std::mutex mutex;
    std::condition_variable answered;
    std::optional<net::Response> response;
    rest.handle(request, [&](net::Response given) {
      const std::lock_guard lock(mutex);
      response = std::move(given);
      answered.notify_one();
    });
    std::unique_lock lock(mutex);
    answered.wait(lock, [&] { return response.has_value(); });
    return *response;
  }
  net::Response predict(const std::string& body) { return ask("POST", "/v1/models/line:predict", body); }

  template <class Condition>
  void wait_until(const Condition& condition) {
    const TimePoint deadline = clock.now() + 60s;
    while (!condition()) {
      ASSERT_LT(clock.now(), deadline) << "never happened";
      std::this_thread::yield();
    }
  }

  TemporaryFolder folder;
  SystemClock clock;
  Metrics metrics;
  ModelManager models;
  Executor executor;
  Rest rest{models, executor, metrics, clock, {.monitoring = {true, "/metrics"}}};
};

TEST(Rest, HalfPlusTwo) {
  Fixture f;
  write_line_model(f.base("line") + "/00000123");
  ASSERT_TRUE(f.models.apply({{f.model("line")}}));
  EXPECT_EQ(f.predict(R"({"instances":[1.0,2.0,5.0]})").body, R"({"predictions":[2.5,3.0,4.5]})");
  EXPECT_EQ(f.predict(R"({"inputs":[1.0,2.0,5.0]})").body, R"({"outputs":[2.5,3.0,4.5]})");
  EXPECT_EQ(f.predict(R"({"instances":[[1],[2]]})").body, R"({"predictions":[[2.5],[3.0]]})");
  EXPECT_EQ(
      f.ask("GET", "/v1/models/line").body,
      R"({"model_version_status":[{"version":"123","state":"AVAILABLE","status":{"error_code":"OK","error_message":""}}]})");
  EXPECT_EQ(f.ask("POST", "/v1/models/line:regress", R"({"examples":[{"input":1.0}]})").body,
            R"({"results":[2.5]})");
  const std::string metadata = f.ask("GET", "/v1/models/line/metadata").body;
  EXPECT_NE(metadata.find(R"("model_spec":{"name":"line","signature_name":"","version":"123"})"),
            std::string::npos);
  EXPECT_NE(
      metadata.find(
          R"("dtype":"DT_FLOAT","tensor_shape":{"dim":[{"size":"-1","name":""},{"size":"1","name":""}],"unknown_rank":false})"),
      std::string::npos)
      << metadata;
}

TEST(Rest, ErrorsComeInTheReferencesOrder) {
  Fixture f;
  write_line_model(f.base("line") + "/7");
  ASSERT_TRUE(f.models.apply({{f.model("line")}}));
  struct Row {
    const char* method;
    const char* target;
    const char* body;
    int status;
    const char* answer;
  };
  const Row rows[] = {
      {"POST", "/v1/models/none:predict", "{", 400,
       R"x({"error": "JSON Parse error: Missing a name for object member. at offset: 1"})x"},
      {"POST", "/v1/models/none:predict", "{}", 404,
       R"x({"error": "Servable not found for request: Latest(none)"})x"},
      {"POST", "/v1/models/line/versions/8:predict", "{}", 404,
       R"x({"error": "Servable not found for request: Specific(line, 8)"})x"},
      {"POST", "/v1/models/line/labels/x:predict", "{}", 400,
       R"x({"error": "Unrecognized servable version label: x"})x"},
      {"POST", "/v1/models/line:predict", R"({"signature_name":"x"})", 400,
       R"x({"error": "Serving signature name: \"x\" not found in signature def"})x"},
      {"POST", "/v1/models/line:predict", "{}", 400, R"x({"error": "Missing 'inputs' or 'instances' key"})x"},
      {"POST", "/v1/models/line:regress", R"({"signature_name":"x","examples":[{}]})", 400,
       R"x({"error": "No signature was found with the name: x"})x"},
      {"POST", "/v1/models/line:classify", R"({"examples":[{"input":1.0}]})", 400,
       R"x({"error": "Expected classification signature method_name to be tensorflow/serving/classify. Was: tensorflow/serving/predict"})x"},
      {"GET", "/v1/models/none", "", 404, R"x({"error": "Could not find any versions of model none"})x"},
      {"GET", "/v1/models/line/versions/99999999999999999999", "", 400, ""},
      {"GET", "/v1/x", "", 400, R"x({"error": "Malformed request: GET /v1/x"})x"},
      {"POST", "/v1/models/line:PREDICT", "{}", 400,
       R"x({"error": "Malformed request: POST /v1/models/line:PREDICT"})x"},
      {"POST", "/v1/models/line:predict", R"({"instances":[[1,2]]})", 400,
       R"x({"error": "input of shape [1,2] has 2 values in each row, and the model takes 1 (1)"})x"},
  };
  for (const Row& row : rows) {
    const auto response = f.ask(row.method, row.target, row.body);
    EXPECT_EQ(response.status, row.status) << row.target << row.body;
    EXPECT_EQ(response.body, row.answer) << row.target << row.body;
  }
  EXPECT_EQ(f.ask("OPTIONS", "/v1/models/line:predict").status, 400);
  EXPECT_EQ(f.ask("OPTIONS", "/v1/models/line:predict", "", {{"Origin", "http://a"}}).status, 200);
}

TEST(Rest, ClassesComeWithTheirScores) {
  Fixture f;
  write_even_classifier(f.base("even") + "/1");
  ASSERT_TRUE(f.models.apply({{f.model("even")}}));
  EXPECT_EQ(f.ask("POST", "/v1/models/even:classify", R"({"examples":[{"input":[1.0,2.5]}]})").body,
            R"({"results":[[["0",0.333333343],["1",0.333333343],["2",0.333333343]]]})");
}

TEST(Rest, OtherProtocols) {
  Fixture f;
  write_line_model(f.base("line") + "/3");
  ASSERT_TRUE(f.models.apply({{f.model("line")}}));
  EXPECT_EQ(f.ask("GET", "/v2/health/ready").body, R"({"ready":true})");
  EXPECT_EQ(
      f.ask("GET", "/v2/models/line").body,
      R"({"name":"line","versions":["3"],"platform":"slipway_native","inputs":[{"name":"input","datatype":"FP32","shape":[-1,1]}],)"
      R"("outputs":[{"name":"output","datatype":"FP32","shape":[-1,1]}]})");
  EXPECT_EQ(f.ask("GET", "/v2/models/line/versions/3/ready").body, R"({"name":"line","ready":true})");
  EXPECT_EQ(f.ask("GET", "/v2/models/line/versions/4/ready").status, 503);
  EXPECT_EQ(f.ask("GET", "/v2/models/none/ready").status, 404);
  EXPECT_EQ(
      f.ask("POST", "/v2/models/line/infer",
            R"({"id":"a","inputs":[{"name":"input","shape":[2,1],"datatype":"FP32","data":[1,2]}]})")
          .body,
      R"({"model_name":"line","model_version":"3","id":"a","outputs":[{"name":"output","datatype":"FP32","shape":[2,1],"data":[2.5,3.0]}]})");
  const std::string head =
      R"({"inputs":[{"name":"input","shape":[1,1],"datatype":"FP32","parameters":{"binary_data_size":4}}],"parameters":{"binary_data_output":true}})";
  const float one = 1, expected = 2.5;
  const auto binary = f.ask("POST", "/v2/models/line/versions/3/infer",
                            head + std::string(reinterpret_cast<const char*>(&one), 4),
                            {{"Inference-Header-Content-Length", std::to_string(head.size())}});
  EXPECT_EQ(binary.status, 200) << binary.body;
  EXPECT_EQ(std::memcmp(binary.body.data() + binary.body.size() - 4, &expected, 4), 0);
  EXPECT_EQ(net::find_header(binary.headers, "Inference-Header-Content-Length"),
            std::to_string(binary.body.size() - 4));
  EXPECT_EQ(f.ask("POST", "/invocations", R"({"dataframe_split":{"columns":["x"],"data":[[1],[2]]}})").body,
            R"({"predictions":[[2.5],[3.0]]})");
  EXPECT_EQ(f.ask("POST", "/invocations", "x\n4\n", {{"Content-Type", "text/csv"}}).body,
            R"({"predictions":[[4.0]]})");
  EXPECT_EQ(f.ask("GET", "/ping").status, 200);
  EXPECT_EQ(f.ask("POST", "/v1/projects/p/models/line:predict", R"({"instances":[1]})").body,
            R"({"predictions":[2.5]})");
  EXPECT_EQ(f.ask("POST", "/v1/projects/p/models/line/versions/3:predict", R"({"instances":[1]})").body,
            R"({"predictions":[2.5]})");
  const std::string metrics = f.ask("GET", "/metrics").body;
  EXPECT_NE(metrics.find(":tensorflow:serving:request_count{model_name=\"line\",status=\"OK\"}"),
            std::string::npos);
}

TEST(Rest, VersionsChangeAndHalfWrittenOnesAreNotServed) {
  Fixture f;
  write_line_model(f.base("line") + "/1", 0, 1);
  ASSERT_TRUE(f.models.apply({{f.model("line")}}));
  EXPECT_EQ(f.predict(R"({"instances":[9]})").body, R"({"predictions":[1.0]})");

  // Half of version 2 is there, and seen; nobody notices.
  write_line_model(f.folder.path() + "/whole", 0, 2);
  const std::string whole = *read_file(f.folder.path() + "/whole/model.slipway");
  ASSERT_TRUE(make_folders(f.base("line") + "/2"));
  ASSERT_TRUE(write_file(f.base("line") + "/2/model.slipway", whole.substr(0, whole.size() / 2)));
  f.wait_until([&] {
    const auto status = f.models.status("line", 2);
    return status && status->front().failure.code != Code::ok;
  });
  EXPECT_EQ(f.predict(R"({"instances":[9]})").body, R"({"predictions":[1.0]})");

  // The rest of it comes.
  ASSERT_TRUE(write_file(f.base("line") + "/2/model.slipway", whole));
  f.wait_until([&] { return f.predict(R"({"instances":[9]})").body == R"({"predictions":[2.0]})"; });
  f.wait_until([&] { return f.models.status("line", 1)->front().state == VersionState::end; });
  EXPECT_EQ(f.ask("POST", "/v1/models/line/versions/1:predict", R"({"instances":[9]})").status, 404);

  // A base folder that goes away changes nothing.
  std::filesystem::rename(f.base("line"), f.base("away"));
  std::filesystem::create_directory(f.base("line"));
  std::filesystem::remove(f.base("line"));
  EXPECT_EQ(f.predict(R"({"instances":[9]})").status, 200);
}

TEST(Rest, LabelsPointAtAvailableVersions) {
  Fixture f;
  write_line_model(f.base("line") + "/1", 0, 1);
  write_line_model(f.base("line") + "/2", 0, 2);
  ModelConfig config = f.model("line");
  config.policy = AllPolicy{};
  config.labels = {{"stable", 1}, {"canary", 2}};
  ASSERT_TRUE(f.models.apply({{config}}));
  const auto labelled = [&](const char* label) {
    return f.ask("POST", std::string("/v1/models/line/labels/") + label + ":predict", R"({"instances":[9]})")
        .body;
  };
  EXPECT_EQ(labelled("stable"), R"({"predictions":[1.0]})");
  EXPECT_EQ(labelled("canary"), R"({"predictions":[2.0]})");
  ModelConfig moved = config;
  moved.labels["stable"] = 3;
  const auto refused = f.models.apply({{moved}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::failed_precondition);
  EXPECT_EQ(labelled("stable"), R"({"predictions":[1.0]})");
  moved.labels["stable"] = 2;
  ASSERT_TRUE(f.models.apply({{moved}}));
  EXPECT_EQ(labelled("stable"), R"({"predictions":[2.0]})");
  ASSERT_TRUE(f.models.apply({}));
  f.wait_until([&] { return f.predict(R"({"instances":[9]})").status == 404; });
}

TEST(Rest, WhatHoldsNoModelOfOursSaysSo) {
  Fixture f;
  ASSERT_TRUE(make_folders(f.base("line") + "/1"));
  ASSERT_TRUE(write_file(f.base("line") + "/1/saved_model.pb", "x"));
  ASSERT_TRUE(f.models.apply({{f.model("line")}}));
  const std::string status = f.ask("GET", "/v1/models/line").body;
  EXPECT_NE(status.find(R"("error_code":"UNIMPLEMENTED")"), std::string::npos) << status;
  EXPECT_EQ(f.ask("GET", "/v2/health/ready").status, 503);
}

TEST(Rest, BatchesGiveEachRequestItsOwnRows) {
  ExecutorOptions options;
  options.batching = BatchingParameters{.max_batch_size = 8,
                                        .timeout = 1ms,
                                        .max_enqueued_batches = 1000,
                                        .threads = 2,
                                        .allowed_batch_sizes = {4, 8}};
  Fixture f(options);
  write_line_model(f.base("line") + "/1");
  ASSERT_TRUE(f.models.apply({{f.model("line")}}));
  std::mutex mutex;
  std::condition_variable answered;
  std::map<int, std::string> answers;
  for (int i = 0; i < 200; ++i) {
    net::Request request;
    request.method = "POST";
    request.target = request.path = "/v1/models/line:predict";
    request.body = i % 3 == 0 ? fmt::format(R"({{"instances":[{0},{0}]}})", 2 * i)
                              : fmt::format(R"({{"instances":[{}]}})", 2 * i);
    if (i % 50 == 7) request.body = R"({"instances":[[1,2,3]]})";  // fails, and fails nobody else
    f.rest.handle(request, [&, i](net::Response response) {
      const std::lock_guard lock(mutex);
      answers[i] = response.body;
      answered.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  answered.wait(lock, [&] { return answers.size() == 200; });
  for (int i = 0; i < 200; ++i) {
    const std::string one = fmt::format("{}.0", i + 2);
    if (i % 50 == 7)
      EXPECT_NE(answers[i].find("3 values in each row"), std::string::npos) << answers[i];
    else
      EXPECT_EQ(answers[i], fmt::format(R"({{"predictions":[{}]}})", i % 3 == 0 ? one + "," + one : one));
  }
}

TEST(Rest, ARequestWhoseTimeIsOverIsNotRun) {
  Fixture f;
  write_line_model(f.base("line") + "/1");
  ASSERT_TRUE(f.models.apply({{f.model("line")}}));
  auto served = f.models.find("line", NewestVersion{});
  std::optional<Failure> failure;
  const float one[] = {1};
  Tensors inputs;
  inputs["input"] = float_tensor({1, 1}, one);
  f.executor.execute({"line", *served, default_signature, "predict", inputs, f.clock.now() - 1s,
                      [&](Answer<Tensors> outputs) {
                        failure = outputs ? Failure{Code::ok, ""} : outputs.error();
                      }});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, Code::deadline_exceeded);
}

TEST(JoinInputs, PadsLengthsWithTheTensorsOwnFirstElement) {
  const float a[] = {1, 2}, b[] = {3, 4, 5, 6, 7, 8};
  Tensors first, second;
  first["x"] = float_tensor({1, 2}, a);
  second["x"] = float_tensor({2, 3}, b);
  EXPECT_FALSE(join_inputs({&first, &second}, 0, false));
  const auto joined = join_inputs({&first, &second}, 1, true);
  ASSERT_TRUE(joined) << joined.error().message;
  const float expected[] = {1, 2, 1, 3, 4, 5, 6, 7, 8, 3, 4, 5};
  EXPECT_EQ(joined->at("x"), float_tensor({4, 3}, expected));
}

}  // namespace
}  // namespace slipway::serve
