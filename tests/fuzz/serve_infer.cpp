// Frames of the Open Inference Protocol: the first two bytes say how long the JSON is, as the header does.
#include "serve/oip.h"
#include "target.h"

using namespace slipway::serve;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t announced = data[0] + std::size_t{256} * data[1];
  const std::string_view body = slipway::fuzz::text(data + 2, size - 2);
  Signature signature;
  signature.inputs["a"] = {"a", DataType::float32, {-1}, false};
  signature.inputs["b"] = {"b", DataType::string, {-1}, false};
  signature.outputs["y"] = {"y", DataType::float32, {-1}, false};
  const std::optional<std::size_t> none;
  for (const auto json_size : {none, std::optional<std::size_t>(announced)}) {
    const auto request = parse_infer(body, json_size, signature);
    SLIPWAY_CHECK(request || !request.error().message.empty());
    if (!request) continue;
    for (const auto& [name, tensor] : request->inputs)
      SLIPWAY_CHECK(element_count(tensor.shape) == tensor.count());
    Tensors outputs;
    outputs["y"] = request->inputs.at("a");
    const InferBody answer = format_infer("m", 1, *request, outputs);
    SLIPWAY_CHECK(!answer.json_size || *answer.json_size <= answer.bytes.size());
  }
  return 0;
}
