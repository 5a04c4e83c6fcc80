#pragma once
// The command line: TensorFlow Serving's flags in all their spellings, and our own. Pure.
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "serve/model_config.h"

namespace slipway::serve {

struct Flags {
  std::string address = "127.0.0.1";
  int grpc_port = -1;    // -1: off; 0: any free one
  int rest_port = 8501;  // -1: off; 0: any free one
  Duration rest_timeout = 30s;
  bool rest_cors = false;
  int threads = 0;  // 0: as many as cores
  std::size_t body_max = 64u << 20;

  ServerConfig models;  // of --model and --model_name with --model_base_path
  std::string model_config_file;
  Duration model_config_poll{0};
  Duration folder_poll = 1s;
  RetryPolicy retry{};
  bool allows_labels_for_unavailable = false;

  bool is_batching = false;
  std::string batching_parameters_file;
  std::string monitoring_config_file;
  std::string ssl_config_file;
  std::string certificate_file, key_file;  // TLS of REST
  bool is_insecure = false;                // beyond loopback without TLS

  bool shows_help = false, shows_version = false;
  std::vector<std::string> without_effect;  // flags of TensorFlow's runtime, taken so that command lines work
};

// `program`: the name it was called by; as tensorflow_model_server it has that program's defaults.
Result<Flags> parse_flags(const std::string& program, const std::vector<std::string>& arguments);
std::string help_text();

}  // namespace slipway::serve
