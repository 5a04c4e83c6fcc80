#pragma once
// Messages of TensorFlow Serving's gRPC services, read and written by their field numbers. Pure.
#include <optional>
#include <string>
#include <vector>

#include "serve/model.h"
#include "serve/tf_request.h"
#include "serve/versions.h"

namespace slipway::serve {

struct ModelSpec {
  std::string name;
  std::optional<std::int64_t> version;
  std::string label;
  std::string signature;
};

struct PredictRequest {
  ModelSpec spec;
  Tensors inputs;
  std::vector<std::string> output_filter;
};

// Of all tensors of a request: a few bytes can mean many zeros.
constexpr std::uint64_t tensor_bytes_max = std::uint64_t{1} << 28;

Answer<PredictRequest> parse_predict_request(std::string_view bytes);
std::string format_predict_response(const ModelSpec& spec, const Tensors& outputs,
                                    const std::vector<std::string>& output_filter);
// INVALID_ARGUMENT for a name that is no output, or that is given twice.
Answer<void> check_output_filter(const std::vector<std::string>& filter, const Signature& signature);

struct ExamplesRequest {  // of Classify and Regress
  ModelSpec spec;
  std::vector<Example> examples;  // never empty; the context is part of each
};
Answer<ExamplesRequest> parse_examples_request(std::string_view bytes);
// Of outputs `classes` and `scores`, either of which may be missing, and of `outputs`.
Answer<std::string> format_classify_response(const ModelSpec& spec, const Tensors& outputs);
Answer<std::string> format_regress_response(const ModelSpec& spec, const Tensors& outputs);

struct MetadataRequest {
  ModelSpec spec;
  std::vector<std::string> fields;
};
Answer<MetadataRequest> parse_metadata_request(std::string_view bytes);
std::string format_metadata_response(const ModelSpec& spec,
                                     const std::map<std::string, Signature, std::less<>>& signatures);

Answer<ModelSpec> parse_status_request(std::string_view bytes);
std::string format_status_response(const std::vector<VersionStatus>& versions);

// A TensorProto: the raw content or the typed values; fewer values than elements repeat the last.
Answer<Tensor> parse_tensor_proto(std::string_view bytes);
// Typed up to 64 elements and for strings, raw above.
std::string format_tensor_proto(const Tensor& tensor);

}  // namespace slipway::serve
