#include "serve/tf_answer.h"

#include <fmt/format.h>

#include "base/encoding.h"

namespace slipway::serve {
namespace {

void append_element_of(std::string& to, const Tensor& tensor, bool is_bytes, std::size_t index) {
  if (tensor.type != DataType::string) return append_element(to, tensor, index);
  if (!is_bytes) return append_json_string(to, tensor.strings[index]);
  to += R"({"b64":)";
  append_json_string(to, format_base64(tensor.strings[index]));
  to += '}';
}

// The elements from `index` on as a list nested like the dimensions from `dimension` on.
void append_values(std::string& to, const Tensor& tensor, bool is_bytes, std::size_t dimension,
                   std::size_t& index) {
  if (dimension == tensor.shape.size()) return append_element_of(to, tensor, is_bytes, index++);
  to += '[';
  for (std::int64_t i = 0; i < tensor.shape[dimension]; ++i) {
    if (i > 0) to += ',';
    append_values(to, tensor, is_bytes, dimension + 1, index);
  }
  to += ']';
}

bool shown_as_bytes(const std::string& name, const Tensor& tensor) {
  return tensor.type == DataType::string && name.ends_with("_bytes");
}

Answer<std::string> format_rows(const Tensors& outputs) {
  std::int64_t rows = -1;
  for (const auto& [name, tensor] : outputs) {
    if (tensor.shape.empty()) return invalid(fmt::format("Tensor name: {} has no shape information ", name));
    if (rows >= 0 && tensor.shape[0] != rows)
      return invalid(fmt::format("Tensor name: {} has inconsistent batch size: {} expecting: {}", name,
                                 tensor.shape[0], rows));
    rows = tensor.shape[0];
  }
  std::vector<std::size_t> at(outputs.size(), 0);
  std::string text = R"({"predictions":[)";
  for (std::int64_t row = 0; row < rows; ++row) {
    if (row > 0) text += ',';
    if (outputs.size() > 1) text += '{';
    std::size_t which = 0;
    for (const auto& [name, tensor] : outputs) {
      if (which > 0) text += ',';
      if (outputs.size() > 1) {
        append_json_string(text, name);
        text += ':';
      }
      append_values(text, tensor, shown_as_bytes(name, tensor), 1, at[which++]);
    }
    if (outputs.size() > 1) text += '}';
  }
  return text + "]}";
}

std::string format_columns(const Tensors& outputs) {
  std::string text = R"({"outputs":)";
  if (outputs.size() > 1) text += '{';
  bool is_first = true;
  for (const auto& [name, tensor] : outputs) {
    if (!is_first) text += ',';
    is_first = false;
    if (outputs.size() > 1) {
      append_json_string(text, name);
      text += ':';
    }
    std::size_t index = 0;
    append_values(text, tensor, shown_as_bytes(name, tensor), 0, index);
  }
  if (outputs.size() > 1) text += '}';
  return text + "}";
}

void append_specs(std::string& to, const std::map<std::string, TensorSpec, std::less<>>& specs) {
  to += '{';
  bool is_first = true;
  for (const auto& [name, spec] : specs) {
    if (!is_first) to += ',';
    is_first = false;
    append_json_string(to, name);
    to += fmt::format(R"(:{{"dtype":"{}","tensor_shape":{{"dim":[)", names(spec.type).tensorflow_enum);
    for (std::size_t i = 0; i < spec.shape.size(); ++i)
      to += fmt::format(R"({}{{"size":"{}","name":""}})", i == 0 ? "" : ",", spec.shape[i]);
    to += fmt::format(R"(],"unknown_rank":{}}},"name":)", spec.is_unknown_rank);
    append_json_string(to, spec.name);
    to += '}';
  }
  to += '}';
}

}  // namespace

void append_element(std::string& to, const Tensor& tensor, std::size_t index) {
  const auto integer = [&](auto value) { fmt::format_to(std::back_inserter(to), "{}", value); };
  switch (tensor.type) {
    case DataType::float32: return append_number(to, tensor.values<float>()[index]);
    case DataType::float64: return append_number(to, tensor.values<double>()[index]);
    case DataType::float16: return append_number(to, half_to_float(tensor.values<std::uint16_t>()[index]));
    case DataType::bfloat16:
      return append_number(to, bfloat16_to_float(tensor.values<std::uint16_t>()[index]));
    case DataType::int8: return integer(int{tensor.values<std::int8_t>()[index]});
    case DataType::int16: return integer(tensor.values<std::int16_t>()[index]);
    case DataType::int32: return integer(tensor.values<std::int32_t>()[index]);
    case DataType::int64: return integer(tensor.values<std::int64_t>()[index]);
    case DataType::uint8: return integer(unsigned{tensor.values<std::uint8_t>()[index]});
    case DataType::uint16: return integer(tensor.values<std::uint16_t>()[index]);
    case DataType::uint32: return integer(tensor.values<std::uint32_t>()[index]);
    case DataType::uint64: return integer(tensor.values<std::uint64_t>()[index]);
    case DataType::boolean: to += tensor.values<std::uint8_t>()[index] != 0 ? "true" : "false"; return;
    case DataType::string: return append_json_string(to, tensor.strings[index]);
  }
}

Answer<std::string> format_predict(const Tensors& outputs, BodyFormat format) {
  if (outputs.empty()) return invalid("Cannot convert empty tensor map to JSON");
  if (format == BodyFormat::row) return format_rows(outputs);
  return format_columns(outputs);
}

Answer<std::string> format_classify(const Tensors& outputs) {
  const auto classes = outputs.find("classes"), scores = outputs.find("scores");
  const Tensor* shaped = classes != outputs.end()  ? &classes->second
                         : scores != outputs.end() ? &scores->second
                                                   : nullptr;
  if (shaped == nullptr || shaped->shape.size() != 2 || shaped->shape[0] == 0)
    return invalid("Cannot convert empty ClassificationResults to JSON");
  std::string text = R"({"results":[)";
  const auto rows = static_cast<std::size_t>(shaped->shape[0]),
             width = static_cast<std::size_t>(shaped->shape[1]);
  for (std::size_t row = 0; row < rows; ++row) {
    text += row > 0 ? ",[" : "[";
    for (std::size_t i = 0; i < width; ++i) {
      text += i > 0 ? ",[" : "[";
      append_json_string(text, classes != outputs.end() ? classes->second.strings[row * width + i] : "");
      text += ',';
      append_number(text, scores != outputs.end() ? scores->second.values<float>()[row * width + i] : 0.0F);
      text += ']';
    }
    text += ']';
  }
  return text + "]}";
}

Answer<std::string> format_regress(const Tensors& outputs) {
  const auto values = outputs.find("outputs");
  if (values == outputs.end() || values->second.count() == 0)
    return invalid("Cannot convert empty RegressionResults to JSON");
  std::string text = R"({"results":[)";
  for (std::size_t i = 0; i < values->second.count(); ++i) {
    if (i > 0) text += ',';
    append_number(text, values->second.values<float>()[i]);
  }
  return text + "]}";
}

std::string format_failure(const std::string& message) {
  std::string text = R"({"error": )";
  append_json_string(text, message);
  return text + "}";
}

std::string format_status(const std::vector<VersionStatus>& versions) {
  std::string text = R"({"model_version_status":[)";
  for (auto version = versions.begin(); version != versions.end(); ++version) {
    if (version != versions.begin()) text += ',';
    text += fmt::format(R"({{"version":"{}","state":"{}","status":{{"error_code":"{}","error_message":)",
                        version->number, to_string(version->state), to_string(version->failure.code));
    append_json_string(text, version->failure.message);
    text += "}}";
  }
  return text + "]}";
}

std::string format_metadata(const std::string& model, std::int64_t version,
                            const std::map<std::string, Signature, std::less<>>& signatures) {
  std::string text = R"({"model_spec":{"name":)";
  append_json_string(text, model);
  text += fmt::format(
      R"(,"signature_name":"","version":"{}"}},"metadata":{{"signature_def":{{"signature_def":{{)", version);
  bool is_first = true;
  for (const auto& [name, signature] : signatures) {
    if (!is_first) text += ',';
    is_first = false;
    append_json_string(text, name);
    text += R"(:{"inputs":)";
    append_specs(text, signature.inputs);
    text += R"(,"outputs":)";
    append_specs(text, signature.outputs);
    text += fmt::format(R"(,"method_name":"{}"}})", method_name(signature.method));
  }
  return text + "}}}}";
}

}  // namespace slipway::serve
