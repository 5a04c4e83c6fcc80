// What peers send: frames, plans, introductions, tables, compressed gradients.
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/crc32c.h"
#include "target.h"
#include "train/exchange/frame.h"
#include "train/exchange/group.h"
#include "train/exchange/plan.h"

using namespace slipway::train;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size >= frame_bytes) {
    std::array<std::uint8_t, frame_bytes> header;
    std::memcpy(header.data(), data, frame_bytes);
    for (int repaired = 0; repaired < 2; ++repaired) {
      if (const auto frame = parse_frame(header))
        if (parse_frame(format_frame(*frame)).value() != *frame) std::abort();
      const std::uint32_t crc = slipway::crc32c(header.data(), 36);
      std::memcpy(header.data() + 36, &crc, 4);
    }
  }
  if (const auto plan = parse_plan(text))
    if (format_plan(parse_plan(format_plan(*plan)).value()) != format_plan(*plan)) std::abort();
  static_cast<void>(parse_introduction(text));
  if (const auto table = parse_table(text))
    for (std::uint32_t machine = 0; machine < table->machines(); ++machine)
      static_cast<void>(table->ranks_of(machine));
  static_cast<void>(parse_address(text));
  std::vector<float> out(32);
  static_cast<void>(expand_top({data, size}, out));
  return 0;
}
