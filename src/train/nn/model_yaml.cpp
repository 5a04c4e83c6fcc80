// The only file that knows YAML's library: model files, and the JSON of TF_CONFIG, which is YAML too.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/suggest.h"
#include "train/nn/model.h"
#include "train/run/tf_config.h"

namespace slipway::train {
namespace {

constexpr std::size_t text_max = 256 * 1024;
constexpr std::size_t layers_max = 1000;

const std::vector<std::pair<std::string, LayerKind>> layer_names = {
    {"dense", LayerKind::dense},           {"conv", LayerKind::conv},       {"max_pool", LayerKind::max_pool},
    {"avg_pool", LayerKind::avg_pool},     {"dropout", LayerKind::dropout}, {"relu", LayerKind::relu},
    {"batch_norm", LayerKind::batch_norm}, {"sigmoid", LayerKind::sigmoid}, {"tanh", LayerKind::tanh}};

struct Wrong {  // thrown and caught inside this file, as the library's own exceptions are
  std::string what;
  std::string hint;
};

std::string known_words(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

[[noreturn]] void unknown(const std::string& what, const std::string& word,
                          const std::vector<std::string>& words) {
  const std::string near = nearest(word, words);
  throw Wrong{fmt::format("{} {} is not known", what, word),
              near.empty() ? "known are " + known_words(words) : "did you mean " + near + "?"};
}

int whole(const YAML::Node& node, const std::string& what) {
  int value = 0;
  if (!node.IsScalar() || !YAML::convert<int>::decode(node, value))
    throw Wrong{what + " is not a whole number", ""};
  return value;
}

float number(const YAML::Node& node, const std::string& what) {
  float value = 0;
  if (!node.IsScalar() || !YAML::convert<float>::decode(node, value))
    throw Wrong{what + " is not a number", ""};
  return value;
}

int padding(const YAML::Node& node, int kernel, const std::string& what) {
  if (node.IsScalar() && node.Scalar() == "same") {
    if (kernel % 2 == 0)
      throw Wrong{what + ": padding same needs an odd kernel", "use kernel 3 or 5, or a number"};
    return kernel / 2;
  }
  if (node.IsScalar() && node.Scalar() == "valid") return 0;
  return whole(node, what + ": padding (same, valid or a number)");
}

LayerSpec layer_from(const std::string& name, const YAML::Node& value, const std::string& where) {
  std::vector<std::string> names;
  LayerSpec layer;
  bool found = false;
  for (const auto& [known, kind] : layer_names) {
    names.push_back(known);
    if (known == name) layer.kind = kind, found = true;
  }
  if (!found) unknown(where + ":", name, names);
  const bool has_value = value.IsDefined() && !value.IsNull();
  const auto read_keys = [&](const std::map<std::string, std::function<void(const YAML::Node&)>>& keys) {
    std::vector<std::string> words;
    for (const auto& [key, reader] : keys) words.push_back(key);
    for (const auto& entry : value) {
      const auto reader = keys.find(entry.first.Scalar());
      if (reader == keys.end()) unknown(where + ": the key", entry.first.Scalar(), words);
      reader->second(entry.second);
    }
  };
  const auto int_into = [&](int& to, const char* key) {
    return [&to, key, &where](const YAML::Node& node) { to = whole(node, where + ": " + key); };
  };
  switch (layer.kind) {
    case LayerKind::dense:
      if (!has_value) throw Wrong{where + " does not say how many outputs", "write `dense: 100`"};
      if (value.IsMap())
        read_keys({{"units", int_into(layer.units, "units")}});
      else
        layer.units = whole(value, where + ": the number of outputs");
      break;
    case LayerKind::conv: {
      if (!has_value || !value.IsMap())
        throw Wrong{where + " needs filters and kernel",
                    "write `conv: {filters: 16, kernel: 5, padding: same}`"};
      YAML::Node pad;
      read_keys({{"filters", int_into(layer.units, "filters")},
                 {"kernel", int_into(layer.kernel, "kernel")},
                 {"stride", int_into(layer.stride, "stride")},
                 {"padding", [&](const YAML::Node& node) { pad = node; }}});
      if (pad.IsDefined() && !pad.IsNull()) layer.padding = padding(pad, layer.kernel, where);
      break;
    }
    case LayerKind::max_pool:
    case LayerKind::avg_pool:
      layer.kernel = 2;
      layer.stride = 0;
      if (has_value && value.IsMap())
        read_keys(
            {{"kernel", int_into(layer.kernel, "kernel")}, {"stride", int_into(layer.stride, "stride")}});
      else if (has_value)
        layer.kernel = whole(value, where + ": the window");
      if (layer.stride == 0) layer.stride = layer.kernel;  // windows side by side, as everyone means it
      break;
    case LayerKind::dropout:
      if (!has_value) throw Wrong{where + " does not say which share to drop", "write `dropout: 0.5`"};
      layer.rate = number(value, where + ": the share to drop");
      break;
    default:
      if (has_value) throw Wrong{where + " takes no value", "write just its name"};
  }
  return layer;
}

ModelSpec model_from(const YAML::Node& root, const std::string& name) {
  if (!root.IsMap()) throw Wrong{"it is not a map with name, input, loss and layers", ""};
  ModelSpec model{.name = name};
  for (const auto& entry : root) {
    const std::string key = entry.first.Scalar();
    const YAML::Node& value = entry.second;
    if (key == "name") {
      if (!value.IsScalar()) throw Wrong{"name is not a word", ""};
      model.name = value.Scalar();
      const bool plain = !model.name.empty() && model.name.size() <= 64 &&
                         std::all_of(model.name.begin(), model.name.end(), [](unsigned char c) {
                           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                         });
      if (!plain) throw Wrong{"name is not a word of letters, digits, - _ and .", ""};
    } else if (key == "input") {
      if (!value.IsSequence() || value.size() != 3)
        throw Wrong{"input is not a list of channels, height and width", "write `input: [1, 28, 28]`"};
      model.input = {whole(value[0], "input"), whole(value[1], "input"), whole(value[2], "input")};
      for (const int side : {model.input.channels, model.input.height, model.input.width})
        if (side < 1 || side > 4096) throw Wrong{fmt::format("an input side of {} cannot be", side), ""};
    } else if (key == "loss") {
      const std::string loss = value.IsScalar() ? value.Scalar() : "";
      if (loss != "cross_entropy" && loss != "squared_error")
        unknown("the loss", loss, {"cross_entropy", "squared_error"});
      model.loss = loss == "cross_entropy" ? Loss::cross_entropy : Loss::squared_error;
    } else if (key == "layers") {
      if (!value.IsSequence() || value.size() > layers_max)
        throw Wrong{fmt::format("layers is not a list of at most {}", layers_max), ""};
      for (std::size_t i = 0; i < value.size(); ++i) {
        const YAML::Node& item = value[i];
        const std::string where = fmt::format("layer {}", i + 1);
        if (item.IsScalar())
          model.layers.push_back(layer_from(item.Scalar(), YAML::Node(), where));
        else if (item.IsMap() && item.size() == 1)
          model.layers.push_back(layer_from(item.begin()->first.Scalar(), item.begin()->second, where));
        else
          throw Wrong{where + " is neither a word nor one `word: value`", "write `- relu` or `- dense: 100`"};
      }
    } else {
      unknown("the key", key, {"name", "input", "loss", "layers"});
    }
  }
  return model;
}

// Parses and converts; whatever goes wrong becomes an error that names the source.
template <class T>
Result<T> read_yaml(std::string_view text, const std::string& name,
                    T (*convert)(const YAML::Node&, const std::string&), const std::string& inner_name) {
  if (text.size() > text_max)
    return fail(ErrorCode::too_large,
                fmt::format("{} has {} bytes; at most {} are read", name, text.size(), text_max));
  try {
    return convert(YAML::Load(std::string(text)), inner_name);
  } catch (const Wrong& wrong) {
    return fail(ErrorCode::invalid, name + ": " + wrong.what, wrong.hint);
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::invalid,
                fmt::format("{} is not valid YAML: line {}: {}", name, error.mark.line + 1, error.msg));
  }
}

TfConfig tf_config_from(const YAML::Node& root, const std::string&) {
  TfConfig config;
  if (!root.IsMap()) throw Wrong{"it is not an object", ""};
  const YAML::Node cluster = root["cluster"];
  if (cluster && !cluster.IsMap()) throw Wrong{"cluster is not an object", ""};
  if (cluster)
    for (const auto& entry : cluster) {
      std::vector<std::string>& hosts = config.cluster[entry.first.Scalar()];
      if (!entry.second.IsSequence()) throw Wrong{"cluster." + entry.first.Scalar() + " is not a list", ""};
      for (const auto& host : entry.second) {
        if (!host.IsScalar())
          throw Wrong{"cluster." + entry.first.Scalar() + " holds something that is not a host:port", ""};
        hosts.push_back(host.Scalar());
      }
    }
  const YAML::Node task = root["task"];
  if (!task || !task.IsMap() || !task["type"] || !task["type"].IsScalar() || !task["index"])
    throw Wrong{"task.type and task.index are missing", "they say which process of the cluster this is"};
  config.type = task["type"].Scalar();
  config.index = whole(task["index"], "task.index");
  return config;
}

}  // namespace

Result<ModelSpec> parse_model(std::string_view text, const std::string& name) {
  const std::size_t slash = name.find_last_of('/');
  std::string stem = slash == std::string::npos ? name : name.substr(slash + 1);
  if (const std::size_t dot = stem.find('.'); dot != std::string::npos) stem.resize(dot);
  return read_yaml<ModelSpec>(text, name, model_from, stem.empty() ? "model" : stem);
}

Result<TfConfig> parse_tf_config(std::string_view text) {
  return read_yaml<TfConfig>(text, "TF_CONFIG", tf_config_from, "");
}

std::string format_model(const ModelSpec& model) {
  std::string text = fmt::format("{{name: {}, input: [{}, {}, {}], loss: {}, layers: [", model.name,
                                 model.input.channels, model.input.height, model.input.width,
                                 model.loss == Loss::cross_entropy ? "cross_entropy" : "squared_error");
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerSpec& layer = model.layers[i];
    if (i > 0) text += ", ";
    for (const auto& [name, kind] : layer_names) {
      if (kind != layer.kind) continue;
      if (kind == LayerKind::dense)
        text += fmt::format("{{dense: {}}}", layer.units);
      else if (kind == LayerKind::conv)
        text += fmt::format("{{conv: {{filters: {}, kernel: {}, stride: {}, padding: {}}}}}", layer.units,
                            layer.kernel, layer.stride, layer.padding);
      else if (kind == LayerKind::max_pool || kind == LayerKind::avg_pool)
        text += fmt::format("{{{}: {{kernel: {}, stride: {}}}}}", name, layer.kernel, layer.stride);
      else if (kind == LayerKind::dropout)
        text += fmt::format("{{dropout: {}}}", layer.rate);
      else
        text += name;
    }
  }
  return text + "]}";
}

}  // namespace slipway::train
