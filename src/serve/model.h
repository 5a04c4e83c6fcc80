#pragma once
// What every model offers, whatever its format: signatures, and running one of them.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "serve/tensor.h"

namespace slipway::serve {

struct TensorSpec {
  std::string name;  // inside the model: input:0
  DataType type = DataType::float32;
  Shape shape;  // -1: any size
  bool is_unknown_rank = false;
};

enum class Method { predict, classify, regress };
const char* method_name(Method method);  // tensorflow/serving/predict

struct Signature {
  Method method = Method::predict;
  std::map<std::string, TensorSpec, std::less<>> inputs;
  std::map<std::string, TensorSpec, std::less<>> outputs;
};

constexpr const char* default_signature = "serving_default";

// Immutable once loaded; run() is called from several threads at once.
class Model {
 public:
  virtual ~Model() = default;
  virtual const std::map<std::string, Signature, std::less<>>& signatures() const = 0;
  // `inputs` has exactly the signature's inputs, each of its type. All outputs are computed.
  virtual Answer<Tensors> run(const std::string& signature, const Tensors& inputs) const = 0;
  // Multiply-adds for one row, about: decides whether a request is answered on the network's thread.
  virtual double work_per_row() const = 0;
  // What can be done after the version is served, so that it is served sooner. Called once, by one thread.
  virtual void warm_up() const {}
  virtual std::string platform() const = 0;  // slipway_native; as the Open Inference Protocol names it
};

// The signature of a request that gives examples and perhaps names none: the usual one where it is of that
// method, else the first that is.
std::string example_signature(const Model& model, Method method, const std::string& name);
// `Expected classification signature method_name to be …` where it is of another method.
Answer<void> check_method(const Signature& signature, Method method);

}  // namespace slipway::serve
