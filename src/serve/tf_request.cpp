#include "serve/tf_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <limits>
#include <set>

#include "base/encoding.h"

namespace slipway::serve {
namespace {

bool is_base64_object(const JsonValue& value) {
  if (!value.is_object() || value.size() != 1) return false;
  const auto content = value.find("b64");
  return content && content->is_string();
}

Answer<std::string> decode_base64(const JsonValue& value) {
  if (!is_base64_object(value))
    return invalid(fmt::format("JSON Value: {} not formatted correctly for base64 data", excerpt(value)));
  std::string text = value.find("b64")->as_string();
  // Clients leave the padding out and use the alphabet of URLs: both are taken.
  while (!text.empty() && text.back() == '=') text.pop_back();
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  auto bytes = parse_base64url(text);
  if (!bytes) return invalid("Unable to base64 decode");
  return std::move(*bytes);
}

tl::unexpected<Failure> type_error(const JsonValue& value, DataType type) {
  return invalid(fmt::format("JSON Value: {} Type: {} is not of expected type: {}", excerpt(value),
                             value.kind_name(), names(type).tensorflow));
}

tl::unexpected<Failure> format_error(const JsonValue& value, std::string_view what) {
  return invalid(fmt::format("JSON Value: {} {}", excerpt(value), what));
}

template <class T>
void append(Tensor& tensor, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  tensor.bytes.insert(tensor.bytes.end(), bytes, bytes + sizeof value);
}

template <class T>
bool append_integer(const JsonValue& value, Tensor& tensor) {
  if constexpr (std::is_signed_v<T>) {
    const auto number = value.as_int64();
    if (!number || *number < std::numeric_limits<T>::min() || *number > std::numeric_limits<T>::max())
      return false;
    append(tensor, static_cast<T>(*number));
  } else {
    const auto number = value.as_uint64();
    if (!number || *number > std::numeric_limits<T>::max()) return false;
    append(tensor, static_cast<T>(*number));
  }
  return true;
}

bool append_number_as(const JsonValue& value, DataType type, Tensor& tensor) {
  switch (type) {
    // Through double: what is too large for a float becomes an infinity.
    case DataType::float32: append(tensor, static_cast<float>(value.as_double())); return true;
    case DataType::float64: append(tensor, value.as_double()); return true;
    case DataType::int8: return append_integer<std::int8_t>(value, tensor);
    case DataType::int16: return append_integer<std::int16_t>(value, tensor);
    case DataType::int32: return append_integer<std::int32_t>(value, tensor);
    case DataType::int64: return append_integer<std::int64_t>(value, tensor);
    case DataType::uint8: return append_integer<std::uint8_t>(value, tensor);
    case DataType::uint16: return append_integer<std::uint16_t>(value, tensor);
    case DataType::uint32: return append_integer<std::uint32_t>(value, tensor);
    case DataType::uint64: return append_integer<std::uint64_t>(value, tensor);
    default: return false;
  }
}

Answer<void> append_value(const JsonValue& value, DataType type, Tensor& tensor) {
  using Kind = JsonValue::Kind;
  if (type == DataType::float16 || type == DataType::bfloat16)
    return refuse(Code::unimplemented, fmt::format("Conversion of JSON Value: {} to type: {}", excerpt(value),
                                                   names(type).tensorflow));
  if (type == DataType::string && value.is_object()) {
    auto bytes = decode_base64(value);
    if (!bytes) return refuse(bytes.error());
    tensor.strings.push_back(std::move(*bytes));
    return {};
  }
  if (type == DataType::string && value.is_string()) {
    tensor.strings.push_back(value.as_string());
    return {};
  }
  const bool is_bool = value.kind() == Kind::true_value || value.kind() == Kind::false_value;
  if (type == DataType::boolean && is_bool) {
    append(tensor, static_cast<std::uint8_t>(value.kind() == Kind::true_value ? 1 : 0));
    return {};
  }
  if (value.is_number() && append_number_as(value, type, tensor)) return {};
  return type_error(value, type);
}

Shape shape_of(JsonValue value) {
  Shape shape;
  while (value.is_array()) {
    shape.push_back(value.size());
    if (value.size() == 0) break;
    value = *value.children().begin();
  }
  return shape;
}

// As deep as the first value of the tensor, which the parser has bounded.
Answer<void> fill(const JsonValue& value, std::size_t level, const Shape& shape, DataType type,
                  Tensor& tensor) {
  if (!value.is_array()) {
    if (level != shape.size())
      return invalid(
          fmt::format("JSON Value: {} found at incorrect level: {} in the JSON DOM. Expected at level: {}",
                      excerpt(value), level + 1, shape.size()));
    return append_value(value, type, tensor);
  }
  if (level >= shape.size())
    return invalid(
        fmt::format("Encountered list at unexpected level: {} expected < {}", level, shape.size()));
  if (value.size() != shape[level])
    return invalid(fmt::format("Encountered list at unexpected size: {} at level: {} expected size: {}",
                               value.size(), level, shape[level]));
  const bool holds_floats = level + 1 == shape.size() && type == DataType::float32;
  if (holds_floats) {  // the innermost list of most requests
    const std::size_t before = tensor.bytes.size();
    tensor.bytes.resize(before + value.size() * sizeof(float));
    auto* to = reinterpret_cast<float*>(tensor.bytes.data() + before);
    for (const JsonValue child : value.children()) {
      if (!child.is_number()) return fill(child, level + 1, shape, type, tensor);  // the error it is
      *to++ = static_cast<float>(child.as_double());
    }
    return {};
  }
  for (const JsonValue child : value.children())
    if (auto filled = fill(child, level + 1, shape, type, tensor); !filled) return filled;
  return {};
}

// The memory for `rows` of the first row's size, but never more than the text could fill.
void reserve(Tensor& tensor, const Shape& row, std::uint64_t rows, std::size_t text_size) {
  const std::uint64_t most = text_size / 2 + 1;
  const std::uint64_t each = std::min<std::uint64_t>(element_count(row).value_or(0), most);
  const std::uint64_t elements = each == 0 ? 0 : std::min(most, each * std::min(rows, most / each + 1));
  if (tensor.type == DataType::string)
    tensor.strings.reserve(std::min<std::uint64_t>(elements, 4096));
  else
    tensor.bytes.reserve(elements * names(tensor.type).size);
}

struct Column {  // one named tensor while its rows are gathered
  Tensor tensor;
  Shape row;
  std::int64_t rows = 0;
};
using Columns = std::map<std::string, Column, std::less<>>;

Answer<void> add_row(const JsonValue& value, const std::string& name, const Signature& signature,
                     const JsonValue& all, Columns& columns) {
  const auto spec = signature.inputs.find(name);
  if (spec == signature.inputs.end())
    return invalid(fmt::format("JSON object: does not have named input: {}", name));
  const Shape shape = shape_of(value);
  auto [found, is_first] = columns.try_emplace(name);
  Column& column = found->second;
  const std::uint64_t before =
      column.tensor.type == DataType::string || !is_first ? column.tensor.count() : 0;
  if (is_first) {
    column.tensor.type = spec->second.type;
    column.row = shape;
    reserve(column.tensor, shape, all.size(), all.source().size());
  }
  if (auto filled = fill(value, 0, shape, spec->second.type, column.tensor); !filled) return filled;
  ++column.rows;
  if (is_first) return {};
  const std::uint64_t expected = before / static_cast<std::uint64_t>(column.rows - 1);
  const std::uint64_t size = column.tensor.count() - before;
  if (size != expected) return invalid(fmt::format("Expecting tensor size: {} but got: {}", expected, size));
  if (shape != column.row)
    return invalid(
        fmt::format("Expecting shape {} but got: {}", format_shape(column.row), format_shape(shape)));
  return {};
}

Answer<void> add_object_row(const JsonValue& item, std::uint32_t index, const Signature& signature,
                            const JsonValue& all, Columns& columns) {
  std::set<std::string> keys, expected;
  bool is_repeated = false;
  const auto children = item.children();
  for (auto child = children.begin(); child != children.end(); ++child) {
    const std::string name = (*child).as_string();
    ++child;
    if (!keys.insert(name).second) {
      is_repeated = true;
      continue;
    }
    if (auto added = add_row(*child, name, signature, all, columns); !added)
      return invalid(fmt::format("Failed to process element: {} key: {} of 'instances' list. Error: {}: {}",
                                 index, name, to_string(added.error().code), added.error().message));
  }
  for (const auto& input : signature.inputs) expected.insert(input.first);
  if (keys != expected || is_repeated)
    return invalid(fmt::format(
        "Failed to process element: {} of 'instances' list. JSON object: {} keys must be equal to: {}", index,
        excerpt(item), fmt::join(expected, ",")));
  return {};
}

Answer<Tensors> parse_instances(const JsonValue& instances, const Signature& signature) {
  const auto is_object = [](const JsonValue& value) { return value.is_object() && !is_base64_object(value); };
  const JsonValue first = *instances.children().begin();
  if (!first.is_object() && signature.inputs.size() > 1)
    return invalid(
        "instances is a plain list, but expecting list of objects as multiple input tensors required as per "
        "tensorinfo_map");
  const bool are_objects = is_object(first);
  Columns columns;
  std::uint32_t index = 0;
  for (const JsonValue item : instances.children()) {
    if (are_objects != is_object(item))
      return invalid(fmt::format("Expecting {} at item {} of input list",
                                 are_objects ? "object but got list" : "value/list but got object", index));
    if (are_objects) {
      if (auto added = add_object_row(item, index, signature, instances, columns); !added)
        return refuse(added.error());
    } else if (auto added = add_row(item, signature.inputs.begin()->first, signature, instances, columns);
               !added) {
      return invalid(fmt::format("Failed to process element: {} of 'instances' list. Error: {}: {}", index,
                                 to_string(added.error().code), added.error().message));
    }
    ++index;
  }
  Tensors tensors;
  for (auto& [name, column] : columns) {
    column.tensor.shape = column.row;
    column.tensor.shape.insert(column.tensor.shape.begin(), index);
    tensors.emplace(name, std::move(column.tensor));
  }
  return tensors;
}

Answer<Tensors> parse_inputs(const JsonValue& inputs, const Signature& signature) {
  Tensors tensors;
  if (!inputs.is_object() || is_base64_object(inputs)) {
    if (signature.inputs.size() > 1)
      return invalid(
          "inputs is a plain value/list, but expecting an object as multiple input tensors required as per "
          "tensorinfo_map");
    const auto& [name, spec] = *signature.inputs.begin();
    auto tensor = parse_tensor(inputs, spec.type);
    if (!tensor) return refuse(tensor.error());
    tensors.emplace(name, std::move(*tensor));
    return tensors;
  }
  for (const auto& [name, spec] : signature.inputs) {
    const auto value = inputs.find(name);
    if (!value) return invalid(fmt::format("Missing named input: {} in 'inputs' object.", name));
    auto tensor = parse_tensor(*value, spec.type);
    if (!tensor) return refuse(tensor.error());
    tensors.emplace(name, std::move(*tensor));
  }
  return tensors;
}

template <class T>
std::vector<T>* values_of(Feature& feature) {
  if (std::holds_alternative<std::monostate>(feature)) feature = std::vector<T>();
  return std::get_if<std::vector<T>>(&feature);
}

const char* kind_of(const Feature& feature) {
  static constexpr const char* kinds[] = {"UNKNOWN", "bytes", "float", "int64"};
  return kinds[feature.index()];
}

Answer<void> add_to_feature(const JsonValue& value, const std::string& name, Feature& feature) {
  using Kind = JsonValue::Kind;
  const auto other_kind = [&] {
    return invalid(
        fmt::format("Unexpected element type in feature: {} expecting type: {}", name, kind_of(feature)));
  };
  const auto add = [&]<class T>(T element) -> Answer<void> {
    auto* values = values_of<T>(feature);
    if (values == nullptr) return other_kind();
    values->push_back(std::move(element));
    return {};
  };
  switch (value.kind()) {
    case Kind::true_value: return add(std::int64_t{1});
    case Kind::false_value: return add(std::int64_t{0});
    case Kind::string: return add(value.as_string());
    case Kind::object: {
      if (!is_base64_object(value)) break;
      auto bytes = decode_base64(value);
      if (!bytes) return refuse(bytes.error());
      return add(std::move(*bytes));
    }
    case Kind::number:
      if (const auto integer = value.as_int64()) return add(*integer);
      if (value.as_uint64())
        return invalid(fmt::format("Feature: {} has uint64 element. Only int64 is supported.", name));
      return add(static_cast<float>(value.as_double()));
    case Kind::null:
    case Kind::array: break;
  }
  return invalid(
      fmt::format("Feature: {} has element with unexpected JSON type: {}", name, value.kind_name()));
}

Answer<Example> parse_example(const JsonValue& value) {
  if (!value.is_object())
    return invalid(fmt::format("Example must be JSON object but got JSON {}", value.kind_name()));
  Example example;
  const auto members = value.children();
  for (auto member = members.begin(); member != members.end(); ++member) {
    const std::string name = (*member).as_string();
    ++member;
    Feature feature;
    if (!(*member).is_array()) {
      if (auto added = add_to_feature(*member, name, feature); !added) return refuse(added.error());
    } else {
      for (const JsonValue item : (*member).children())
        if (auto added = add_to_feature(item, name, feature); !added) return refuse(added.error());
    }
    example[name] = std::move(feature);
  }
  return example;
}

template <class T>
Answer<void> add_feature(const Feature& feature, const std::string& name, const TensorSpec& spec,
                         std::uint64_t expected, std::vector<T>& values) {
  const auto* own = std::get_if<std::vector<T>>(&feature);
  if (own == nullptr)
    return invalid(fmt::format("Key: {}.  Data types don't match. Expected type: {}", name,
                               names(spec.type).tensorflow));
  if (own->size() != expected)
    return invalid(
        fmt::format("Key: {}.  Number of {} values != expected.  Values size: {} but output shape: {}", name,
                    names(spec.type).tensorflow, own->size(),
                    format_shape(Shape(spec.shape.begin() + 1, spec.shape.end()))));
  values.insert(values.end(), own->begin(), own->end());
  return {};
}

template <class T>
Answer<std::vector<T>> column_of(const std::vector<Example>& examples, const std::string& name,
                                 const TensorSpec& spec, std::uint64_t each) {
  std::vector<T> values;
  for (const Example& example : examples) {
    const auto feature = example.find(name);
    if (feature == example.end() || std::holds_alternative<std::monostate>(feature->second))
      return invalid(fmt::format("Feature: {} (data type: {}) is required but could not be found.", name,
                                 names(spec.type).tensorflow));
    if (auto added = add_feature(feature->second, name, spec, each, values); !added)
      return refuse(added.error());
  }
  return values;
}

template <class T>
void set_bytes(Tensor& tensor, const std::vector<T>& values) {
  tensor.bytes.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
}

}  // namespace

Answer<Json> parse_body(std::string_view body) {
  auto json = Json::parse(body);
  if (json && !json->root().is_object()) return format_error(json->root(), "Is not object");
  return json;
}

Answer<std::string> signature_name(const JsonValue& root) {
  const auto name = root.find("signature_name");
  if (!name) return std::string();
  if (!name->is_string())
    return format_error(root, "not formatted correctly. 'signature_name' key must be a string value.");
  return name->as_string();
}

Answer<PredictInputs> parse_predict(const JsonValue& root, const Signature& signature) {
  const auto instances = root.find("instances"), inputs = root.find("inputs");
  if (instances && inputs)
    return format_error(
        root, "Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist ");
  if (!instances && !inputs) return invalid("Missing 'inputs' or 'instances' key");
  Answer<Tensors> tensors;
  if (instances) {
    if (!instances->is_array()) return format_error(root, "Excepting 'instances' to be an list/array");
    if (instances->size() == 0) return format_error(root, "No values in 'instances' array");
    tensors = parse_instances(*instances, signature);
  } else {
    tensors = parse_inputs(*inputs, signature);
  }
  if (!tensors) return refuse(tensors.error());
  return PredictInputs{instances ? BodyFormat::row : BodyFormat::columnar, std::move(*tensors)};
}

Answer<Tensor> parse_tensor(const JsonValue& value, DataType type) {
  Tensor tensor{type, shape_of(value), {}, {}};
  reserve(tensor, tensor.shape, 1, value.source().size());
  if (auto filled = fill(value, 0, tensor.shape, type, tensor); !filled) return refuse(filled.error());
  return tensor;
}

Answer<void> append_values(const JsonValue& value, DataType type, Tensor& to) {
  if (!value.is_array()) return append_value(value, type, to);
  for (const JsonValue child : value.children())
    if (auto appended = append_values(child, type, to); !appended) return appended;
  return {};
}

Answer<std::vector<Example>> parse_examples(const JsonValue& root) {
  Example context;
  if (const auto given = root.find("context")) {
    auto parsed = parse_example(*given);
    if (!parsed) return refuse(parsed.error());
    context = std::move(*parsed);
  }
  const auto list = root.find("examples");
  if (!list)
    return format_error(root, "When method is classify, key 'examples' is expected and was not found");
  if (!list->is_array()) return format_error(root, "Expecting 'examples' value to be an list/array");
  if (list->size() == 0) return format_error(root, "'examples' value is an empty array");
  std::vector<Example> examples;
  for (const JsonValue item : list->children()) {
    auto example = parse_example(item);
    if (!example) return refuse(example.error());
    example->insert(context.begin(), context.end());  // the example's own features win
    examples.push_back(std::move(*example));
  }
  return examples;
}

Answer<Tensors> tensors_of(const std::vector<Example>& examples, const Signature& signature) {
  Tensors tensors;
  for (const auto& [name, spec] : signature.inputs) {
    Shape row(spec.shape.begin() + (spec.shape.empty() ? 0 : 1), spec.shape.end());
    const auto each = element_count(row);
    if (!each || spec.shape.empty())
      return refuse(Code::unimplemented,
                    fmt::format("input {} has no fixed size, which examples need", name));
    Tensor tensor{spec.type, std::move(row), {}, {}};
    tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(examples.size()));
    Answer<void> done;
    if (spec.type == DataType::string) {
      auto values = column_of<std::string>(examples, name, spec, *each);
      if (!values) return refuse(values.error());
      tensor.strings = std::move(*values);
    } else if (spec.type == DataType::int64) {
      auto values = column_of<std::int64_t>(examples, name, spec, *each);
      if (!values) return refuse(values.error());
      set_bytes(tensor, *values);
    } else if (spec.type == DataType::float32) {
      auto values = column_of<float>(examples, name, spec, *each);
      if (!values) return refuse(values.error());
      set_bytes(tensor, *values);
    } else {
      return refuse(Code::unimplemented, fmt::format("examples cannot hold {} values, which input {} has",
                                                     names(spec.type).tensorflow, name));
    }
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

}  // namespace slipway::serve
