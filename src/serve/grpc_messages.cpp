#include "serve/grpc_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "serve/proto_reader.h"
#include "train/state/protobuf.h"

namespace slipway::serve {
namespace {

using train::Message;
using Wire = ProtoField::Wire;

constexpr std::uint64_t typed_max = 64;

tl::unexpected<Failure> malformed(const char* what) {
  return invalid(fmt::format("the bytes of {} are no protobuf message", what));
}

const TypeNames* type_of_number(std::uint64_t number) {
  for (int i = 0; i <= static_cast<int>(DataType::string); ++i) {
    const TypeNames& row = names(static_cast<DataType>(i));
    if (static_cast<std::uint64_t>(row.tensorflow_number) == number) return &row;
  }
  return nullptr;
}

// The field that holds values of the type, and how wide they are on the wire (0: varint).
struct ValueField {
  int number;
  std::size_t width;
};
ValueField value_field(DataType type) {
  switch (type) {
    case DataType::float32: return {5, 4};
    case DataType::float64: return {6, 8};
    case DataType::float16:
    case DataType::bfloat16: return {13, 0};
    case DataType::int64: return {10, 0};
    case DataType::boolean: return {11, 0};
    case DataType::uint32: return {16, 0};
    case DataType::uint64: return {17, 0};
    case DataType::string: return {8, 0};
    default: return {7, 0};
  }
}

Answer<Shape> parse_tensor_shape(std::string_view bytes) {
  Shape shape;
  ProtoReader reader(bytes);
  for (ProtoField field; reader.next(field);) {
    if (field.number == 3 && field.integer != 0) return invalid("a tensor of unknown rank holds no values");
    if (field.number != 2 || field.wire != Wire::bytes) continue;
    std::int64_t side = 0;
    ProtoReader dimension(field.bytes);
    for (ProtoField inner; dimension.next(inner);)
      if (inner.number == 1) side = static_cast<std::int64_t>(inner.integer);
    if (dimension.is_broken()) return malformed("a shape");
    if (shape.size() == 254) return invalid("a tensor has at most 254 dimensions");
    shape.push_back(side);
  }
  if (reader.is_broken()) return malformed("a shape");
  return shape;
}

// Values of the type's own field, packed or not, as 64 bits each.
bool read_values(const ProtoField& field, std::size_t width, std::vector<std::uint64_t>& values) {
  if (field.wire != Wire::bytes) {
    values.push_back(field.integer);
    return true;
  }
  ProtoReader packed(field.bytes);
  while (!packed.is_empty()) {
    std::uint64_t value = 0;
    if (!(width == 0 ? packed.varint(value) : packed.fixed(value, width))) return false;
    values.push_back(value);
  }
  return true;
}

// `count` elements; the last one given repeats.
void set_values(Tensor& tensor, const std::vector<std::uint64_t>& values, std::uint64_t count) {
  const std::size_t size = names(tensor.type).size;
  tensor.bytes.resize(count * size);
  if (values.empty()) return;  // all zero
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t value = values[std::min<std::uint64_t>(i, values.size() - 1)];
    if (tensor.type == DataType::boolean) value = value != 0 ? 1 : 0;
    std::memcpy(tensor.bytes.data() + i * size, &value, size);  // little-endian: the low bytes come first
  }
}

Answer<ModelSpec> parse_model_spec(std::string_view bytes) {
  ModelSpec spec;
  ProtoReader reader(bytes);
  for (ProtoField field; reader.next(field);) {
    if (field.number == 1) spec.name = field.bytes;
    if (field.number == 3) spec.signature = field.bytes;
    if (field.number == 4) spec.label = field.bytes;
    if (field.number != 2 || field.wire != Wire::bytes) continue;
    spec.version = 0;
    ProtoReader wrapped(field.bytes);
    for (ProtoField inner; wrapped.next(inner);)
      if (inner.number == 1) spec.version = static_cast<std::int64_t>(inner.integer);
    if (wrapped.is_broken()) return malformed("a model spec");
  }
  if (reader.is_broken()) return malformed("a model spec");
  return spec;
}

Message spec_message(const ModelSpec& spec) {
  Message message, version;
  message.bytes(1, spec.name);
  version.integer(1, static_cast<std::uint64_t>(spec.version.value_or(0)));
  message.message(2, version);
  if (!spec.signature.empty()) message.bytes(3, spec.signature);
  return message;
}

Message map_entry(std::string_view key, std::string_view value) {
  Message entry;
  entry.bytes(1, key).bytes(2, value);
  return entry;
}

Message shape_message(const Shape& shape, bool is_unknown_rank) {
  Message message;
  for (const std::int64_t side : shape) {
    Message dimension;
    dimension.integer(1, static_cast<std::uint64_t>(side));
    message.message(2, dimension);
  }
  if (is_unknown_rank) message.integer(3, 1);
  return message;
}

void add_specs(Message& signature, int field, const std::map<std::string, TensorSpec, std::less<>>& specs) {
  for (const auto& [name, spec] : specs) {
    Message info;
    info.bytes(1, spec.name).integer(2, static_cast<std::uint64_t>(names(spec.type).tensorflow_number));
    info.message(3, shape_message(spec.shape, spec.is_unknown_rank));
    signature.message(field, map_entry(name, info.str()));
  }
}

Answer<std::pair<std::string, Tensor>> parse_input(std::string_view bytes) {
  std::string name;
  std::string_view value;
  ProtoReader entry(bytes);
  for (ProtoField field; entry.next(field);) {
    if (field.number == 1) name = field.bytes;
    if (field.number == 2) value = field.bytes;
  }
  if (entry.is_broken()) return malformed("an input");
  auto tensor = parse_tensor_proto(value);
  if (!tensor) return refuse(tensor.error().code, fmt::format("input {}: {}", name, tensor.error().message));
  return std::pair(std::move(name), std::move(*tensor));
}

// A list of values behind field 1 of bytes_list, float_list or int64_list.
Answer<Feature> parse_feature(std::string_view bytes) {
  Feature feature;
  ProtoReader reader(bytes);
  for (ProtoField list; reader.next(list);) {
    if (list.wire != Wire::bytes || list.number < 1 || list.number > 3) continue;
    std::vector<std::string> texts;
    std::vector<std::uint64_t> values;
    ProtoReader elements(list.bytes);
    for (ProtoField element; elements.next(element);) {
      if (element.number != 1) continue;
      if (list.number == 1)
        texts.emplace_back(element.bytes);
      else if (!read_values(element, list.number == 2 ? 4 : 0, values))
        return malformed("a feature");
    }
    if (elements.is_broken()) return malformed("a feature");
    if (list.number == 1) feature = std::move(texts);
    if (list.number == 3) feature = std::vector<std::int64_t>(values.begin(), values.end());
    if (list.number != 2) continue;
    std::vector<float> floats;
    for (const std::uint64_t value : values)
      floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(value)));
    feature = std::move(floats);
  }
  if (reader.is_broken()) return malformed("a feature");
  return feature;
}

Answer<Example> parse_example_proto(std::string_view bytes) {
  Example example;
  ProtoReader outer(bytes);
  for (ProtoField features; outer.next(features);) {
    if (features.number != 1) continue;
    ProtoReader map(features.bytes);
    for (ProtoField field; map.next(field);) {
      if (field.number != 1) continue;
      std::string name;
      std::string_view value;
      ProtoReader entry(field.bytes);
      for (ProtoField part; entry.next(part);) {
        if (part.number == 1) name = part.bytes;
        if (part.number == 2) value = part.bytes;
      }
      auto feature = parse_feature(value);
      if (entry.is_broken()) return malformed("an example");
      if (!feature) return refuse(feature.error());
      example[name] = std::move(*feature);
    }
    if (map.is_broken()) return malformed("an example");
  }
  if (outer.is_broken()) return malformed("an example");
  return example;
}

// An example_list, or one with a context: examples in field 1, the context in field 2.
Answer<std::vector<Example>> parse_example_list(std::string_view bytes) {
  std::vector<Example> examples;
  Example context;
  ProtoReader reader(bytes);
  for (ProtoField field; reader.next(field);) {
    if (field.number != 1 && field.number != 2) continue;
    auto example = parse_example_proto(field.bytes);
    if (!example) return refuse(example.error());
    if (field.number == 1)
      examples.push_back(std::move(*example));
    else
      context = std::move(*example);
  }
  if (reader.is_broken()) return malformed("a list of examples");
  for (Example& example : examples) example.insert(context.begin(), context.end());
  return examples;
}

}  // namespace

Answer<ExamplesRequest> parse_examples_request(std::string_view bytes) {
  ExamplesRequest request;
  ProtoReader reader(bytes);
  for (ProtoField field; reader.next(field);) {
    if (field.number == 1) {
      auto spec = parse_model_spec(field.bytes);
      if (!spec) return refuse(spec.error());
      request.spec = std::move(*spec);
    }
    if (field.number != 2) continue;
    ProtoReader input(field.bytes);
    for (ProtoField kind; input.next(kind);) {
      if (kind.number != 1 && kind.number != 2) continue;
      auto examples = parse_example_list(kind.bytes);
      if (!examples) return refuse(examples.error());
      request.examples = std::move(*examples);
    }
    if (input.is_broken()) return malformed("the input");
  }
  if (reader.is_broken()) return malformed("the request");
  if (request.examples.empty()) return invalid("Input is empty.");
  return request;
}

Answer<std::string> format_classify_response(const ModelSpec& spec, const Tensors& outputs) {
  const auto classes = outputs.find("classes"), scores = outputs.find("scores");
  const Tensor* shaped = classes != outputs.end()  ? &classes->second
                         : scores != outputs.end() ? &scores->second
                                                   : nullptr;
  if (shaped == nullptr || shaped->shape.size() != 2)
    return refuse(Code::failed_precondition, "the signature gives neither classes nor scores, one row each");
  Message result, response;
  const auto width = static_cast<std::size_t>(shaped->shape[1]);
  for (std::size_t row = 0; row < static_cast<std::size_t>(shaped->shape[0]); ++row) {
    Message classifications;
    for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
      Message one;
      if (classes != outputs.end()) one.bytes(1, classes->second.strings[i]);
      if (scores != outputs.end()) one.real(2, scores->second.values<float>()[i]);
      classifications.message(1, one);
    }
    result.message(1, classifications);
  }
  return response.message(1, result).message(2, spec_message(spec)).str();
}

Answer<std::string> format_regress_response(const ModelSpec& spec, const Tensors& outputs) {
  const auto values = outputs.find("outputs");
  if (values == outputs.end() || values->second.type != DataType::float32)
    return refuse(Code::failed_precondition, "the signature gives no floats `outputs`");
  Message result, response;
  for (const float value : values->second.values<float>()) {
    Message regression;
    result.message(1, regression.real(1, value));
  }
  return response.message(1, result).message(2, spec_message(spec)).str();
}

Answer<Tensor> parse_tensor_proto(std::string_view bytes) {
  const TypeNames* type = nullptr;
  std::uint64_t type_number = 0;
  Shape shape;
  std::optional<std::string_view> content;
  ProtoReader head(bytes);
  for (ProtoField field; head.next(field);) {
    if (field.number == 1) type = type_of_number(type_number = field.integer);
    if (field.number == 4) content = field.bytes;
    if (field.number != 2) continue;
    auto parsed = parse_tensor_shape(field.bytes);
    if (!parsed) return refuse(parsed.error());
    shape = std::move(*parsed);
  }
  if (head.is_broken()) return malformed("a tensor");
  if (type == nullptr) return invalid(fmt::format("the tensor has the unknown dtype {}", type_number));
  const auto count = element_count(shape);
  if (!count) return invalid(fmt::format("the sides {} are no shape of a tensor", format_shape(shape)));
  const std::uint64_t size = *count * (type->size == 0 ? sizeof(std::string) : type->size);
  if (size > tensor_bytes_max)
    return refuse(Code::resource_exhausted,
                  fmt::format("a tensor of shape {} is too large", format_shape(shape)));
  Tensor tensor{type->type, std::move(shape), {}, {}};
  if (content && !content->empty() && type->type != DataType::string) {
    if (content->size() != *count * type->size)
      return invalid(fmt::format("tensor_content has {} bytes, and shape {} of {} takes {}", content->size(),
                                 format_shape(tensor.shape), type->tensorflow, *count * type->size));
    tensor.bytes.resize(content->size());
    std::memcpy(tensor.bytes.data(), content->data(), content->size());
    return tensor;
  }
  const ValueField values_of = value_field(type->type);
  std::vector<std::uint64_t> values;
  ProtoReader body(bytes);
  for (ProtoField field; body.next(field);) {
    if (field.number != static_cast<std::uint64_t>(values_of.number)) continue;
    if (type->type == DataType::string)
      tensor.strings.emplace_back(field.bytes);
    else if (!read_values(field, values_of.width, values))
      return malformed("a tensor's values");
  }
  if (std::max(values.size(), tensor.strings.size()) > *count)
    return invalid(
        fmt::format("the tensor has more values than its shape {} takes", format_shape(tensor.shape)));
  if (type->type == DataType::string)
    tensor.strings.resize(*count, tensor.strings.empty() ? "" : std::string(tensor.strings.back()));
  else
    set_values(tensor, values, *count);
  return tensor;
}

std::string format_tensor_proto(const Tensor& tensor) {
  const TypeNames& type = names(tensor.type);
  Message message;
  message.integer(1, static_cast<std::uint64_t>(type.tensorflow_number));
  message.message(2, shape_message(tensor.shape, false));
  const ValueField values = value_field(tensor.type);
  if (tensor.type == DataType::string) {
    for (const std::string& element : tensor.strings) message.bytes(8, element);
    return message.str();
  }
  const std::string_view raw(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  if (tensor.count() > typed_max) return message.bytes(4, raw).str();
  if (values.width != 0) return message.bytes(values.number, raw).str();  // packed, and little-endian as here
  const bool is_signed = tensor.type == DataType::int8 || tensor.type == DataType::int16 ||
                         tensor.type == DataType::int32 || tensor.type == DataType::int64;
  for (std::size_t i = 0; i < tensor.count(); ++i) {
    std::uint64_t value = 0;
    std::memcpy(&value, tensor.bytes.data() + i * type.size, type.size);
    const auto unused = static_cast<int>(64 - 8 * type.size);
    if (is_signed) value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
    message.integer(values.number, value);
  }
  return message.str();
}

Answer<PredictRequest> parse_predict_request(std::string_view bytes) {
  PredictRequest request;
  std::uint64_t total = 0;
  ProtoReader reader(bytes);
  for (ProtoField field; reader.next(field);) {
    if (field.number == 1) {
      auto spec = parse_model_spec(field.bytes);
      if (!spec) return refuse(spec.error());
      request.spec = std::move(*spec);
    } else if (field.number == 2) {
      auto input = parse_input(field.bytes);
      if (!input) return refuse(input.error());
      const Tensor& tensor = input->second;
      total += tensor.bytes.size() + tensor.strings.size() * sizeof(std::string);
      if (total > tensor_bytes_max)
        return refuse(Code::resource_exhausted,
                      fmt::format("the tensors of the request have more than {} bytes", tensor_bytes_max));
      request.inputs[input->first] = std::move(input->second);
    } else if (field.number == 3) {
      request.output_filter.emplace_back(field.bytes);
    }
  }
  if (reader.is_broken()) return malformed("the request");
  return request;
}

Answer<void> check_output_filter(const std::vector<std::string>& filter, const Signature& signature) {
  std::set<std::string> seen;
  for (const std::string& name : filter) {
    if (!signature.outputs.contains(name))
      return invalid(fmt::format("output tensor alias not found in signature: {}", name));
    if (!seen.insert(name).second) return invalid(fmt::format("duplicate output tensor alias: {}", name));
  }
  return {};
}

std::string format_predict_response(const ModelSpec& spec, const Tensors& outputs,
                                    const std::vector<std::string>& filter) {
  Message message;
  for (const auto& [name, tensor] : outputs)
    if (filter.empty() || std::find(filter.begin(), filter.end(), name) != filter.end())
      message.message(1, map_entry(name, format_tensor_proto(tensor)));
  return message.message(2, spec_message(spec)).str();
}

Answer<MetadataRequest> parse_metadata_request(std::string_view bytes) {
  MetadataRequest request;
  ProtoReader reader(bytes);
  for (ProtoField field; reader.next(field);) {
    if (field.number == 2) request.fields.emplace_back(field.bytes);
    if (field.number != 1) continue;
    auto spec = parse_model_spec(field.bytes);
    if (!spec) return refuse(spec.error());
    request.spec = std::move(*spec);
  }
  if (reader.is_broken()) return malformed("the request");
  return request;
}

std::string format_metadata_response(const ModelSpec& spec,
                                     const std::map<std::string, Signature, std::less<>>& signatures) {
  Message map;
  for (const auto& [name, signature] : signatures) {
    Message own;
    add_specs(own, 1, signature.inputs);
    add_specs(own, 2, signature.outputs);
    own.bytes(3, method_name(signature.method));
    map.message(1, map_entry(name, own.str()));
  }
  Message any, response;
  any.bytes(1, "type.googleapis.com/tensorflow.serving.SignatureDefMap").message(2, map);
  response.message(1, spec_message(spec));
  return response.message(2, map_entry("signature_def", any.str())).str();
}

Answer<ModelSpec> parse_status_request(std::string_view bytes) {
  ProtoReader reader(bytes);
  ModelSpec spec;
  for (ProtoField field; reader.next(field);) {
    if (field.number != 1) continue;
    auto parsed = parse_model_spec(field.bytes);
    if (!parsed) return parsed;
    spec = std::move(*parsed);
  }
  if (reader.is_broken()) return malformed("the request");
  return spec;
}

std::string format_status_response(const std::vector<VersionStatus>& versions) {
  static constexpr int states[] = {10, 20, 30, 40, 50};  // START to END
  Message response;
  for (const VersionStatus& version : versions) {
    Message own, status;
    status.integer(1, static_cast<std::uint64_t>(version.failure.code)).bytes(2, version.failure.message);
    own.integer(1, static_cast<std::uint64_t>(version.number));
    own.integer(2, static_cast<std::uint64_t>(states[static_cast<int>(version.state)])).message(3, status);
    response.message(1, own);
  }
  return response.str();
}

}  // namespace slipway::serve
