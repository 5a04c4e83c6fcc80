#pragma once
// What Ctrl-C does during a long wait: says how to continue, then ends the program with 130.
#include <string>

#include "cli/output/failure.h"

namespace slipway::cli {

class InterruptMessage {  // in force while it exists; one at a time
 public:
  explicit InterruptMessage(const std::string& text, int exit_code = ExitCode::interrupted);
  InterruptMessage(const InterruptMessage&) = delete;
  ~InterruptMessage();
};

}  // namespace slipway::cli
