#pragma once
// The trainer's own format: model.slipway, run by the trainer's network.
//
// Signatures: serving_default (predict: input → output), and for a classifier `classify` (classes and scores
// out of examples with the feature `input`), for a regression with one output `regress`. A row may be given
// flat or as a picture: only its number of values counts.
#include <memory>
#include <string>

#include "serve/model.h"

namespace slipway::serve {

constexpr const char* native_file = "model.slipway";

// Checks the file whole, builds its networks and runs each once, so that the first request is as fast as
// others.
Answer<std::shared_ptr<const Model>> load_native_model(const std::string& path);

}  // namespace slipway::serve
