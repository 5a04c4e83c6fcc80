#include "cli/output/screen.h"

#include <algorithm>

namespace slipway::cli {

// Line by line over the old ones: a screen that is cleared first would flicker.
std::string screen_of(const std::string& text, std::size_t height) {
  std::string screen = "\x1b[H";
  std::size_t lines = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (height > 0 && ++lines >= height) {
      screen += "\x1b[2m…\x1b[0m\x1b[K";
      break;
    }
    screen += text.substr(begin, end - begin) + "\x1b[K\n";
    begin = end + 1;
  }
  return screen + "\x1b[J";
}

}  // namespace slipway::cli
