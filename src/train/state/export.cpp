#include "train/state/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <cstring>

#include "train/state/protobuf.h"

namespace slipway::train {
namespace {

// Field numbers of onnx.proto.
constexpr int tensor_float = 1;
constexpr int attribute_float = 1, attribute_int = 2, attribute_ints = 7;

Message ints(const std::string& name, const std::vector<int>& values) {
  Message attribute;
  attribute.bytes(1, name);
  for (const int value : values) attribute.integer(8, static_cast<std::uint64_t>(value));
  return attribute.integer(20, attribute_ints);
}
Message integer(const std::string& name, int value) {
  Message attribute;
  return attribute.bytes(1, name).integer(3, static_cast<std::uint64_t>(value)).integer(20, attribute_int);
}
Message real(const std::string& name, float value) {
  Message attribute;
  return attribute.bytes(1, name).real(2, value).integer(20, attribute_float);
}

class Graph {
 public:
  // Adds a node that reads the running value and the named parameters.
  void add(const std::string& kind, const std::vector<std::string>& parameters,
           const std::vector<Message>& attributes) {
    const std::string out = fmt::format("value{}", ++count_);
    Message node;
    node.bytes(1, current_);
    for (const std::string& name : parameters) node.bytes(1, name);
    node.bytes(2, out).bytes(3, fmt::format("node{}", count_)).bytes(4, kind);
    for (const Message& attribute : attributes) node.message(5, attribute);
    nodes_.push_back(std::move(node));
    current_ = out;
  }
  const std::string& current() const { return current_; }
  const std::vector<Message>& nodes() const { return nodes_; }

 private:
  int count_ = 0;
  std::string current_ = "input";
  std::vector<Message> nodes_;
};

Message value_info(const std::string& name, const std::vector<int>& shape) {
  Message dims, batch;
  dims.message(1, batch.bytes(2, "N"));
  for (const int side : shape) {
    Message dim;
    dims.message(1, dim.integer(1, static_cast<std::uint64_t>(side)));
  }
  Message tensor, type, info;
  tensor.integer(1, tensor_float).message(2, dims);
  type.message(1, tensor);
  return info.bytes(1, name).message(2, type);
}

template <class T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string npy(const Parameter& parameter, std::span<const float> values) {
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}",
                                   fmt::join(parameter.shape, ", "));
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  append(file, static_cast<std::uint16_t>(header.size()));
  file += header;
  return file.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

}  // namespace

std::string to_onnx(const ModelSpec& model, const std::vector<Parameter>& parameters,
                    std::span<const float> plain) {
  Graph graph;
  bool flat = false;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerSpec& layer = model.layers[i];
    const std::string name = fmt::format("layer{}", i + 1);
    const std::vector<int> window = {layer.kernel, layer.kernel}, stride = {layer.stride, layer.stride};
    switch (layer.kind) {
      case LayerKind::dense:
        if (!flat) graph.add("Flatten", {}, {integer("axis", 1)});
        flat = true;
        graph.add("Gemm", {name + ".weight", name + ".bias"}, {});
        break;
      case LayerKind::conv:
        graph.add("Conv", {name + ".weight", name + ".bias"},
                  {ints("kernel_shape", window), ints("strides", stride),
                   ints("pads", std::vector<int>(4, layer.padding))});
        break;
      case LayerKind::max_pool:
        graph.add("MaxPool", {}, {ints("kernel_shape", window), ints("strides", stride)});
        break;
      case LayerKind::avg_pool:
        graph.add("AveragePool", {}, {ints("kernel_shape", window), ints("strides", stride)});
        break;
      case LayerKind::batch_norm:
        graph.add("BatchNormalization",
                  {name + ".scale", name + ".shift", name + ".mean", name + ".variance"},
                  {real("epsilon", 1e-5F)});
        break;
      case LayerKind::dropout: break;
      case LayerKind::relu: graph.add("Relu", {}, {}); break;
      case LayerKind::sigmoid: graph.add("Sigmoid", {}, {}); break;
      case LayerKind::tanh: graph.add("Tanh", {}, {}); break;
    }
  }
  if (model.loss == Loss::cross_entropy) graph.add("Softmax", {}, {integer("axis", 1)});
  graph.add("Identity", {}, {});

  Message proto;
  for (Message node : graph.nodes()) proto.message(1, node);
  Message last;  // gives the result its public name
  last.bytes(1, graph.current()).bytes(2, "output").bytes(3, "result").bytes(4, "Identity");
  proto.message(1, last).bytes(2, model.name);
  const float* values = plain.data();
  for (const Parameter& parameter : parameters) {
    const std::size_t count = parameter.plain_floats();
    Message tensor;
    for (const int side : parameter.shape) tensor.integer(1, static_cast<std::uint64_t>(side));
    tensor.integer(2, tensor_float).bytes(8, parameter.name);
    tensor.bytes(9, {reinterpret_cast<const char*>(values), count * sizeof(float)});
    proto.message(5, tensor);
    values += count;
  }
  const int classes = model.layers.back().units;
  proto.message(11, value_info("input", {model.input.channels, model.input.height, model.input.width}));
  proto.message(12, value_info("output", {classes}));
  Message opset, file;
  opset.bytes(1, "").integer(2, 13);
  file.integer(1, 8).bytes(2, "slipway-train").bytes(3, SLIPWAY_VERSION).message(7, proto).message(8, opset);
  return file.str();
}

std::string to_npz(const std::vector<Parameter>& parameters, std::span<const float> plain) {
  std::string file, directory;
  std::uint16_t entries = 0;
  for (const Parameter& parameter : parameters) {
    const std::string content = npy(parameter, plain.first(parameter.plain_floats()));
    plain = plain.subspan(parameter.plain_floats());
    const std::string name = parameter.name + ".npy";
    const auto offset = static_cast<std::uint32_t>(file.size());
    const auto size = static_cast<std::uint32_t>(content.size());
    const auto crc = static_cast<std::uint32_t>(
        ::crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()));
    // What the local header and the directory's entry have in common: stored, 1 January 1980.
    std::string common;
    append(common, std::uint16_t{20});  // version needed
    append(common, std::uint16_t{0});
    append(common, std::uint16_t{0});  // stored
    append(common, std::uint16_t{0});
    append(common, std::uint16_t{0x21});
    append(common, crc);
    append(common, size);
    append(common, size);
    append(common, static_cast<std::uint16_t>(name.size()));
    append(common, std::uint16_t{0});
    file += "PK\x03\x04" + common + name + content;
    directory += std::string("PK\x01\x02\x14\x00", 6) + common;
    directory.append(2 + 2 + 2 + 4, '\0');  // no comment, disk 0, no attributes
    append(directory, offset);
    directory += name;
    ++entries;
  }
  const auto start = static_cast<std::uint32_t>(file.size());
  file += directory;
  file += std::string("PK\x05\x06\0\0\0\0", 8);
  append(file, entries);
  append(file, entries);
  append(file, static_cast<std::uint32_t>(directory.size()));
  append(file, start);
  append(file, std::uint16_t{0});
  return file;
}

}  // namespace slipway::train
