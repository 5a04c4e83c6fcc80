#pragma once
// A network as a value: a stack of layers, where it comes from, and whether its shapes fit.
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/data/dataset.h"

namespace slipway::train {

enum class LayerKind { dense, conv, max_pool, avg_pool, batch_norm, dropout, relu, sigmoid, tanh };
enum class Loss { cross_entropy, squared_error };

struct LayerSpec {
  LayerKind kind = LayerKind::relu;
  int units = 0;    // dense: outputs; conv: filters
  int kernel = 0;   // conv and pools: side of the square window
  int stride = 1;   // conv and pools
  int padding = 0;  // conv: zeros added on every side
  float rate = 0;   // dropout: share of values set to zero

  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

struct ModelSpec {
  std::string name;
  Shape input = {};
  Loss loss = Loss::cross_entropy;
  std::vector<LayerSpec> layers = {};

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

// YAML, for example
//   name: small
//   input: [1, 28, 28]            # channels, height, width; optional where the data decides
//   loss: cross_entropy           # or squared_error
//   layers: [{conv: {filters: 16, kernel: 5, padding: same}}, relu, {max_pool: 2}, {dropout: 0.5}, {dense:
//   10}]
// `name` is the file, for messages. An unknown key or layer is refused with the nearest known word.
Result<ModelSpec> parse_model(std::string_view text, const std::string& name);
// The same on one line; parse_model reads it back to an equal value. Stored in checkpoints.
std::string format_model(const ModelSpec& model);

std::string to_string(const LayerSpec& layer);  // conv 16 5x5, dense 100, relu

// The shape after every layer. Error `invalid` names the first layer that does not fit, with the shape that
// reaches it, and a last layer that does not give `classes` values.
Result<std::vector<Shape>> check_model(const ModelSpec& model, int classes);

struct BuiltInOptions {
  Shape input;
  int classes = 10;
  std::vector<int> hidden = {};  // dense models; empty: their own
  float dropout = -1;            // after every hidden dense layer; below 0: the model's own
};
// mlp (784-100-10 sigmoid), mlp2 (784-300-100-10), replica (the two-hidden-layer ReLU network of the replica
// example), lenet, cnn (passes 99 % on MNIST), vgg (for CIFAR-10).
Result<ModelSpec> built_in_model(const std::string& name, const BuiltInOptions& options);
const std::vector<std::string>& built_in_names();

// What trains the model well when the user does not say; the reasons stand with the values in model.cpp.
struct GoodDefaults {
  std::string optimizer;
  double learning_rate;
  std::string schedule;
};
GoodDefaults good_defaults(const ModelSpec& model);

}  // namespace slipway::train
