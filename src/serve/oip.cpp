#include "serve/oip.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "serve/tf_answer.h"
#include "serve/tf_request.h"

namespace slipway::serve {
namespace {

Answer<Shape> parse_shape(const JsonValue& input, const std::string& name) {
  const auto given = input.find("shape");
  if (!given || !given->is_array()) return invalid(fmt::format("input {} has no shape", name));
  Shape shape;
  for (const JsonValue side : given->children()) {
    const auto number = side.as_int64();
    if (!number || *number < 0)
      return invalid(fmt::format("the shape of input {} has {}; sides are whole numbers from 0 on", name,
                                 excerpt(side)));
    shape.push_back(*number);
  }
  return shape;
}

std::optional<JsonValue> parameter(const JsonValue& of, std::string_view name) {
  const auto parameters = of.find("parameters");
  return parameters ? parameters->find(name) : std::nullopt;
}

Answer<std::optional<std::size_t>> binary_size(const JsonValue& input, const std::string& name) {
  const auto size = parameter(input, "binary_data_size");
  if (!size) return std::optional<std::size_t>();
  const auto number = size->as_uint64();
  if (!number)
    return invalid(fmt::format("binary_data_size of input {} is {}, not a size", name, excerpt(*size)));
  return std::optional<std::size_t>(*number);
}

// One input; what it takes of `payload` is removed from its front.
Answer<Tensor> parse_input(const JsonValue& input, const std::string& name, std::string_view& payload) {
  const auto datatype = input.find("datatype");
  const auto type = datatype && datatype->is_string() ? type_of_oip(datatype->as_string()) : std::nullopt;
  if (!type)
    return invalid(
        fmt::format("input {} has the datatype {}; known are BOOL, UINT8 to UINT64, INT8 to INT64, FP16, "
                    "FP32, FP64, BF16 and BYTES",
                    name, datatype ? excerpt(*datatype) : "none"));
  auto shape = parse_shape(input, name);
  if (!shape) return refuse(shape.error());
  const auto size = binary_size(input, name);
  if (!size) return refuse(size.error());
  const auto data = input.find("data");
  if (*size) {
    if (data) return invalid(fmt::format("input {} has both data and binary_data_size", name));
    if (**size > payload.size())
      return invalid(fmt::format("input {} announces {} bytes, and {} are left of the body", name, **size,
                                 payload.size()));
    const std::string_view own = payload.substr(0, **size);
    payload.remove_prefix(**size);
    return parse_raw_tensor(*type, std::move(*shape), own, name);
  }
  if (!data || !data->is_array()) return invalid(fmt::format("input {} has no list `data`", name));
  if (*type == DataType::float16 || *type == DataType::bfloat16)
    return invalid(fmt::format("input {} is {}, which is sent in binary only", name, names(*type).oip));
  const auto count = element_count(*shape);
  if (!count)
    return invalid(fmt::format("input {}: the sides {} multiply up to too much", name, format_shape(*shape)));
  Tensor tensor{*type, std::move(*shape), {}, {}};
  if (auto read = append_values(*data, *type, tensor); !read)
    return refuse(read.error().code, fmt::format("input {}: {}", name, read.error().message));
  if (tensor.count() != *count)
    return invalid(fmt::format("input {} has {} values, and its shape {} takes {}", name, tensor.count(),
                               format_shape(tensor.shape), *count));
  return tensor;
}

Answer<std::vector<InferOutput>> parse_outputs(const JsonValue& root, const Signature& signature) {
  const auto is_true = [](const std::optional<JsonValue>& value) {
    return value && value->kind() == JsonValue::Kind::true_value;
  };
  const bool all_binary = is_true(parameter(root, "binary_data_output"));
  std::vector<InferOutput> outputs;
  const auto asked = root.find("outputs");
  if (!asked || asked->size() == 0) {
    for (const auto& output : signature.outputs) outputs.push_back({output.first, all_binary});
    return outputs;
  }
  if (!asked->is_array()) return invalid("`outputs` is not a list");
  for (const JsonValue output : asked->children()) {
    const auto name = output.find("name");
    if (!name || !name->is_string()) return invalid("an output has no name");
    if (parameter(output, "classification"))
      return refuse(Code::unimplemented, "the extension `classification` is not offered; ask for the scores");
    const auto own = parameter(output, "binary_data");
    outputs.push_back({name->as_string(), own ? is_true(own) : all_binary});
    if (!signature.outputs.contains(outputs.back().name))
      return invalid(fmt::format("there is no output {}", outputs.back().name));
  }
  return outputs;
}

void append_shape(std::string& to, const Shape& shape) { to += format_shape(shape); }

void append_tensor_specs(std::string& to, const std::map<std::string, TensorSpec, std::less<>>& specs) {
  bool is_first = true;
  to += '[';
  for (const auto& [name, spec] : specs) {
    if (!is_first) to += ',';
    is_first = false;
    to += R"({"name":)";
    append_json_string(to, name);
    to += fmt::format(R"(,"datatype":"{}","shape":)", names(spec.type).oip);
    append_shape(to, spec.shape);
    to += '}';
  }
  to += ']';
}

}  // namespace

Answer<void> check_inputs(const Tensors& inputs, const Signature& signature) {
  std::vector<std::string> expected, extra, missing;
  for (const auto& spec : signature.inputs) {
    expected.push_back(spec.first);
    if (!inputs.contains(spec.first)) missing.push_back(spec.first);
  }
  for (const auto& input : inputs)
    if (!signature.inputs.contains(input.first)) extra.push_back(input.first);
  if (!extra.empty() || !missing.empty())
    return invalid(fmt::format(
        "input size does not match signature: {} != {} len({{{}}}) != len({{{}}}). Sent extra: "
        "{{{}}}. Missing but required: {{{}}}.",
        inputs.size(), signature.inputs.size(),
        [&] {
          std::vector<std::string> sent;
          for (const auto& input : inputs) sent.push_back(input.first);
          return fmt::format("{}", fmt::join(sent, ","));
        }(),
        fmt::join(expected, ","), fmt::join(extra, ","), fmt::join(missing, ",")));
  for (const auto& [name, tensor] : inputs) {
    const DataType type = signature.inputs.find(name)->second.type;
    if (type != tensor.type)
      return invalid(fmt::format("input {} is {}, and the model takes {}", name, names(tensor.type).oip,
                                 names(type).oip));
  }
  return {};
}

Answer<Tensor> parse_raw_tensor(DataType type, Shape shape, std::string_view bytes, const std::string& name) {
  const auto count = element_count(shape);
  if (!count)
    return invalid(fmt::format("input {}: the sides {} multiply up to too much", name, format_shape(shape)));
  Tensor tensor{type, std::move(shape), {}, {}};
  if (type != DataType::string) {
    const std::uint64_t size = *count * names(type).size;
    if (bytes.size() != size)
      return invalid(fmt::format("input {} has {} bytes, and its shape {} of {} takes {}", name, bytes.size(),
                                 format_shape(tensor.shape), names(type).oip, size));
    tensor.bytes.resize(size);
    if (size > 0) std::memcpy(tensor.bytes.data(), bytes.data(), size);
    if (type == DataType::boolean)
      for (std::byte& byte : tensor.bytes) byte = byte == std::byte{0} ? std::byte{0} : std::byte{1};
    return tensor;
  }
  while (!bytes.empty()) {
    std::uint32_t length = 0;
    if (bytes.size() < sizeof length) return invalid(fmt::format("input {} ends inside a length", name));
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes.remove_prefix(sizeof length);
    if (length > bytes.size()) return invalid(fmt::format("input {} ends inside an element", name));
    tensor.strings.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  if (tensor.strings.size() != *count)
    return invalid(fmt::format("input {} has {} elements, and its shape {} takes {}", name,
                               tensor.strings.size(), format_shape(tensor.shape), *count));
  return tensor;
}

void append_raw_tensor(std::string& to, const Tensor& tensor) {
  if (tensor.type != DataType::string) {
    to.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    return;
  }
  for (const std::string& element : tensor.strings) {
    const auto length = static_cast<std::uint32_t>(element.size());
    to.append(reinterpret_cast<const char*>(&length), sizeof length).append(element);
  }
}

Answer<InferRequest> parse_infer(std::string_view body, std::optional<std::size_t> json_size,
                                 const Signature& signature) {
  if (json_size && *json_size > body.size())
    return invalid(fmt::format("Inference-Header-Content-Length is {}, and the body has {} bytes", *json_size,
                               body.size()));
  if (json_size && *json_size == 0)
    return refuse(Code::unimplemented,
                  "a body without a JSON header is not taken; describe the inputs in one");
  const auto json = parse_body(body.substr(0, json_size.value_or(body.size())));
  if (!json) return refuse(json.error());
  std::string_view payload = json_size ? body.substr(*json_size) : std::string_view();
  const JsonValue root = json->root();
  InferRequest request;
  if (const auto id = root.find("id"); id && id->is_string()) request.id = id->as_string();
  const auto inputs = root.find("inputs");
  if (!inputs || !inputs->is_array()) return invalid("the request has no list `inputs`");
  for (const JsonValue input : inputs->children()) {
    const auto given = input.find("name");
    if (!given || !given->is_string()) return invalid("an input has no name");
    const std::string name = given->as_string();
    auto tensor = parse_input(input, name, payload);
    if (!tensor) return refuse(tensor.error());
    if (!request.inputs.emplace(name, std::move(*tensor)).second)
      return invalid(fmt::format("input {} is given twice", name));
  }
  if (!payload.empty())
    return invalid(fmt::format("{} bytes follow the last input that announces any", payload.size()));
  if (auto checked = check_inputs(request.inputs, signature); !checked) return refuse(checked.error());
  auto outputs = parse_outputs(root, signature);
  if (!outputs) return refuse(outputs.error());
  request.outputs = std::move(*outputs);
  return request;
}

InferBody format_infer(const std::string& model, std::int64_t version, const InferRequest& request,
                       const Tensors& outputs) {
  std::string json = R"({"model_name":)", payload;
  append_json_string(json, model);
  json += fmt::format(R"(,"model_version":"{}")", version);
  if (request.id) {
    json += R"(,"id":)";
    append_json_string(json, *request.id);
  }
  json += R"(,"outputs":[)";
  bool has_binary = false;
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    const InferOutput& asked = request.outputs[i];
    const Tensor& tensor = outputs.find(asked.name)->second;
    json += i == 0 ? R"({"name":)" : R"(,{"name":)";
    append_json_string(json, asked.name);
    json += fmt::format(R"(,"datatype":"{}","shape":)", names(tensor.type).oip);
    append_shape(json, tensor.shape);
    const bool is_binary =
        asked.is_binary || tensor.type == DataType::float16 || tensor.type == DataType::bfloat16;
    if (is_binary) {
      has_binary = true;
      const std::size_t before = payload.size();
      append_raw_tensor(payload, tensor);
      json += fmt::format(R"(,"parameters":{{"binary_data_size":{}}}}})", payload.size() - before);
      continue;
    }
    json += R"(,"data":[)";
    for (std::size_t e = 0; e < tensor.count(); ++e) {
      if (e > 0) json += ',';
      append_element(json, tensor, e);
    }
    json += "]}";
  }
  json += "]}";
  if (!has_binary) return {std::move(json), std::nullopt};
  const std::size_t json_size = json.size();
  return {std::move(json) + payload, json_size};
}

std::string format_model(const std::string& name, const std::vector<std::int64_t>& versions,
                         const std::string& platform, const Signature& signature) {
  std::string text = R"({"name":)";
  append_json_string(text, name);
  text += R"(,"versions":[)";
  for (std::size_t i = 0; i < versions.size(); ++i)
    text += fmt::format(R"({}"{}")", i == 0 ? "" : ",", versions[i]);
  text += fmt::format(R"(],"platform":"{}","inputs":)", platform);
  append_tensor_specs(text, signature.inputs);
  text += R"(,"outputs":)";
  append_tensor_specs(text, signature.outputs);
  return text + "}";
}

}  // namespace slipway::serve
