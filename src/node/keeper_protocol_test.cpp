#include "node/keeper_protocol.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace slipway::node {
namespace {

std::string frame_of(const ProcessEnded& end) {
  std::string bytes;
  append_frame(bytes, FromKeeper(end));
  return bytes.substr(sizeof(std::uint32_t));  // as take_frame gives it: without the length
}

TEST(KeeperProtocol, AnEndHasAKnownKind) {
  ProcessEnded end;
  end.key = {{JobId{7}, 1, 2}, 3};
  end.detail = "it said so";
  // The byte is where two ends that differ in nothing but the kind differ.
  end.kind = ProcessEndKind::exited;
  std::string frame = frame_of(end);
  end.kind = ProcessEndKind::signalled;
  const std::string other = frame_of(end);
  const auto at = std::mismatch(frame.begin(), frame.end(), other.begin()).first;
  ASSERT_NE(at, frame.end());
  const int last = static_cast<int>(ProcessEndKind::not_started);
  for (int kind = 0; kind < 256; ++kind) {
    *at = static_cast<char>(kind);
    const Result<FromKeeper> parsed = parse_from_keeper(frame);
    ASSERT_EQ(parsed.has_value(), kind <= last) << kind;
    if (parsed) {
      EXPECT_EQ(static_cast<int>(std::get<ProcessEnded>(*parsed).kind), kind);
    } else {
      EXPECT_EQ(parsed.error().what, "a frame between agent and keeper is malformed");
    }
  }
}

}  // namespace
}  // namespace slipway::node
