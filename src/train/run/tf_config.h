#pragma once
// TF_CONFIG, the JSON by which TensorFlow's launchers describe a process's cluster and its task in it.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipway::train {

struct TfConfig {
  std::map<std::string, std::vector<std::string>> cluster;  // role to host:port list
  std::string type;                                         // chief, master, worker, ps, evaluator
  int index = 0;
};

Result<TfConfig> parse_tf_config(std::string_view text);

}  // namespace slipway::train
