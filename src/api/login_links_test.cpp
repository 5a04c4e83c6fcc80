#include "api/login_links.h"

#include <gtest/gtest.h>

namespace slipway::api {
namespace {

TEST(LoginLinks, AreGoodOnce) {
  LoginLinks links;
  const TimePoint now{};
  const auto link = links.make("secret", now);
  EXPECT_EQ(links.take("another", now), std::nullopt);
  EXPECT_EQ(links.take(link.token, now), "secret");
  EXPECT_EQ(links.take(link.token, now), std::nullopt);
}

TEST(LoginLinks, AreGoodForAWhile) {
  LoginLinks links;
  const TimePoint now{};
  const auto first = links.make("first", now), second = links.make("second", now);
  EXPECT_EQ(links.take(first.token, now + LoginLinks::good_for - Duration(1)), "first");
  EXPECT_EQ(links.take(second.token, now + LoginLinks::good_for), std::nullopt);
}

TEST(LoginLinks, AreBounded) {
  LoginLinks links;
  const TimePoint now{};
  const auto first = links.make("first", now), second = links.make("second", now);
  for (std::size_t i = 1; i < LoginLinks::kept_max; ++i) links.make("more", now);
  EXPECT_EQ(links.take(first.token, now), std::nullopt);
  EXPECT_EQ(links.take(second.token, now), "second");
}

}  // namespace
}  // namespace slipway::api
