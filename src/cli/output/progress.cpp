#include "cli/output/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "cli/output/render.h"

namespace slipway::cli {

constexpr Bytes drawn_every = 4 << 20;

Progress::Progress(bool on, std::string what, std::size_t files, Bytes bytes)
    : on_(on && is_terminal(STDERR_FILENO)), what_(std::move(what)), files_(files), bytes_(bytes) {}

Progress::~Progress() {
  if (is_drawn_) std::fputs("\r\x1b[K", stderr);
}

void Progress::add(Bytes bytes) {
  bytes_done_ += bytes;
  if (bytes_done_ - bytes_drawn_ >= drawn_every) draw();
}

void Progress::file_done() {
  ++files_done_;
  draw();
}

void Progress::draw() {
  bytes_drawn_ = bytes_done_;
  if (!on_) return;
  is_drawn_ = true;
  std::fputs(fmt::format("\r\x1b[K{}: {} of {}, {} of {}", what_, files_done_, plural(files_, "file"),
                         format_bytes(bytes_done_), format_bytes(bytes_))
                 .c_str(),
             stderr);
}

}  // namespace slipway::cli
