#pragma once
// Labelled images in memory, as bytes: what every reader returns and the trainer walks.
//
// The bytes are never copied: a Dataset points into mapped files or into one decompressed buffer and keeps
// them alive. Copies of a Dataset share them, and reading from several threads is safe.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace slipway::train {

struct Shape {  // of one sample; a flat vector has its length in `channels`
  int channels = 1;
  int height = 1;
  int width = 1;

  int size() const { return channels * height * width; }
  friend bool operator==(const Shape&, const Shape&) = default;
};
std::string to_string(const Shape& shape);  // 3x32x32, or 100 when flat

class Dataset {
 public:
  // One run of equally spaced samples, for example one CIFAR file.
  struct Piece {
    const std::uint8_t* images = nullptr;
    std::size_t image_stride = 0;
    const std::uint8_t* labels = nullptr;
    std::size_t label_stride = 0;
    std::size_t count = 0;
    std::shared_ptr<const void> owner;
  };

  Dataset() = default;
  Dataset(Shape shape, int classes, std::vector<Piece> pieces);

  Shape shape() const { return shape_; }
  int classes() const { return classes_; }
  std::size_t count() const { return count_; }
  const std::uint8_t* image(std::size_t index) const {
    const auto [piece, offset] = locate(index);
    return piece->images + offset * piece->image_stride;
  }
  std::uint8_t label(std::size_t index) const {
    const auto [piece, offset] = locate(index);
    return piece->labels[offset * piece->label_stride];
  }
  // Error `invalid` naming the first sample whose label is not below classes().
  Result<void> check_labels(const std::string& name) const;
  // Share of bytes that are not zero, from at most 200 samples: decides between sparse and dense kernels.
  double density() const;

 private:
  std::pair<const Piece*, std::size_t> locate(std::size_t index) const {
    const Piece* piece = pieces_.data();
    while (index >= piece->count) index -= piece++->count;
    return {piece, index};
  }

  Shape shape_;
  int classes_ = 0;
  std::size_t count_ = 0;
  std::vector<Piece> pieces_;
};

// A training set and a test set of one kind.
struct DataPair {
  Dataset train;
  Dataset test;
  std::string name;   // mnist, fashion-mnist, cifar10, synthetic
  std::string where;  // the folder, or "drawn by the program"
};

}  // namespace slipway::train
