#include "serve/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

namespace slipway::serve {
namespace {

std::string error_of(std::string_view text) {
  const auto json = Json::parse(text);
  return json ? "" : json.error().message;
}

TEST(Json, RefusesWithTheTextsClientsKnow) {
  struct Row {
    const char* text;
    const char* error;
  };
  const Row rows[] = {
      {"", "JSON Parse error: The document is empty"},
      {"  ", "JSON Parse error: The document is empty. at offset: 2"},
      {"{", "JSON Parse error: Missing a name for object member. at offset: 1"},
      {"[", "JSON Parse error: Invalid value. at offset: 1"},
      {"[1,]", "JSON Parse error: Invalid value. at offset: 3"},
      {"[1 2]", "JSON Parse error: Missing a comma or ] after an array element. at offset: 3"},
      {"{\"a\" 1}", "JSON Parse error: Missing a colon after a name of object member. at offset: 5"},
      {"{\"a\":1 \"b\":2}", "JSON Parse error: Missing a comma or } after an object member. at offset: 7"},
      {"{} x", "JSON Parse error: The document root must not be followed by other values. at offset: 3"},
      {"[tru]", "JSON Parse error: Invalid value. at offset: 1"},
      {"[1.]", "JSON Parse error: Miss fraction part in number. at offset: 3"},
      {"[1e]", "JSON Parse error: Miss exponent in number. at offset: 3"},
      {"[1e400]", "JSON Parse error: Number too big to be stored in double. at offset: 1"},
      {"[-NaN]", "JSON Parse error: Invalid value. at offset: 2"},
      {"[\"a]", "JSON Parse error: Missing a closing quotation mark in string. at offset: 1"},
      {"[\"\\x\"]", "JSON Parse error: Invalid escape character in string. at offset: 2"},
      {"[\"\\u12g4\"]", "JSON Parse error: Incorrect hex digit after \\u escape in string. at offset: 2"},
      {"[\"\\ud800\"]", "JSON Parse error: The surrogate pair in string is invalid. at offset: 2"},
      {"[01]", "JSON Parse error: Missing a comma or ] after an array element. at offset: 2"},
  };
  for (const Row& row : rows) EXPECT_EQ(error_of(row.text), row.error) << row.text;
}

TEST(Json, DepthAndCountAreBounded) {
  EXPECT_EQ(error_of(std::string(1000, '[') + std::string(1000, ']')), "");
  EXPECT_NE(error_of(std::string(10'000, '[') + std::string(10'000, ']')).find("Nested deeper"),
            std::string::npos);
  const auto few = Json::parse("[1,2,3]", {.depth_max = 9, .values_max = 3});
  ASSERT_FALSE(few);
  EXPECT_NE(few.error().message.find("More values"), std::string::npos);
}

TEST(Json, NumbersKeepTheirDigits) {
  struct Row {
    const char* text;
    std::optional<std::int64_t> as_int64;
    std::optional<std::uint64_t> as_uint64;
    double as_double;
  };
  const Row rows[] = {
      {"0", 0, 0, 0},
      {"-0", 0, 0, -0.0},
      {"9223372036854775807", INT64_MAX, 9223372036854775807u, 9223372036854775807.0},
      {"18446744073709551615", std::nullopt, UINT64_MAX, 18446744073709551615.0},
      {"18446744073709551616", std::nullopt, std::nullopt, 18446744073709551616.0},
      {"-9223372036854775808", INT64_MIN, std::nullopt, -9223372036854775808.0},
      {"1.0", std::nullopt, std::nullopt, 1},
      {"1e2", std::nullopt, std::nullopt, 100},
      {"1e-400", std::nullopt, std::nullopt, 0},
      {"Infinity", std::nullopt, std::nullopt, std::numeric_limits<double>::infinity()},
      {"-Infinity", std::nullopt, std::nullopt, -std::numeric_limits<double>::infinity()},
  };
  for (const Row& row : rows) {
    const auto json = Json::parse(row.text);
    ASSERT_TRUE(json) << row.text;
    EXPECT_EQ(json->root().as_int64(), row.as_int64) << row.text;
    EXPECT_EQ(json->root().as_uint64(), row.as_uint64) << row.text;
    EXPECT_EQ(json->root().as_double(), row.as_double) << row.text;
  }
  EXPECT_TRUE(std::isnan(Json::parse("NaN")->root().as_double()));
}

TEST(Json, ShortNumbersRoundAsLongOnes) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const auto digits = static_cast<int>(random() % 18), fraction = static_cast<int>(random() % 18);
    std::string text = random() % 2 == 0 ? "-" : "";
    text += std::to_string(random() % 10);
    for (int d = 0; d < digits && text.back() != '0'; ++d) text += static_cast<char>('0' + random() % 10);
    if (fraction > 0) text += '.';
    for (int d = 0; d < fraction; ++d) text += static_cast<char>('0' + random() % 10);
    const auto json = Json::parse(text);
    if (!json) continue;  // 05
    ASSERT_EQ(json->root().as_double(), std::strtod(text.c_str(), nullptr)) << text;
  }
}

TEST(Json, StringsAreUnescaped) {
  const auto json = Json::parse(R"(["a\"\\\/\b\f\n\r\t","\u00e9\u20ac\ud83d\ude00"])");
  ASSERT_TRUE(json);
  auto child = json->root().children().begin();
  EXPECT_EQ((*child).as_string(), "a\"\\/\b\f\n\r\t");
  EXPECT_EQ((*++child).as_string(), "é€😀");
}

TEST(Json, FindsMembersAlsoByEscapedNames) {
  const auto json = Json::parse(R"({"a":[1,{"b":2}],"\u0063":3,"a":4})");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->root().size(), 3u);
  EXPECT_EQ(json->root().find("c")->as_int64(), 3);
  EXPECT_EQ(json->root().find("a")->size(), 2u);  // the first of two
  EXPECT_FALSE(json->root().find("b"));
}

TEST(Json, FloatsPrintAsTensorFlowServingPrintsThem) {
  struct Row {
    float value;
    const char* text;
  };
  const Row rows[] = {{3.0F, "3.0"},
                      {2.5F, "2.5"},
                      {0.2F, "0.2"},
                      {999999.0F, "999999.0"},
                      {9000000.0F, "9e+06"},
                      {0.00003F, "3e-05"},
                      {1.0F / 3, "0.333333343"},
                      {16777217.0F, "16777216.0"},
                      {-0.0F, "-0.0"},
                      {std::numeric_limits<float>::infinity(), "Infinity"},
                      {-std::numeric_limits<float>::infinity(), "-Infinity"},
                      {std::numeric_limits<float>::quiet_NaN(), "NaN"}};
  for (const Row& row : rows) {
    std::string text;
    append_number(text, row.value);
    EXPECT_EQ(text, row.text);
  }
  std::string text;
  append_number(text, 0.1);
  text += ' ';
  append_number(text, 1.0 / 3);
  EXPECT_EQ(text, "0.1 0.33333333333333331");
}

}  // namespace
}  // namespace slipway::serve
