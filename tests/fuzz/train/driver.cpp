// Runs a fuzz target without libFuzzer: every file of the given folders, and a fixed number of mutations of
// each from a fixed seed. A regression test with any compiler; with clang the same target links libFuzzer
// instead.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" std::vector<std::string> slipway_fuzz_seeds();

namespace {

std::string mutate(const std::string& seed, slipway::Random& random) {
  std::string text = seed;
  for (std::int64_t edits = random.between(1, 8); edits > 0; --edits) {
    const auto at = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(text.size())));
    switch (random.between(0, 4)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random.between(0, 255));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random.between(0, 7)));
        break;
      case 2: text.resize(at); break;
      case 3:
        text.insert(at, 1 + static_cast<std::size_t>(random.between(0, 8)),
                    static_cast<char>(random.between(0, 255)));
        break;
      default:
        if (at < text.size())
          text.insert(at, text.substr(at, static_cast<std::size_t>(random.between(1, 64))));
    }
  }
  return text;
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 2000;
  slipway::Random random(20'260'302);
  std::size_t runs = 0;
  for (const std::string& seed : slipway_fuzz_seeds())
    for (int i = 0; i <= rounds; ++i, ++runs) {
      const std::string text = i == 0 ? seed : mutate(seed, random);
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    }
  std::printf("%zu inputs\n", runs);
}
