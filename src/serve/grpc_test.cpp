#include <gtest/gtest.h>

#include <cstring>

#include "serve/grpc_messages.h"
#include "serve/grpc_server.h"
#include "train/state/protobuf.h"

namespace slipway::serve {
namespace {

using train::Message;

Message shape_of(std::initializer_list<std::uint64_t> sides) {
  Message shape;
  for (const std::uint64_t side : sides) {
    Message dimension;
    dimension.integer(1, side);
    shape.message(2, dimension);
  }
  return shape;
}
Message tensor_of(std::uint64_t type, std::initializer_list<std::uint64_t> sides) {
  Message tensor;
  tensor.integer(1, type).message(2, shape_of(sides));
  return tensor;
}

TEST(TensorProto, RawContentAndTypedValuesAreTheSame) {
  const float values[] = {1, 2.5};
  const std::string_view raw(reinterpret_cast<const char*>(values), sizeof values);
  const Tensor expected = float_tensor({2}, values);
  EXPECT_EQ(*parse_tensor_proto(tensor_of(1, {2}).bytes(4, raw).str()), expected);
  EXPECT_EQ(*parse_tensor_proto(tensor_of(1, {2}).bytes(5, raw).str()), expected) << "packed";
  EXPECT_EQ(*parse_tensor_proto(tensor_of(1, {2}).real(5, 1.0F).real(5, 2.5F).str()), expected)
      << "one by one";
}

TEST(TensorProto, AShortListRepeatsItsLastValue) {
  const auto numbers = parse_tensor_proto(tensor_of(3, {2, 2}).integer(7, 5).integer(7, 6).str());
  ASSERT_TRUE(numbers) << numbers.error().message;
  EXPECT_EQ(numbers->values<std::int32_t>()[3], 6);
  EXPECT_EQ(parse_tensor_proto(tensor_of(9, {3}).str())->values<std::int64_t>()[2], 0);
  EXPECT_EQ(parse_tensor_proto(tensor_of(7, {2}).bytes(8, "a").str())->strings,
            (std::vector<std::string>{"a", "a"}));
}

TEST(TensorProto, EveryTypeComesBack) {
  for (int i = 0; i <= static_cast<int>(DataType::string); ++i) {
    const auto type = static_cast<DataType>(i);
    for (const std::int64_t count : {0, 1, 3, 64, 65, 1000}) {
      Tensor tensor{type, {count}, {}, {}};
      for (std::int64_t e = 0; e < count; ++e) {
        if (type == DataType::string)
          tensor.strings.push_back(std::string(static_cast<std::size_t>(e % 5), 'x'));
        for (std::size_t b = 0; b < names(type).size; ++b)
          tensor.bytes.push_back(static_cast<std::byte>(type == DataType::boolean ? e % 2 : 255 - e % 200));
      }
      const auto again = parse_tensor_proto(format_tensor_proto(tensor));
      ASSERT_TRUE(again) << names(type).oip << again.error().message;
      EXPECT_EQ(*again, tensor) << names(type).oip << count;
    }
  }
}

TEST(TensorProto, WhatDoesNotAddUpIsRefused) {
  struct Row {
    std::string bytes;
    Code code;
  };
  const Row rows[] = {
      {"\xff\xff", Code::invalid_argument},
      {tensor_of(99, {1}).str(), Code::invalid_argument},
      {tensor_of(1, {2}).bytes(4, "abc").str(), Code::invalid_argument},
      {tensor_of(1, {2}).bytes(5, "abc").str(), Code::invalid_argument},
      {tensor_of(3, {1}).integer(7, 1).integer(7, 2).str(), Code::invalid_argument},
      {tensor_of(1, {static_cast<std::uint64_t>(-1)}).str(), Code::invalid_argument},
      {tensor_of(1, {std::uint64_t{1} << 40, std::uint64_t{1} << 40}).str(), Code::invalid_argument},
      {tensor_of(1, {std::uint64_t{1} << 40}).str(), Code::resource_exhausted},
      {tensor_of(7, {std::uint64_t{1} << 30}).str(), Code::resource_exhausted},
  };
  for (const Row& row : rows) {
    const auto tensor = parse_tensor_proto(row.bytes);
    ASSERT_FALSE(tensor);
    EXPECT_EQ(tensor.error().code, row.code) << tensor.error().message;
  }
}

TEST(PredictRequest, ReadsSpecInputsAndFilter) {
  Message version, spec, entry, request;
  version.integer(1, 42);
  spec.bytes(1, "m").message(2, version).bytes(3, "sig");
  entry.bytes(1, "x").message(2, tensor_of(1, {1}).real(5, 2.0F));
  request.message(1, spec).message(2, entry).bytes(3, "y");
  const auto parsed = parse_predict_request(request.str());
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->spec.name, "m");
  EXPECT_EQ(parsed->spec.version, 42);
  EXPECT_EQ(parsed->spec.signature, "sig");
  EXPECT_EQ(parsed->inputs.at("x").values<float>()[0], 2);
  EXPECT_EQ(parsed->output_filter, std::vector<std::string>{"y"});
  for (std::size_t cut = 0; cut < request.str().size(); ++cut)
    static_cast<void>(parse_predict_request(request.str().substr(0, cut)));

  Message many, large;
  large.bytes(1, "a").message(2, tensor_of(1, {50'000'000}));  // 200 MB of zeros in a few bytes
  many.message(2, large).message(2, large);
  EXPECT_EQ(parse_predict_request(many.str()).error().code, Code::resource_exhausted);

  Signature signature;
  signature.outputs["y"] = {};
  EXPECT_TRUE(check_output_filter({"y"}, signature));
  EXPECT_FALSE(check_output_filter({"y", "y"}, signature));
  EXPECT_FALSE(check_output_filter({"z"}, signature));
}

TEST(Grpc, TimeoutsAndMessages) {
  EXPECT_EQ(parse_grpc_timeout("5S"), Duration(5s));
  EXPECT_EQ(parse_grpc_timeout("200m"), Duration(200ms));
  EXPECT_EQ(parse_grpc_timeout("99999999H"), Duration(std::chrono::hours(99999999)));
  for (const char* bad : {"", "5", "S", "5X", "-1S", "123456789S"})
    EXPECT_EQ(parse_grpc_timeout(bad), std::nullopt) << bad;
  EXPECT_EQ(encode_grpc_message("a%\nä"), "a%25%0A%C3%A4");
}

}  // namespace
}  // namespace slipway::serve
