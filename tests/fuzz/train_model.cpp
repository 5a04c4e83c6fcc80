// Model files and TF_CONFIG: whatever parses must format, parse again to the same, and be checkable.
#include <cstdlib>
#include <string>
#include <vector>

#include "train/nn/model.h"
#include "train/run/tf_config.h"

using namespace slipway::train;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto model = parse_model(text, "f")) {
    const auto again = parse_model(format_model(*model), "f");
    if (!again || format_model(*again) != format_model(*model)) std::abort();
    static_cast<void>(check_model(*model, 10));
  }
  static_cast<void>(parse_tf_config(text));
  return 0;
}

extern "C" std::vector<std::string> slipway_fuzz_seeds() {
  return {
      "name: a\ninput: [1, 28, 28]\nlayers:\n  - conv: {filters: 6, kernel: 5, padding: same}\n  - relu\n  - "
      "max_pool: 2\n  - dense: 10\n",
      "{name: n, loss: squared_error, layers: [{dropout: 0.5}, batch_norm, {avg_pool: {kernel: 3, stride: "
      "2}}, tanh]}",
      R"({"cluster": {"chief": ["a:1"], "worker": ["b:2"], "ps": ["c:3"]}, "task": {"type": "ps", "index": 0}})"};
}
