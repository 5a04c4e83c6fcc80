#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace slipway {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "slipway: broken invariant: %s (%s:%d). This is a bug; please report it.\n", condition,
               file, line);
  std::abort();
}

}  // namespace slipway
