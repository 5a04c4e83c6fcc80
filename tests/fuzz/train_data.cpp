// The readers of data files: IDX, gzip, CIFAR-10.
#include <cstdlib>
#include <string>
#include <vector>

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

extern "C" std::vector<std::string> slipway_fuzz_seeds() {
  std::string images("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02", 16);
  images += "12345678";
  std::string labels("\0\0\x08\x01\0\0\0\x03\x01\x02\x03", 11);
  // "hello" as gzip makes it
  std::string packed("\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\x07\0\x86\xa6\x10\x36\x05\0\0\0", 25);
  return {images, labels, packed, std::string(cifar_record_bytes, '\3'), ""};
}
