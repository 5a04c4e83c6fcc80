#include "train/data/cifar.h"

#include <fmt/format.h>

#include "train/data/bytes.h"

namespace slipway::train {
namespace {

constexpr int cifar_classes = 10;

Result<Dataset::Piece> read_piece(const std::string& path) {
  auto bytes = map_file(path);
  if (!bytes) return fail(bytes.error());
  const auto count = parse_cifar(bytes->view, path);
  if (!count) return fail(count.error());
  const std::uint8_t* first = bytes->view.data();
  return Dataset::Piece{first + 1, cifar_record_bytes, first, cifar_record_bytes, *count, bytes->owner};
}

}  // namespace

Result<std::size_t> parse_cifar(std::span<const std::uint8_t> bytes, const std::string& name) {
  if (bytes.empty() || bytes.size() % cifar_record_bytes != 0)
    return fail(ErrorCode::invalid,
                fmt::format("{} is {} bytes, not a whole number of CIFAR-10 records of {}", name,
                            bytes.size(), cifar_record_bytes),
                "it must be the binary version, unpacked, and complete");
  const std::size_t count = bytes.size() / cifar_record_bytes;
  for (std::size_t i = 0; i < count; ++i)
    if (const int label = bytes[i * cifar_record_bytes]; label >= cifar_classes)
      return fail(ErrorCode::invalid,
                  fmt::format("{}: the label of record {} is {}, and there are {} classes", name, i, label,
                              cifar_classes),
                  "the file is damaged or not CIFAR-10 (CIFAR-100 has two label bytes)");
  return count;
}

Result<DataPair> read_cifar_folder(const std::string& folder) {
  std::vector<Dataset::Piece> pieces;
  for (int i = 1; i <= 5; ++i) {
    auto piece = read_piece(fmt::format("{}/data_batch_{}.bin", folder, i));
    if (!piece && piece.error().code == ErrorCode::not_found && i > 1) break;
    if (!piece) return fail(piece.error());
    pieces.push_back(std::move(*piece));
  }
  auto test = read_piece(folder + "/test_batch.bin");
  if (!test) return fail(test.error());
  return DataPair{Dataset({3, 32, 32}, cifar_classes, std::move(pieces)),
                  Dataset({3, 32, 32}, cifar_classes, {std::move(*test)}), "cifar10", folder};
}

}  // namespace slipway::train
