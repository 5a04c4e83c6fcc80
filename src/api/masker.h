#pragma once
// Replaces secret values where they appear verbatim in text, byte for byte by '*', so that offsets and sizes
// stay what they are. Pure.
//
// Line ends stay, too. Values of less than 4 bytes are left alone: they are in every text. At the end of what
// was read, the beginning of a value counts as one: the rest may not have been written yet.
#include <cstddef>
#include <string>
#include <vector>

namespace slipway::api {

class Masker {
 public:
  static constexpr std::size_t size_min = 4;
  explicit Masker(std::vector<std::string> values);  // a line end at the end of one is not a part of it

  bool is_empty() const { return values_.empty(); }
  // So much before and after a piece has to be known to mask what crosses its borders.
  std::size_t context() const { return context_; }
  void mask(std::string& text) const;

 private:
  std::vector<std::string> values_;
  std::size_t context_ = 0;
};

}  // namespace slipway::api
