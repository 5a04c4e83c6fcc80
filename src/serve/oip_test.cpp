#include "serve/oip.h"

#include <gtest/gtest.h>

#include <cstring>

#include "serve/scoring.h"

namespace slipway::serve {
namespace {

Signature frame_signature() {
  Signature signature;
  signature.inputs["a"] = {"a", DataType::uint32, {-1, 2}, false};
  signature.inputs["b"] = {"b", DataType::boolean, {-1}, false};
  signature.outputs["s"] = {"s", DataType::string, {-1}, false};
  signature.outputs["y"] = {"y", DataType::float32, {-1}, false};
  return signature;
}

TEST(Inference, TheWorkedFrame) {
  const std::string json =
      R"({"id":"7","inputs":[{"name":"a","shape":[2,2],"datatype":"UINT32","parameters":{"binary_data_size":16}},)"
      R"({"name":"b","shape":[3],"datatype":"BOOL","parameters":{"binary_data_size":3}}],)"
      R"("outputs":[{"name":"y","parameters":{"binary_data":true}},{"name":"s"}]})";
  const std::uint32_t values[] = {1, 2, 3, 4000000000u};
  std::string body = json + std::string(reinterpret_cast<const char*>(values), sizeof values);
  body += std::string("\x01\x00\x01", 3);
  ASSERT_EQ(body.size(), json.size() + 19);
  const auto request = parse_infer(body, json.size(), frame_signature());
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->inputs.at("a").values<std::uint32_t>()[3], 4000000000u);
  EXPECT_EQ(request->inputs.at("b").count(), 3u);

  Tensors outputs;
  const float y[] = {0.5F};
  outputs["y"] = float_tensor({1}, y);
  outputs["s"] = {DataType::string, {1}, {}, {"hi"}};
  const InferBody answer = format_infer("m", 3, *request, outputs);
  const std::string head =
      R"({"model_name":"m","model_version":"3","id":"7","outputs":[{"name":"y","datatype":"FP32","shape":[1],)"
      R"("parameters":{"binary_data_size":4}},{"name":"s","datatype":"BYTES","shape":[1],"data":["hi"]}]})";
  EXPECT_EQ(answer.bytes, head + std::string("\0\0\0\x3f", 4));
  EXPECT_EQ(answer.json_size, head.size());

  for (std::size_t cut = 0; cut < body.size(); ++cut)
    EXPECT_FALSE(parse_infer(body.substr(0, cut), std::min(cut, json.size()), frame_signature())) << cut;
  EXPECT_FALSE(parse_infer(body + "x", json.size(), frame_signature()));
}

TEST(Inference, BytesElementsCarryTheirLength) {
  const Tensor tensor{DataType::string, {2}, {}, {"", std::string("a\0b", 3)}};
  std::string raw;
  append_raw_tensor(raw, tensor);
  EXPECT_EQ(raw, std::string("\0\0\0\0\3\0\0\0a\0b", 11));
  EXPECT_EQ(*parse_raw_tensor(DataType::string, {2}, raw, "x"), tensor);
  EXPECT_FALSE(parse_raw_tensor(DataType::string, {3}, raw, "x"));
  EXPECT_FALSE(parse_raw_tensor(DataType::string, {2}, raw.substr(0, 9), "x"));
  EXPECT_FALSE(parse_raw_tensor(DataType::string, {2}, raw.substr(0, 6), "x"));
}

TEST(Inference, NestedAndFlatDataAreTheSame) {
  Signature signature;
  signature.inputs["x"] = {"x", DataType::float32, {-1, 2}, false};
  signature.outputs["y"] = {"y", DataType::float32, {-1}, false};
  const auto parse = [&](const std::string& input) {
    return parse_infer(R"({"inputs":[{"name":"x",)" + input + "}]}", std::nullopt, signature);
  };
  const auto flat = parse(R"("shape":[2,2],"datatype":"FP32","data":[1,2,3,4])");
  const auto nested = parse(R"("shape":[2,2],"datatype":"FP32","data":[[1,2],[3,4]])");
  ASSERT_TRUE(flat && nested);
  EXPECT_EQ(flat->inputs, nested->inputs);
  EXPECT_EQ(flat->outputs, (std::vector<InferOutput>{{"y", false}}));
  struct Row {
    const char* input;
    const char* error;
  };
  const Row rows[] = {
      {R"("shape":[2,2],"datatype":"FP32","data":[1,2,3])",
       "input x has 3 values, and its shape [2,2] takes 4"},
      {R"("shape":[2,-2],"datatype":"FP32","data":[1])",
       "the shape of input x has -2; sides are whole numbers from 0 on"},
      {R"("shape":[4611686018427387904,4],"datatype":"FP32","data":[])",
       "input x: the sides [4611686018427387904,4] multiply up to too much"},
      {R"("shape":[1],"datatype":"FLOAT","data":[1])",
       "input x has the datatype \"FLOAT\"; known are BOOL, UINT8 to UINT64, INT8 to INT64, FP16, FP32, "
       "FP64, BF16 and BYTES"},
      {R"("shape":[1],"datatype":"FP16","data":[1])", "input x is FP16, which is sent in binary only"},
      {R"("shape":[1],"datatype":"INT64","data":[1])", "input x is INT64, and the model takes FP32"},
      {R"("shape":[1],"datatype":"FP32")", "input x has no list `data`"},
      {R"("shape":[1],"datatype":"FP32","parameters":{"binary_data_size":4})",
       "input x announces 4 bytes, and 0 are left of the body"},
  };
  for (const Row& row : rows) {
    const auto request = parse(row.input);
    ASSERT_FALSE(request) << row.input;
    EXPECT_EQ(request.error().message, row.error);
  }
  EXPECT_FALSE(parse_infer(R"({"inputs":[]})", std::nullopt, signature));
}

TEST(Scoring, FormsOfATable) {
  Signature signature;
  signature.inputs["x"] = {"x", DataType::float32, {-1, 2}, false};
  const float values[] = {1, 2, 3, 4};
  const Tensor expected = float_tensor({2, 2}, values);
  for (const char* body : {R"({"inputs":[[1,2],[3,4]]})", R"({"instances":[[1,2],[3,4]]})",
                           R"({"dataframe_split":{"data":[[1,2],[3,4]]}})",
                           R"({"dataframe_split":{"columns":["a","b"],"index":[0,1],"data":[[1,2],[3,4]]}})",
                           R"({"dataframe_records":[{"a":1,"b":2},{"b":4,"a":3}]})"}) {
    const auto inputs = parse_scoring_json(body, signature);
    ASSERT_TRUE(inputs) << body << inputs.error().message;
    EXPECT_EQ(inputs->at("x"), expected) << body;
  }
  const auto csv = parse_scoring_csv("a,\"b\"\r\n1,2\n3, 4\n", signature);
  ASSERT_TRUE(csv) << csv.error().message;
  EXPECT_EQ(csv->at("x"), expected);
  for (const char* bad :
       {R"({})", R"({"inputs":1,"instances":[1]})", R"({"dataframe_split":{"columns":["a"],"data":[[1,2]]}})",
        R"({"dataframe_records":[{"a":1},{"b":1}]})", R"({"dataframe_records":[1]})",
        R"({"dataframe_split":{"data":[]}})"})
    EXPECT_FALSE(parse_scoring_json(bad, signature)) << bad;
  for (const char* bad : {"", "a,b\n", "a,b\n1\n", "a,b\n1,x\n"})
    EXPECT_FALSE(parse_scoring_csv(bad, signature)) << bad;
}

TEST(Scoring, SeveralInputsAreColumnsByName) {
  Signature signature;
  signature.inputs["age"] = {"age", DataType::int64, {-1}, false};
  signature.inputs["name"] = {"name", DataType::string, {-1}, false};
  const auto inputs = parse_scoring_json(
      R"({"dataframe_split":{"columns":["name","other","age"],"data":[["a",0,3],["b",0,4]]}})", signature);
  ASSERT_TRUE(inputs) << inputs.error().message;
  EXPECT_EQ(inputs->at("name").strings, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(inputs->at("age").shape, Shape{2});
  EXPECT_FALSE(parse_scoring_csv("name\na\n", signature));
}

}  // namespace
}  // namespace slipway::serve
