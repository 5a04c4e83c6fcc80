#include "container/view.h"

#include <gtest/gtest.h>

namespace slipway::container {
namespace {

TEST(View, RoundTrips) {
  const ViewPlan plan{"/mnt/a/b", "/data/tree", {{"mounts/x", "/srv/some where", false}, {"y", "/z", true}}};
  EXPECT_EQ(parse_view(format(plan)), plan);
  const ViewPlan empty{"/mnt/a", "/t", {}};
  EXPECT_EQ(parse_view(format(empty)), empty);
}

TEST(View, TruncatedInputIsRejected) {
  for (const char* text : {"", "/mnt", "/mnt\n", "/mnt\n/t\nx", "/mnt\n/t\nx\ty\n"})
    EXPECT_FALSE(parse_view(text)) << text;
}

}  // namespace
}  // namespace slipway::container
