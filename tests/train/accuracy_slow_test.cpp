// The bar of the convolutional network on real MNIST; half a minute of a core.
#include "mnist.h"

namespace slipway::train {
namespace {

TEST_F(Mnist, TheSmallCnnPasses99) {
  const auto report = run({"--model", "cnn", "--batch-size", "50", "--epochs", "3"});
  ASSERT_TRUE(report) << report.error().what;
  EXPECT_GE(report->accuracy, 0.99);
}

}  // namespace
}  // namespace slipway::train
