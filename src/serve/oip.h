#pragma once
// Bodies of the Open Inference Protocol v2 over HTTP, binary tensors included. Pure.
#include <optional>
#include <string>
#include <vector>

#include "serve/json.h"
#include "serve/model.h"

namespace slipway::serve {

struct InferOutput {
  std::string name;
  bool is_binary = false;
  friend bool operator==(const InferOutput&, const InferOutput&) = default;
};

struct InferRequest {
  std::optional<std::string> id;
  Tensors inputs;
  std::vector<InferOutput> outputs;  // in the order of the answer; never empty
};

// `json_size`: what Inference-Header-Content-Length says; absent: the whole body is JSON.
Answer<InferRequest> parse_infer(std::string_view body, std::optional<std::size_t> json_size,
                                 const Signature& signature);

struct InferBody {
  std::string bytes;
  std::optional<std::size_t> json_size;  // set where binary tensors follow the JSON
};
InferBody format_infer(const std::string& model, std::int64_t version, const InferRequest& request,
                       const Tensors& outputs);

std::string format_model(const std::string& name, const std::vector<std::int64_t>& versions,
                         const std::string& platform, const Signature& signature);

// Tensors in the protocol's binary form: little-endian, packed; a string is its length in 4 bytes and its
// bytes.
Answer<Tensor> parse_raw_tensor(DataType type, Shape shape, std::string_view bytes, const std::string& name);
void append_raw_tensor(std::string& to, const Tensor& tensor);

// Whether these are the signature's inputs, in number, names and types.
Answer<void> check_inputs(const Tensors& inputs, const Signature& signature);

}  // namespace slipway::serve
