#include "cli/output/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "base/check.h"

namespace slipway::cli {
namespace {

std::atomic<const std::string*> message = nullptr;
std::atomic<int> code = ExitCode::interrupted;

// Threads may be blocked in requests, so the program ends right here; only async-signal-safe calls.
void interrupted(int) {
  if (const std::string* text = message.load()) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text->data(), text->size());
  }
  ::_exit(code.load());
}

}  // namespace

InterruptMessage::InterruptMessage(const std::string& text, int exit_code) {
  code = exit_code;
  const std::string* before = message.exchange(new std::string("\n" + text + "\n"));
  SLIPWAY_CHECK(before == nullptr);
  struct sigaction action {};
  action.sa_handler = interrupted;
  sigaction(SIGINT, &action, nullptr);
}

InterruptMessage::~InterruptMessage() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGINT, &action, nullptr);
  delete message.exchange(nullptr);
}

}  // namespace slipway::cli
