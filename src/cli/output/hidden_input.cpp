#include "cli/output/hidden_input.h"

#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "cli/output/render.h"

namespace slipway::cli {
namespace {

class EchoOff {  // of the terminal that is stdin
 public:
  EchoOff() : is_off_(::tcgetattr(STDIN_FILENO, &before_) == 0) {
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    is_off_ = is_off_ && ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet) == 0;
  }
  ~EchoOff() {
    if (is_off_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  EchoOff(const EchoOff&) = delete;
  EchoOff& operator=(const EchoOff&) = delete;

 private:
  termios before_{};
  bool is_off_;
};

}  // namespace

Outcome<std::string> read_hidden(const std::string& prompt, std::size_t size_max) {
  const bool asks = is_terminal(STDIN_FILENO);
  std::string text;
  {
    const EchoOff quiet;
    if (asks) std::fputs(prompt.c_str(), stderr);
    char piece[4096];
    while (text.size() <= size_max && (!asks || !text.ends_with('\n'))) {
      const ssize_t got = ::read(STDIN_FILENO, piece, sizeof piece);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return give_up(to_failure(system_error("cannot read from stdin", errno)));
      if (got == 0) break;
      text.append(piece, static_cast<std::size_t>(got));
    }
  }
  if (asks) std::fputs("\n", stderr);
  if (text.size() > size_max)
    return refuse("what was given is too long", "it has more than " + std::to_string(size_max) + " bytes",
                  "keep larger things in a datastore");
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace slipway::cli
