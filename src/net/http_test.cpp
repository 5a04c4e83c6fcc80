#include "net/http.h"

#include <gtest/gtest.h>

#include "net/client.h"

namespace slipway::net {
namespace {

TEST(Http, FindsHeadersWithoutCase) {
  const Headers headers = {{"Content-Type", "a"}, {"X", "1"}, {"x", "2"}};
  EXPECT_EQ(find_header(headers, "content-TYPE"), "a");
  EXPECT_EQ(find_header(headers, "x"), "1");
  EXPECT_EQ(find_header(headers, "Content"), std::nullopt);
}

TEST(Http, PercentDecodes) {
  struct Row {
    const char* text;
    std::optional<std::string> decoded;
  };
  const Row rows[] = {
      {"", ""},
      {"abc", "abc"},
      {"a%20b", "a b"},
      {"%e2%82%AC", "\xe2\x82\xac"},
      {"a+b", "a+b"},
      {"%", std::nullopt},
      {"%1", std::nullopt},
      {"%zz", std::nullopt},
      {"%2", std::nullopt},
      {"%00", std::nullopt},
      {"x%2fy", "x/y"},
  };
  for (const Row& row : rows) EXPECT_EQ(percent_decode(row.text), row.decoded) << row.text;
}

TEST(Http, PercentEncodesWhatItDecodes) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(percent_decode(percent_encode(all)), all);
  EXPECT_EQ(percent_encode("aZ0-._~/ \xff"), "aZ0-._~%2F%20%FF");
}

TEST(Http, SplitsPaths) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(split_path("/v1/jobs/job_1"), (Parts{"v1", "jobs", "job_1"}));
  EXPECT_EQ(split_path("/"), Parts{});
  EXPECT_EQ(split_path("/a/"), Parts{"a"});
  EXPECT_EQ(split_path("/a//b"), (Parts{"a", "", "b"}));
  EXPECT_EQ(split_path("/a%2Fb/c%5B0%5D"), (Parts{"a/b", "c[0]"}));
  EXPECT_EQ(split_path("/a/%zz"), std::nullopt);
}

TEST(Http, ParsesRanges) {
  struct Row {
    const char* header;
    std::uint64_t size;
    const char* outcome;  // "first-last", "whole", "outside"
  };
  const Row rows[] = {
      {"bytes=0-99", 1000, "0-99"},     {"bytes=100-", 1000, "100-999"},
      {"bytes=-500", 1000, "500-999"},  {"bytes=-5000", 1000, "0-999"},
      {"bytes=0-5000", 1000, "0-999"},  {"bytes=999-", 1000, "999-999"},
      {"bytes=1000-", 1000, "outside"}, {"bytes=-0", 1000, "outside"},
      {"bytes=0-", 0, "outside"},       {"bytes=5-4", 1000, "whole"},
      {"bytes=0-1,5-6", 1000, "whole"}, {"items=0-1", 1000, "whole"},
      {"bytes=", 1000, "whole"},        {"bytes=-", 1000, "whole"},
      {"bytes=a-b", 1000, "whole"},     {"bytes=3000000000-", 4000000000, "3000000000-3999999999"},
  };
  for (const Row& row : rows) {
    const auto range = parse_range(row.header, row.size);
    std::string outcome = "outside";
    if (range && !*range) outcome = "whole";
    if (range && *range) outcome = std::to_string((*range)->first) + "-" + std::to_string((*range)->last);
    EXPECT_EQ(outcome, row.outcome) << row.header;
  }
}

TEST(Http, ParsesUrls) {
  struct Row {
    const char* text;
    const char* authority;  // empty: refused
    const char* path;
  };
  const Row rows[] = {
      {"http://127.0.0.1:8470", "127.0.0.1:8470", ""},
      {"http://host", "host:80", ""},
      {"host:1234", "host:1234", ""},
      {"http://[::1]:8470/", "[::1]:8470", ""},
      {"http://h:1/a/b/", "h:1", "/a/b"},
      {"https://h:1", "h:1", ""},
      {"ftp://h:1", "", ""},
      {"", "", ""},
      {"http://:80", "", ""},
      {"h:0", "", ""},
      {"h:65536", "", ""},
      {"h:x", "", ""},
      {"http://[::1", "", ""},
      {"http://u@h:1", "", ""},
      {"http://h:1/a b", "", ""},
      {"http://[::1]x", "", ""},
  };
  for (const Row& row : rows) {
    const auto url = parse_url(row.text);
    EXPECT_EQ(url ? url->authority() : "", row.authority) << row.text;
    EXPECT_EQ(url ? url->path : "", row.path) << row.text;
    EXPECT_EQ(url ? ErrorCode::invalid : url.error().code, ErrorCode::invalid);
  }
}

TEST(Http, ParsesUrlsOfTheWeb) {
  EXPECT_EQ(parse_web_url("https://lab.example/data").value().origin(), "https://lab.example");
  EXPECT_EQ(parse_web_url("https://lab.example:8443").value().origin(), "https://lab.example:8443");
  EXPECT_EQ(parse_web_url("http://lab.example").value().origin(), "http://lab.example:80");
  EXPECT_FALSE(parse_web_url("ftp://lab.example"));
}

}  // namespace
}  // namespace slipway::net
