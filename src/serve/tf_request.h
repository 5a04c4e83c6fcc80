#pragma once
// Bodies of TensorFlow Serving's REST requests: JSON in, tensors out. Error texts are its own, since its
// users match on them. Pure.
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "serve/json.h"
#include "serve/model.h"

namespace slipway::serve {

// A row request has one element of `instances` per row; a columnar one gives each whole tensor in `inputs`.
enum class BodyFormat { row, columnar };

struct PredictInputs {
  BodyFormat format = BodyFormat::row;
  Tensors tensors;
};

// The document's root has to be an object.
Answer<Json> parse_body(std::string_view body);
// What the body asks for; empty: not said.
Answer<std::string> signature_name(const JsonValue& root);
Answer<PredictInputs> parse_predict(const JsonValue& root, const Signature& signature);
// One value of any nesting as a tensor of this type: its shape is that of the first elements, which all
// others must have too.
Answer<Tensor> parse_tensor(const JsonValue& value, DataType type);

// The same for values nested in any way, one after another: of protocols that give the shape apart.
Answer<void> append_values(const JsonValue& value, DataType type, Tensor& to);

// A feature of an example holds values of one kind.
using Feature =
    std::variant<std::monostate, std::vector<std::string>, std::vector<float>, std::vector<std::int64_t>>;
using Example = std::map<std::string, Feature, std::less<>>;

// Of classify and regress; the context is part of every example.
Answer<std::vector<Example>> parse_examples(const JsonValue& root);
// The signature's inputs out of the features of their names.
Answer<Tensors> tensors_of(const std::vector<Example>& examples, const Signature& signature);

}  // namespace slipway::serve
