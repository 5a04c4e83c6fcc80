// Messages of TensorFlow Serving's gRPC: what parses has as many values as its shape says, and comes back.
#include "serve/grpc_messages.h"
#include "target.h"

using namespace slipway::serve;

namespace {

template <class T>
bool is_good(const Answer<T>& answer) {
  SLIPWAY_CHECK(answer || !answer.error().message.empty());
  return answer.has_value();
}

void check_tensor(const Tensor& tensor) {
  SLIPWAY_CHECK(element_count(tensor.shape) == tensor.count());
  if (tensor.count() > 100'000) return;  // a few bytes can mean many zeros
  const auto again = parse_tensor_proto(format_tensor_proto(tensor));
  SLIPWAY_CHECK(again && again->bytes == tensor.bytes && again->strings == tensor.strings);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = slipway::fuzz::text(data, size);
  if (const auto tensor = parse_tensor_proto(bytes); is_good(tensor)) check_tensor(*tensor);
  if (const auto request = parse_predict_request(bytes); is_good(request))
    for (const auto& input : request->inputs) check_tensor(input.second);
  static_cast<void>(is_good(parse_metadata_request(bytes)));
  if (const auto request = parse_examples_request(bytes); is_good(request))
    SLIPWAY_CHECK(!request->examples.empty());
  static_cast<void>(is_good(parse_status_request(bytes)));
  return 0;
}
