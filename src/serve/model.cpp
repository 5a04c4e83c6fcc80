#include "serve/model.h"

#include <fmt/format.h>

namespace slipway::serve {

const char* method_name(Method method) {
  switch (method) {
    case Method::classify: return "tensorflow/serving/classify";
    case Method::regress: return "tensorflow/serving/regress";
    case Method::predict: break;
  }
  return "tensorflow/serving/predict";
}

std::string example_signature(const Model& model, Method method, const std::string& name) {
  if (!name.empty()) return name;
  const auto usual = model.signatures().find(default_signature);
  if (usual != model.signatures().end() && usual->second.method == method) return default_signature;
  for (const auto& [other, signature] : model.signatures())
    if (signature.method == method) return other;
  return default_signature;
}

Answer<void> check_method(const Signature& signature, Method method) {
  if (signature.method == method) return {};
  return invalid(fmt::format("Expected {} signature method_name to be {}. Was: {}",
                             method == Method::classify ? "classification" : "regression",
                             method_name(method), method_name(signature.method)));
}

}  // namespace slipway::serve
