#include "api/request_limits.h"

#include <gtest/gtest.h>

namespace slipway::api {
namespace {

using namespace std::chrono_literals;

QuotaRecord quota(const std::string& user, std::optional<std::uint64_t> requests) {
  QuotaRecord record{{"default", user}, {}, "root", {}};
  record.limits[QuotaKind::requests] = requests;
  return record;
}

int taken(RequestLimits& limits, const std::string& user, TimePoint now) {
  for (int requests = 0; requests < 1'000; ++requests)
    if (limits.take("default", user, now)) return requests;
  return 1'000;
}

TEST(RequestLimits, ABucketFillsWithTime) {
  RequestLimits limits;
  TimePoint now{1000h};
  EXPECT_EQ(taken(limits, "ana", now), 1'000) << "without a quota any number";
  limits.change(quota("ana", 10));
  EXPECT_EQ(taken(limits, "ana", now), 20);
  EXPECT_EQ(limits.take("default", "ana", now), 100ms + 1us);
  EXPECT_EQ(taken(limits, "ben", now), 1'000);
  now += 500ms;
  EXPECT_EQ(taken(limits, "ana", now), 5);
  now += 1h;
  EXPECT_EQ(taken(limits, "ana", now), 20) << "no more than the bucket holds";
  now -= 2h;
  EXPECT_EQ(taken(limits, "ana", now), 0) << "a clock that is set back gives nothing";
  limits.change(quota("ana", {}));
  EXPECT_EQ(taken(limits, "ana", now), 1'000);
}

TEST(RequestLimits, OfEachUserAndOfTheWorkspace) {
  RequestLimits limits;
  const TimePoint now{1000h};
  limits.change(quota("*", 2));
  EXPECT_EQ(taken(limits, "ana", now), 4);
  EXPECT_EQ(taken(limits, "ben", now), 4) << "each has a bucket of its own";
  limits.change(quota("", 3));
  EXPECT_EQ(taken(limits, "ana", now), 4);
  EXPECT_EQ(taken(limits, "ben", now), 2) << "what is left of the workspace's six";
}

}  // namespace
}  // namespace slipway::api
