#pragma once
// Runs a program to its end and keeps the last of what it says; for the short helpers of an agent.
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace slipway::node {

struct Ran {
  int status = 0;             // as waitpid gives it
  bool was_too_slow = false;  // and was killed
  std::string output;         // the end of both streams, one line after the other
  bool is_good() const { return status == 0 && !was_too_slow; }
  std::string how() const;  // "failed with exit code 32"
};

// With the own environment and `variables`. Its whole group is killed when it takes longer than `longest`.
Ran run_program(const std::vector<std::string>& argv,
                const std::vector<std::pair<std::string, std::string>>& variables, Duration longest);

}  // namespace slipway::node
