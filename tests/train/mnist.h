#pragma once
// Runs on real MNIST, where it is at hand.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "train/data/find.h"
#include "train/run/trainer.h"

namespace slipway::train {

inline std::string data_folder() {
  const char* asked = std::getenv("SLIPWAY_DATA");
  return asked != nullptr ? asked : SLIPWAY_DATA_BESIDE;
}

inline Result<RunReport> run(const std::vector<std::string>& arguments) {
  const auto options = parse_options(arguments, {});
  if (!options) return fail(options.error());
  const auto data = find_data({data_folder() + "/mnist", "mnist", 1}, {});
  if (!data) return fail(data.error());
  std::FILE* null = std::fopen("/dev/null", "w");
  const SystemClock clock;
  const Stop never;
  auto report = train(*options, {}, *data, clock, never, null);
  std::fclose(null);
  return report;
}

class Mnist : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(data_folder() + "/mnist")) GTEST_SKIP() << "no MNIST in " << data_folder();
  }
};

}  // namespace slipway::train
