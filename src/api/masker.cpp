#include "api/masker.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace slipway::api {
namespace {

using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;  // begin, size

void find_whole(const std::string& text, const std::string& value, Ranges& found) {
  for (std::size_t at = text.find(value); at != std::string::npos; at = text.find(value, at + 1))
    found.emplace_back(at, value.size());
}

void find_begun(const std::string& text, const std::string& value, Ranges& found) {
  for (std::size_t size = std::min(value.size() - 1, text.size()); size >= Masker::size_min; --size) {
    if (!text.ends_with(std::string_view(value).substr(0, size))) continue;
    found.emplace_back(text.size() - size, size);
    return;
  }
}

}  // namespace

Masker::Masker(std::vector<std::string> values) {
  for (std::string& value : values) {
    if (value.ends_with('\n')) value.pop_back();
    if (value.size() < size_min) continue;
    context_ = std::max(context_, value.size() - 1);
    values_.push_back(std::move(value));
  }
}

void Masker::mask(std::string& text) const {
  Ranges found;  // in the text as it was: values may overlap
  for (const std::string& value : values_) {
    find_whole(text, value, found);
    find_begun(text, value, found);
  }
  for (const auto& [begin, size] : found)
    std::replace_if(
        text.begin() + static_cast<std::ptrdiff_t>(begin),
        text.begin() + static_cast<std::ptrdiff_t>(begin + size), [](char c) { return c != '\n'; }, '*');
}

}  // namespace slipway::api
