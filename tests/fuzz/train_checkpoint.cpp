// Checkpoints: sections must lie inside the file, checksums must hold.
#include <cstdlib>
#include <string>

#include "base/crc32c.h"
#include "target.h"
#include "train/state/checkpoint.h"

using namespace slipway::train;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // As it is, and with the header's checksum set right, so that mutations reach the parser behind it.
  std::string bytes(reinterpret_cast<const char*>(data), size);
  for (int repaired = 0; repaired < 2; ++repaired) {
    const auto checkpoint =
        parse_checkpoint({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "f");
    if (checkpoint &&
        (checkpoint->values.size() + checkpoint->state.size()) * sizeof(float) > 2 * bytes.size())
      std::abort();
    std::uint32_t length = 0;
    if (bytes.size() < 16) break;
    bytes.copy(reinterpret_cast<char*>(&length), 4, 8);
    if (length > bytes.size() - 16) break;
    const std::uint32_t crc = slipway::crc32c(bytes.data() + 16, length);
    bytes.replace(12, 4, reinterpret_cast<const char*>(&crc), 4);
  }
  return 0;
}
