// Bodies of predictions: whatever parses into tensors has as many values as its shape says, and can be
// answered.
#include "serve/scoring.h"
#include "serve/tf_answer.h"
#include "serve/tf_request.h"
#include "target.h"

using namespace slipway::serve;

namespace {

Signature signature_of(DataType first, bool has_second) {
  Signature signature;
  signature.inputs["x"] = {"x", first, {-1, 2}, false};
  if (has_second) signature.inputs["s_bytes"] = {"s", DataType::string, {-1, 1}, false};
  signature.outputs["y"] = {"y", DataType::float32, {-1}, false};
  return signature;
}

void check_tensors(const Tensors& tensors) {
  for (const auto& [name, tensor] : tensors) SLIPWAY_CHECK(element_count(tensor.shape) == tensor.count());
}

template <class T>
bool is_good(const Answer<T>& answer) {
  SLIPWAY_CHECK(answer || !answer.error().message.empty());
  return answer.has_value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body = slipway::fuzz::text(data, size);
  for (const DataType type :
       {DataType::float32, DataType::int64, DataType::uint8, DataType::boolean, DataType::string}) {
    const Signature signature = signature_of(type, size % 2 == 1);
    if (const auto scored = parse_scoring_json(body, signature); is_good(scored)) {
      check_tensors(*scored);
      static_cast<void>(format_scoring(*scored));
    }
    if (const auto csv = parse_scoring_csv(body, signature); is_good(csv)) check_tensors(*csv);
    const auto json = parse_body(body);
    if (!is_good(json)) continue;
    const auto name = signature_name(json->root());
    static_cast<void>(is_good(name));
    if (const auto inputs = parse_predict(json->root(), signature); is_good(inputs)) {
      check_tensors(inputs->tensors);
      // What came in goes out again, and is JSON of our own kind.
      if (const auto text = format_predict(inputs->tensors, inputs->format); is_good(text))
        SLIPWAY_CHECK(Json::parse(*text).has_value());
    }
    if (const auto examples = parse_examples(json->root()); is_good(examples))
      if (const auto tensors = tensors_of(*examples, signature); is_good(tensors)) check_tensors(*tensors);
  }
  return 0;
}
