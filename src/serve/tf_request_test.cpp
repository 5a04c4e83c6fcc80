#include "serve/tf_request.h"

#include <gtest/gtest.h>

#include <cmath>

#include "serve/tf_answer.h"
#include "serve/tf_path.h"

namespace slipway::serve {
namespace {

Signature one_input(DataType type) {
  Signature signature;
  signature.inputs["x"] = {"x:0", type, {-1}, false};
  signature.outputs["y"] = {"y:0", type, {-1}, false};
  return signature;
}

Signature two_inputs() {
  Signature signature = one_input(DataType::float32);
  signature.inputs["b"] = {"b:0", DataType::string, {-1}, false};
  return signature;
}

Answer<PredictInputs> parse(const std::string& body, const Signature& signature) {
  const auto json = parse_body(body);
  if (!json) return refuse(json.error());
  return parse_predict(json->root(), signature);
}

TEST(TfRequest, RowsBecomeOneTensor) {
  const auto inputs = parse(R"({"instances":[[1,2.5],[3,-1e2]]})", one_input(DataType::float32));
  ASSERT_TRUE(inputs) << inputs.error().message;
  EXPECT_EQ(inputs->format, BodyFormat::row);
  const float values[] = {1, 2.5, 3, -100};
  EXPECT_EQ(inputs->tensors.at("x"), float_tensor({2, 2}, values));
}

TEST(TfRequest, ScalarsEmptyListsAndNamedColumns) {
  const Signature signature = two_inputs();
  const auto rows = parse(R"({"instances":[{"x":1,"b":{"b64":"AQI="}},{"b":"t","x":2}]})", signature);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->tensors.at("b").strings, (std::vector<std::string>{"\x01\x02", "t"}));
  EXPECT_EQ(rows->tensors.at("x").shape, Shape{2});
  const auto columns = parse(R"({"inputs":{"x":[[],[]],"b":"s","extra":1}})", signature);
  ASSERT_TRUE(columns) << columns.error().message;
  EXPECT_EQ(columns->format, BodyFormat::columnar);
  EXPECT_EQ(columns->tensors.at("x").shape, (Shape{2, 0}));
  EXPECT_EQ(columns->tensors.at("b").shape, Shape{});
}

TEST(TfRequest, IntegersAreExactAndInRange) {
  const auto big = parse(R"({"instances":[9223372036854775807]})", one_input(DataType::int64));
  ASSERT_TRUE(big);
  EXPECT_EQ(big->tensors.at("x").values<std::int64_t>()[0], INT64_MAX);
  for (const char* bad : {"1.0", "1e2", "256", "-1", "true", "\"1\""})
    EXPECT_FALSE(parse(std::string(R"({"instances":[)") + bad + "]}", one_input(DataType::uint8))) << bad;
  EXPECT_TRUE(std::isinf(
      parse(R"({"instances":[1e39]})", one_input(DataType::float32))->tensors.at("x").values<float>()[0]));
}

TEST(TfRequest, RefusesWithTheTextsClientsKnow) {
  struct Row {
    const char* body;
    Signature signature;
    const char* error;
  };
  const Signature floats = one_input(DataType::float32);
  const Row rows[] = {
      {"[]", floats, "JSON Value: [] Is not object"},
      {"{}", floats, "Missing 'inputs' or 'instances' key"},
      {R"({"instances":[]})", floats, R"(JSON Value: {"instances":[]} No values in 'instances' array)"},
      {R"({"instances":1})", floats,
       R"(JSON Value: {"instances":1} Excepting 'instances' to be an list/array)"},
      {R"({"instances":[1],"inputs":1})", floats,
       R"(JSON Value: {"instances":[1],"inputs":1} Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist )"},
      {R"({"instances":["a"]})", floats,
       R"(Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: JSON Value: "a" Type: String is not of expected type: float)"},
      {R"({"instances":[[1],[1,2]]})", floats,
       "Failed to process element: 1 of 'instances' list. Error: INVALID_ARGUMENT: Expecting tensor size: 1 "
       "but got: 2"},
      {R"({"instances":[[1],1]})", floats,
       "Failed to process element: 1 of 'instances' list. Error: INVALID_ARGUMENT: Expecting shape [1] but "
       "got: []"},
      {R"({"instances":[[1,[2]]]})", floats,
       "Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: Encountered list at "
       "unexpected level: 1 expected < 1"},
      {R"({"instances":[[[1],2]]})", floats,
       "Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: JSON Value: 2 found at "
       "incorrect level: 2 in the JSON DOM. Expected at level: 2"},
      {R"({"instances":[1,{"x":1}]})", floats, "Expecting value/list but got object at item 1 of input list"},
      {R"({"instances":[{"x":1},1]})", floats, "Expecting object but got list at item 1 of input list"},
      {R"({"instances":[{"y":1}]})", floats,
       "Failed to process element: 0 key: y of 'instances' list. Error: INVALID_ARGUMENT: JSON object: does "
       "not have named input: y"},
      {R"({"instances":[{"x":1}]})", two_inputs(),
       R"(Failed to process element: 0 of 'instances' list. JSON object: {"x":1} keys must be equal to: b,x)"},
      {R"({"instances":[1]})", two_inputs(),
       "instances is a plain list, but expecting list of objects as multiple input tensors required as per "
       "tensorinfo_map"},
      {R"({"inputs":{"x":1}})", two_inputs(), "Missing named input: b in 'inputs' object."},
      {R"({"inputs":[[1],[2,3]]})", floats,
       "Encountered list at unexpected size: 2 at level: 1 expected size: 1"},
      {R"({"inputs":{"b64":"AQI="}})", floats,
       R"(JSON Value: {"b64":"AQI="} Type: Object is not of expected type: float)"},
      {R"({"inputs":{"b64":"!"}})", one_input(DataType::string), "Unable to base64 decode"},
  };
  for (const Row& row : rows) {
    const auto inputs = parse(row.body, row.signature);
    ASSERT_FALSE(inputs) << row.body;
    EXPECT_EQ(inputs.error(), (Failure{Code::invalid_argument, row.error})) << row.body;
  }
}

TEST(TfRequest, ExamplesShareTheirContext) {
  Signature signature;
  signature.inputs["a"] = {"a:0", DataType::float32, {-1, 2}, false};
  signature.inputs["b"] = {"b:0", DataType::string, {-1, 1}, false};
  const auto json =
      parse_body(R"({"context":{"b":"c"},"examples":[{"a":[1.0,2.0]},{"a":[3.0,4.5],"b":"own"}]})");
  const auto examples = parse_examples(json->root());
  ASSERT_TRUE(examples) << examples.error().message;
  const auto tensors = tensors_of(*examples, signature);
  ASSERT_TRUE(tensors) << tensors.error().message;
  EXPECT_EQ(tensors->at("b").strings, (std::vector<std::string>{"c", "own"}));
  const float values[] = {1, 2, 3, 4.5};
  EXPECT_EQ(tensors->at("a"), float_tensor({2, 2}, values));
}

TEST(TfRequest, ExamplesThatDoNotFitAreRefused) {
  const auto tensors = [](const char* body) -> Failure {
    Signature signature;
    signature.inputs["x"] = {"x:0", DataType::float32, {-1, 1}, false};
    const auto json = parse_body(body);
    const auto examples = parse_examples(json->root());
    if (!examples) return examples.error();
    const auto made = tensors_of(*examples, signature);
    return made ? Failure{Code::ok, ""} : made.error();
  };
  EXPECT_EQ(tensors(R"({"examples":[{"x":20.5}]})").message, "");
  EXPECT_EQ(tensors(R"({"examples":[{"x":20}]})").message,
            "Key: x.  Data types don't match. Expected type: float");
  EXPECT_EQ(tensors(R"({"examples":[{}]})").message,
            "Feature: x (data type: float) is required but could not be found.");
  EXPECT_EQ(tensors(R"({"examples":[{"x":[1.5,2.5]}]})").message,
            "Key: x.  Number of float values != expected.  Values size: 2 but output shape: [1]");
  EXPECT_EQ(tensors(R"({"examples":[{"x":[1.5,"a"]}]})").message,
            "Unexpected element type in feature: x expecting type: float");
  EXPECT_EQ(tensors(R"({"examples":[]})").message,
            R"(JSON Value: {"examples":[]} 'examples' value is an empty array)");
  EXPECT_EQ(tensors(R"({"examples":[1]})").message, "Example must be JSON object but got JSON Number");
}

TEST(TfAnswer, RowsAndColumns) {
  const float values[] = {2.5, 3, 4.5, 1};
  Tensors one;
  one["y"] = float_tensor({2, 2}, values);
  EXPECT_EQ(*format_predict(one, BodyFormat::row), R"({"predictions":[[2.5,3.0],[4.5,1.0]]})");
  EXPECT_EQ(*format_predict(one, BodyFormat::columnar), R"({"outputs":[[2.5,3.0],[4.5,1.0]]})");
  Tensors two = one;
  two["raw_bytes"] = {DataType::string, {2}, {}, {"a", "\xff"}};
  EXPECT_EQ(
      *format_predict(two, BodyFormat::row),
      R"({"predictions":[{"raw_bytes":{"b64":"YQ=="},"y":[2.5,3.0]},{"raw_bytes":{"b64":"/w=="},"y":[4.5,1.0]}]})");
  EXPECT_EQ(*format_predict(two, BodyFormat::columnar),
            R"({"outputs":{"raw_bytes":[{"b64":"YQ=="},{"b64":"/w=="}],"y":[[2.5,3.0],[4.5,1.0]]}})");
  two["raw_bytes"].shape = {1, 2};
  EXPECT_EQ(format_predict(two, BodyFormat::row).error().message,
            "Tensor name: y has inconsistent batch size: 2 expecting: 1");
  two["raw_bytes"].shape = {};
  EXPECT_EQ(format_predict(two, BodyFormat::row).error().message,
            "Tensor name: raw_bytes has no shape information ");
}

TEST(TfAnswer, StatusAndErrors) {
  EXPECT_EQ(
      format_status({{123, VersionState::available, {Code::ok, ""}}}),
      R"({"model_version_status":[{"version":"123","state":"AVAILABLE","status":{"error_code":"OK","error_message":""}}]})");
  EXPECT_EQ(format_failure("a \"b\"\n"), R"({"error": "a \"b\"\n"})");
}

TEST(TfPath, MatchesWholeWithoutCase) {
  const auto path = [](const char* method, const char* target) { return parse_tf_path(method, target); };
  EXPECT_EQ((*path("POST", "/V1/Models/m:predict"))->model, "m");
  EXPECT_EQ((*path("GET", "/v1/models/m%2Dx"))->model, "m-x");
  EXPECT_EQ((*path("GET", "/v1/models/m/versions/7/metadata"))->version, 7);
  EXPECT_EQ((*path("POST", "/v1/models/m/labels/stable:regress"))->label, "stable");
  for (const char* target :
       {"/v1/models/m:PREDICT", "/v1/models/m:predict?a=1", "/v1/models/m", "/v1/models/:predict",
        "/v1/models/m/versions/x:predict", "/v1/models/m/n:predict", "/v2/models/m:predict"})
    EXPECT_FALSE(*path("POST", target)) << target;
  EXPECT_FALSE(*path("GET", "/v1/models/m:predict"));
  EXPECT_EQ(path("GET", "/v1/models/m/versions/99999999999999999999").error().message, "");
}

}  // namespace
}  // namespace slipway::serve
