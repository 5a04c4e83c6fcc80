// The readers of data files: IDX, gzip, CIFAR-10.
#include <cstdlib>

#include "target.h"
#include "train/data/bytes.h"
#include "train/data/cifar.h"
#include "train/data/idx.h"

using namespace slipway::train;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  if (const auto images = parse_idx_images(bytes, "f"))
    if (images->pixels.size() != images->count * static_cast<std::size_t>(images->height * images->width))
      std::abort();
  if (const auto labels = parse_idx_labels(bytes, "f"))
    if (labels->size() > size) std::abort();
  if (const auto records = parse_cifar(bytes, "f"))
    if (*records * cifar_record_bytes != size) std::abort();
  if (const auto content = gunzip(bytes, 1 << 16, "f"))
    if (content->size() > 1 << 16) std::abort();
  return 0;
}
