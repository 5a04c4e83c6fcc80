#include "train/nn/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/suggest.h"

namespace slipway::train {
namespace {

constexpr int side_max = 16384;

LayerSpec dense(int units) { return {.kind = LayerKind::dense, .units = units}; }
LayerSpec convolve(int filters, int kernel) {
  return {.kind = LayerKind::conv, .units = filters, .kernel = kernel, .padding = kernel / 2};
}
LayerSpec pool() { return {.kind = LayerKind::max_pool, .kernel = 2, .stride = 2}; }
LayerSpec simple(LayerKind kind) { return {.kind = kind}; }

// Dense hidden layers with an activation after each, then the output layer.
std::vector<LayerSpec> stack(const std::vector<int>& hidden, LayerKind activation, int classes, float drop) {
  std::vector<LayerSpec> layers;
  for (const int units : hidden) {
    layers.push_back(dense(units));
    layers.push_back(simple(activation));
    if (drop > 0) layers.push_back({.kind = LayerKind::dropout, .rate = drop});
  }
  layers.push_back(dense(classes));
  return layers;
}

// A window sliding over one side of the picture: places it can stand, or 0.
int places(int side, int kernel, int stride, int padding) {
  const int span = side + 2 * padding - kernel;
  return span < 0 ? 0 : span / stride + 1;
}

Result<Shape> shape_after(const LayerSpec& layer, const Shape& in, const std::string& where) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    return fail(ErrorCode::invalid,
                fmt::format("{} does not fit: its input is {}, {}", where, to_string(in), why), hint);
  };
  switch (layer.kind) {
    case LayerKind::dense:
      if (layer.units < 1 || layer.units > side_max)
        return refuse(fmt::format("and {} outputs were asked for", layer.units),
                      fmt::format("a dense layer has 1 to {} outputs", side_max));
      return Shape{layer.units, 1, 1};
    case LayerKind::conv:
    case LayerKind::max_pool:
    case LayerKind::avg_pool: {
      const bool is_conv = layer.kind == LayerKind::conv;
      if (layer.kernel < 1 || layer.stride < 1 || layer.padding < 0 ||
          layer.padding >= std::max(layer.kernel, 1) || layer.kernel > 64)
        return refuse(fmt::format("and the window is {0}x{0} with stride {1} and padding {2}", layer.kernel,
                                  layer.stride, layer.padding),
                      "kernel 1 to 64, stride at least 1, padding below the kernel");
      if (is_conv && (layer.units < 1 || layer.units > side_max))
        return refuse(fmt::format("and {} filters were asked for", layer.units),
                      "at least one filter is needed");
      const Shape out{is_conv ? layer.units : in.channels,
                      places(in.height, layer.kernel, layer.stride, layer.padding),
                      places(in.width, layer.kernel, layer.stride, layer.padding)};
      if (out.height < 1 || out.width < 1)
        return refuse(fmt::format("smaller than its {0}x{0} window", layer.kernel),
                      in.height == 1 ? "a dense layer before it has made the picture flat"
                                     : "drop a pooling layer, pad, or use a smaller window");
      return out;
    }
    case LayerKind::dropout:
      if (!(layer.rate >= 0 && layer.rate < 1))
        return refuse(fmt::format("and a share of {} cannot be dropped", layer.rate), "use 0 up to below 1");
      return in;
    default: return in;
  }
}

}  // namespace

std::string to_string(const LayerSpec& layer) {
  switch (layer.kind) {
    case LayerKind::dense: return fmt::format("dense {}", layer.units);
    case LayerKind::conv: return fmt::format("conv {0} {1}x{1}", layer.units, layer.kernel);
    case LayerKind::max_pool: return fmt::format("max_pool {0}x{0}", layer.kernel);
    case LayerKind::avg_pool: return fmt::format("avg_pool {0}x{0}", layer.kernel);
    case LayerKind::batch_norm: return "batch_norm";
    case LayerKind::dropout: return fmt::format("dropout {}", layer.rate);
    case LayerKind::relu: return "relu";
    case LayerKind::sigmoid: return "sigmoid";
    case LayerKind::tanh: return "tanh";
  }
  return "layer";
}

Result<std::vector<Shape>> check_model(const ModelSpec& model, int classes) {
  if (model.layers.empty())
    return fail(ErrorCode::invalid, fmt::format("the model {} has no layers", model.name),
                "it needs at least one dense layer");
  Shape shape = model.input;
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerSpec& layer = model.layers[i];
    const std::string where = fmt::format("layer {} of {} ({})", i + 1, model.name, to_string(layer));
    auto next = shape_after(layer, shape, where);
    if (!next) return fail(next.error());
    if (static_cast<double>(next->channels) * next->height * next->width > 1e8)
      return fail(ErrorCode::too_large, fmt::format("{} makes {} values per sample", where, to_string(*next)),
                  "use a larger stride or fewer filters");
    shape = *next;
    shapes.push_back(shape);
  }
  if (model.layers.back().kind != LayerKind::dense || shape.size() != classes)
    return fail(ErrorCode::invalid,
                fmt::format("the last layer of {} is {} and gives {}; the data has {} classes", model.name,
                            to_string(model.layers.back()), to_string(shape), classes),
                fmt::format("end with `dense: {}`; the softmax belongs to the loss", classes));
  return shapes;
}

const std::vector<std::string>& built_in_names() {
  static const std::vector<std::string> names = {"mlp", "mlp2", "replica", "lenet", "cnn", "vgg"};
  return names;
}

Result<ModelSpec> built_in_model(const std::string& name, const BuiltInOptions& options) {
  using enum LayerKind;
  const float own_dropout = options.dropout < 0 ? 0 : options.dropout;
  const auto hidden = [&](std::vector<int> own) { return options.hidden.empty() ? own : options.hidden; };
  ModelSpec model{.name = name, .input = options.input};
  const auto then = [&](const std::vector<LayerSpec>& more) {
    model.layers.insert(model.layers.end(), more.begin(), more.end());
  };
  if (name == "mlp") {
    then(stack(hidden({100}), sigmoid, options.classes, own_dropout));
  } else if (name == "mlp2") {
    then(stack(hidden({300, 100}), sigmoid, options.classes, own_dropout));
  } else if (name == "replica") {
    then(stack(hidden({128, 128}), relu, options.classes, own_dropout));
  } else if (name == "lenet") {
    then({convolve(32, 5), simple(relu), pool(), convolve(64, 5), simple(relu), pool()});
    then(stack({512}, relu, options.classes, own_dropout));
  } else if (name == "cnn") {
    then({convolve(16, 5), simple(relu), pool(), convolve(32, 5), simple(relu), pool()});
    then(stack({128}, relu, options.classes, own_dropout));
  } else if (name == "vgg") {
    for (const int filters : {64, 128})
      then({convolve(filters, 3), simple(relu), convolve(filters, 3), simple(relu), pool()});
    then(stack({512}, relu, options.classes, options.dropout < 0 ? 0.5F : options.dropout));
  } else {
    const std::string near = nearest(name, built_in_names());
    return fail(ErrorCode::not_found, fmt::format("there is no model {}", name),
                near.empty()
                    ? fmt::format("--model takes {} or a .yaml file", fmt::join(built_in_names(), ", "))
                    : "did you mean " + near + "?");
  }
  return model;
}

GoodDefaults good_defaults(const ModelSpec& model) {
  bool convolves = false, sigmoids = false;
  for (const LayerSpec& layer : model.layers) {
    convolves = convolves || layer.kind == LayerKind::conv;
    sigmoids = sigmoids || layer.kind == LayerKind::sigmoid;
  }
  // The classic example's 0.0005 reaches 33 % in 20 epochs: a sigmoid network with the loss averaged over the
  // batch has gradients so small that it wants a thousand times as much.
  if (sigmoids) return {"sgd", 0.5, "constant"};
  if (convolves && model.input.channels == 3) return {"adam", 0.001, "cosine"};
  if (convolves) return {"momentum", 0.02, "cosine"};
  return {"adam", 0.001, "constant"};
}

}  // namespace slipway::train
