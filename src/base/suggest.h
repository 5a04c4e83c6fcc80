#pragma once
// The word someone probably meant.
#include <string>
#include <string_view>
#include <vector>

namespace slipway {

// The candidate closest to `word` by edit distance, or empty when none is close (more than a third
// wrong) or the word has fewer than three characters.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace slipway
