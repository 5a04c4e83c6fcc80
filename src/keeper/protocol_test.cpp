#include "keeper/protocol.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace slipway::keeper {
namespace {

std::string frame_of(const ProcessEnded& end) {
  std::string bytes;
  append_frame(bytes, FromKeeper(end));
  return bytes.substr(sizeof(std::uint32_t));  // as take_frame gives it: without the length
}

TEST(KeeperProtocol, AnEndHasAKnownKind) {
  ProcessEnded end;
  end.key = AttemptKey{{JobId{7}, 1, 2}, 3};
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

TEST(KeeperProtocol, AStartSaysWhetherCoresAreLimited) {
  for (const bool limited : {false, true}) {
    StartRequest start;
    start.key = AttemptKey{{JobId{7}, 1, 2}, 3};
    start.cpu_limit = limited;
    std::string bytes;
    append_frame(bytes, ToKeeper(start));
    const Result<ToKeeper> parsed = parse_to_keeper(std::string_view(bytes).substr(sizeof(std::uint32_t)));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(std::get<StartRequest>(*parsed), start);
  }
}

TEST(KeeperProtocol, TheListOfAKeeperOfBeforeDoesNotSayHowCoresAreLimited) {
  ProcessList list;
  list.notes = {"no memory limits"};
  std::string bytes;
  append_frame(bytes, FromKeeper(list));
  std::string frame = bytes.substr(sizeof(std::uint32_t));
  frame.resize(frame.size() - 1 - 3 * sizeof(std::uint32_t));  // a flag and a count; two empty texts
  frame[0] = 64;
  const Result<FromKeeper> parsed = parse_from_keeper(frame);
  ASSERT_TRUE(parsed) << parsed.error().what;
  EXPECT_EQ(std::get<ProcessList>(*parsed), list);
}

TEST(KeeperProtocol, AKeeperOfBeforeKeepsNoDuties) {
  ProcessList list;
  list.cpu_limit = "cgroup";
  std::string bytes;
  append_frame(bytes, FromKeeper(list));
  std::string frame = bytes.substr(sizeof(std::uint32_t));
  frame.resize(frame.size() - 1 - sizeof(std::uint32_t));  // a flag and a count
  frame[0] = 67;
  const Result<FromKeeper> parsed = parse_from_keeper(frame);
  ASSERT_TRUE(parsed) << parsed.error().what;
  EXPECT_EQ(std::get<ProcessList>(*parsed), list);
  EXPECT_FALSE(std::get<ProcessList>(*parsed).keeps_duties);
}

TEST(KeeperProtocol, DutiesTravelWithAStartAndAlone) {
  const WorkKey key = AttemptKey{{JobId{7}, 1, 2}, 3};
  StartRequest start;
  start.key = key;
  start.cpu_limit = true;
  start.lease = 5s;
  start.duties = "push";
  for (const ToKeeper& message : {ToKeeper(start), ToKeeper(DutyRecord{key, 2, std::string("a\0b", 3)})}) {
    std::string bytes;
    append_frame(bytes, message);
    const Result<ToKeeper> parsed = parse_to_keeper(std::string_view(bytes).substr(sizeof(std::uint32_t)));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(*parsed, message);
  }
}

}  // namespace
}  // namespace slipway::keeper
