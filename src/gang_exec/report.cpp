#include "gang_exec/report.h"

#include <unistd.h>

#include "base/file.h"

namespace slipway::gang_exec {

int report(const Error& error, int exit_code) {
  std::string text = "error: " + error.what + "\n";
  if (!error.hint.empty()) text += "try:   " + error.hint + "\n";
  // One write: several processes may write into one log.
  (void)write_all(STDERR_FILENO, text, "standard error");
  return exit_code;
}

}  // namespace slipway::gang_exec
