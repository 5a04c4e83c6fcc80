#include "train/data/idx.h"

#include <fmt/format.h>

namespace slipway::train {
namespace {

constexpr std::uint32_t images_magic = 2051;
constexpr std::uint32_t labels_magic = 2049;
constexpr int idx_classes = 10;

std::uint32_t big_endian(std::span<const std::uint8_t> bytes, std::size_t at) {
  return static_cast<std::uint32_t>(bytes[at]) << 24 | static_cast<std::uint32_t>(bytes[at + 1]) << 16 |
         static_cast<std::uint32_t>(bytes[at + 2]) << 8 | static_cast<std::uint32_t>(bytes[at + 3]);
}

// The header's numbers after the magic; checks magic and that the header is whole.
Result<void> check_header(std::span<const std::uint8_t> bytes, std::uint32_t magic, std::size_t header,
                          const std::string& name) {
  if (bytes.size() < 4 || big_endian(bytes, 0) != magic) {
    const std::string found = bytes.size() < 4 ? "nothing" : fmt::format("{}", big_endian(bytes, 0));
    return fail(ErrorCode::invalid,
                fmt::format("{} is not an IDX file of {}: it starts with {}, not {}", name,
                            magic == images_magic ? "images" : "labels", found, magic),
                "check that images and labels are not exchanged");
  }
  if (bytes.size() < header)
    return fail(ErrorCode::invalid, fmt::format("{} is cut off inside its header", name),
                "fetch the file again");
  return {};
}

Result<Dataset> read_half(const std::string& folder, const std::string& half, const std::string& cache) {
  const std::string images_path = folder + "/" + half + "-images-idx3-ubyte";
  const std::string labels_path = folder + "/" + half + "-labels-idx1-ubyte";
  auto image_bytes = open_data_file(images_path, cache);
  if (!image_bytes) return fail(image_bytes.error());
  auto label_bytes = open_data_file(labels_path, cache);
  if (!label_bytes) return fail(label_bytes.error());
  const auto images = parse_idx_images(image_bytes->view, images_path);
  if (!images) return fail(images.error());
  const auto labels = parse_idx_labels(label_bytes->view, labels_path);
  if (!labels) return fail(labels.error());
  if (labels->size() != images->count)
    return fail(ErrorCode::invalid,
                fmt::format("{} has {} images and {} has {} labels", images_path, images->count, labels_path,
                            labels->size()),
                "both files must come from one data set");
  const auto owner =
      std::make_shared<std::pair<Bytes8, Bytes8>>(std::move(*image_bytes), std::move(*label_bytes));
  const auto size = static_cast<std::size_t>(images->height) * static_cast<std::size_t>(images->width);
  Dataset data({1, images->height, images->width}, idx_classes,
               {{images->pixels.data(), size, labels->data(), 1, images->count, owner}});
  if (auto sound = data.check_labels(labels_path); !sound) return fail(sound.error());
  return data;
}

}  // namespace

Result<IdxImages> parse_idx_images(std::span<const std::uint8_t> bytes, const std::string& name) {
  if (auto header = check_header(bytes, images_magic, 16, name); !header) return fail(header.error());
  const std::uint64_t count = big_endian(bytes, 4);
  const std::uint64_t height = big_endian(bytes, 8);
  const std::uint64_t width = big_endian(bytes, 12);
  if (count == 0 || height == 0 || width == 0 || height > 4096 || width > 4096)
    return fail(ErrorCode::invalid,
                fmt::format("{} claims {} images of {} by {} pixels", name, count, height, width),
                "the file is damaged or not an image set; fetch it again");
  const std::uint64_t owed = count * height * width;  // below 2^56: no overflow
  if (bytes.size() - 16 != owed)
    return fail(ErrorCode::invalid,
                fmt::format("{} is {}: {} images of {}x{} are {} bytes, and {} are there", name,
                            bytes.size() - 16 < owed ? "cut off" : "too long", count, height, width, owed,
                            bytes.size() - 16),
                "fetch the file again");
  return IdxImages{count, static_cast<int>(height), static_cast<int>(width), bytes.subspan(16)};
}

Result<std::span<const std::uint8_t>> parse_idx_labels(std::span<const std::uint8_t> bytes,
                                                       const std::string& name) {
  if (auto header = check_header(bytes, labels_magic, 8, name); !header) return fail(header.error());
  const std::uint64_t count = big_endian(bytes, 4);
  if (count == 0 || bytes.size() - 8 != count)
    return fail(ErrorCode::invalid,
                fmt::format("{} claims {} labels and has {} bytes for them", name, count, bytes.size() - 8),
                "fetch the file again");
  return bytes.subspan(8);
}

Result<DataPair> read_idx_folder(const std::string& folder, const std::string& name,
                                 const std::string& cache_folder) {
  auto train = read_half(folder, "train", cache_folder);
  if (!train) return fail(train.error());
  auto test = read_half(folder, "t10k", cache_folder);
  if (!test) return fail(test.error());
  if (train->shape() != test->shape())
    return fail(ErrorCode::invalid, fmt::format("{}: training images are {} and test images {}", folder,
                                                to_string(train->shape()), to_string(test->shape())));
  return DataPair{std::move(*train), std::move(*test), name, folder};
}

}  // namespace slipway::train
