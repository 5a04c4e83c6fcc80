#include "gang_exec/frames.h"

#include <gtest/gtest.h>

#include "base/hmac.h"

namespace slipway::gang_exec {
namespace {

TEST(Frames, RoundTrip) {
  FrameReader reader(10);
  const std::string bytes = format_frame(FrameKind::input, "hello") + format_frame(FrameKind::input_end, "");
  for (const char byte : bytes) {
    reader.add({&byte, 1});
    const auto frame = reader.next();
    ASSERT_TRUE(frame);
    if (!*frame) continue;
    EXPECT_EQ((*frame)->payload, (*frame)->kind == FrameKind::input ? "hello" : "");
  }
  EXPECT_EQ(reader.buffered(), 0u);
  reader.add(format_frame(FrameKind::output, std::string(11, 'x')).substr(0, 5));
  EXPECT_EQ(reader.next().error().code, ErrorCode::too_large);
  FrameReader other(10);
  other.add("GET / HTTP/1.1\r\n");
  EXPECT_EQ(other.next().error().code, ErrorCode::invalid);
}

TEST(Frames, Requests) {
  const StartRequest request{{"/bin/sh", "-c", "echo"}, {{"A", "1"}, {"B", ""}}};
  const std::string text = format_request(request);
  const auto parsed = parse_request(text);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->argv, request.argv);
  EXPECT_EQ(parsed->variables, request.variables);
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(parse_request(text.substr(0, size))) << size;
  EXPECT_FALSE(parse_request(text + "x"));
  EXPECT_FALSE(parse_request(format_request({{}, {}})));
  EXPECT_FALSE(parse_request(format_request({{""}, {}})));
  EXPECT_FALSE(parse_request(format_request({{std::string("a\0b", 3)}, {}})));
  EXPECT_FALSE(parse_request(format_request({{"a"}, {{"X=Y", "1"}}})));
  EXPECT_FALSE(parse_request(std::string("\xff\xff\xff\xff", 4)));
  for (const ExitStatus end : {ExitStatus{false, 255}, ExitStatus{true, 9}})
    EXPECT_EQ(parse_end(format_end(end)), end);
  EXPECT_FALSE(parse_end("x1"));
}

TEST(Frames, MacIsHmacSha256) {  // RFC 4231, cases 2 and 6
  EXPECT_EQ(mac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(mac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_TRUE(is_equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(is_equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(is_equal_in_constant_time("abc", "ab"));
}

}  // namespace
}  // namespace slipway::gang_exec
