#pragma once
// Paths of TensorFlow Serving's REST API. Pure.
#include <optional>
#include <string>
#include <string_view>

#include "serve/failure.h"
#include "serve/model_manager.h"

namespace slipway::serve {

enum class TfAction { status, metadata, predict, classify, regress };

struct TfPath {
  std::string model;
  std::optional<std::int64_t> version;
  std::optional<std::string> label;
  TfAction action = TfAction::status;
};

// `target` as in the request line. nullopt: none of these paths. Matched without case except for the verb; a
// query string makes it none. An error with an empty message: a version that no number holds.
Answer<std::optional<TfPath>> parse_tf_path(std::string_view method, std::string_view target);
VersionChoice choice_of(const TfPath& path);

}  // namespace slipway::serve
