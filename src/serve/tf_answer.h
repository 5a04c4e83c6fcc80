#pragma once
// Answers of TensorFlow Serving's REST API. Pure.
#include <string>
#include <vector>

#include "serve/model.h"
#include "serve/tf_request.h"
#include "serve/versions.h"

namespace slipway::serve {

Answer<std::string> format_predict(const Tensors& outputs, BodyFormat format);
// Outputs `classes` (strings) and `scores` (floats), one row each; either may be missing.
Answer<std::string> format_classify(const Tensors& outputs);
Answer<std::string> format_regress(const Tensors& outputs);

// {"error": "…"}
std::string format_failure(const std::string& message);
// Newest first.
std::string format_status(const std::vector<VersionStatus>& versions);
std::string format_metadata(const std::string& model, std::int64_t version,
                            const std::map<std::string, Signature, std::less<>>& signatures);

// One element of a tensor that holds no strings.
void append_element(std::string& to, const Tensor& tensor, std::size_t index);

}  // namespace slipway::serve
