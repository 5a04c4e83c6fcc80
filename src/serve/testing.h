#pragma once
// What several tests share: folders that go away, and models written as the trainer writes them.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/check.h"
#include "base/file.h"
#include "train/state/checkpoint.h"

namespace slipway::serve {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/slipway-serve-test-XXXXXX";
    SLIPWAY_CHECK(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// y = factor * x + shift, in the version folder `path`: half_plus_two with the defaults.
inline void write_line_model(const std::string& path, float factor = 0.5F, float shift = 2.0F) {
  SLIPWAY_CHECK(make_folders(path).has_value());
  train::CheckpointInfo info;
  info.model = "{name: line, input: [1, 1, 1], loss: squared_error, layers: [{dense: 1}]}";
  info.classes = 1;
  const float values[] = {factor, shift};
  SLIPWAY_CHECK(train::write_checkpoint(path + "/model.slipway", info, values, {}).has_value());
}

// Two inputs, three classes; the weights are 0, so that each class has the same probability.
inline void write_even_classifier(const std::string& path) {
  SLIPWAY_CHECK(make_folders(path).has_value());
  train::CheckpointInfo info;
  info.model = "{name: even, input: [2, 1, 1], loss: cross_entropy, layers: [{dense: 3}]}";
  info.classes = 3;
  const std::vector<float> values(9, 0.0F);
  SLIPWAY_CHECK(train::write_checkpoint(path + "/model.slipway", info, values, {}).has_value());
}

}  // namespace slipway::serve
