#pragma once
// What to serve: TensorFlow Serving's model_config_list, batching parameters and monitoring, out of their
// files. Pure.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/batching.h"
#include "serve/versions.h"

namespace slipway::serve {

struct ModelConfig {
  std::string name;
  std::string base_path;
  std::string platform;  // tensorflow and empty mean: whatever the folder holds
  VersionPolicy policy;
  std::map<std::string, std::int64_t> labels;
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

struct ServerConfig {
  std::vector<ModelConfig> models;
  friend bool operator==(const ServerConfig&, const ServerConfig&) = default;
};

// `file` names the text in messages.
Result<ServerConfig> parse_server_config(std::string_view text, const std::string& file);
// Reads back to an equal value.
std::string format_server_config(const ServerConfig& config);
Result<void> check_server_config(const ServerConfig& config);

Result<BatchingParameters> parse_batching_parameters(std::string_view text, const std::string& file);

struct Monitoring {
  bool is_enabled = false;
  std::string path = "/monitoring/prometheus/metrics";
  friend bool operator==(const Monitoring&, const Monitoring&) = default;
};
Result<Monitoring> parse_monitoring(std::string_view text, const std::string& file);

}  // namespace slipway::serve
