// The accuracy bars of the dense network on real MNIST; a few seconds.
#include "mnist.h"

namespace slipway::train {
namespace {

TEST_F(Mnist, TheMlpPasses975) {
  const auto report = run({"--learning-rate", "2", "--epochs", "10"});
  ASSERT_TRUE(report) << report.error().what;
  EXPECT_GE(report->accuracy, 0.975);
}

TEST_F(Mnist, TheDefaultsAreGood) {
  const auto report = run({});
  ASSERT_TRUE(report) << report.error().what;
  EXPECT_GE(report->accuracy, 0.965);
}

}  // namespace
}  // namespace slipway::train
