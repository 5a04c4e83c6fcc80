#pragma once
// The program itself, apart from main: arguments in, exit code out.
#include <cstdio>
#include <string>
#include <vector>

#include "train/exchange/stop.h"
#include "train/run/options.h"

namespace slipway::train {

// Where the program writes: data to `out`, messages to `err`.
struct Speech {
  std::FILE* out;
  std::FILE* err;
};

// 0 done or preempted, 1 failed, 2 wrong usage.
int run_command(const std::vector<std::string>& arguments, const Environment& environment, const Stop& stop,
                Speech speech);

}  // namespace slipway::train
