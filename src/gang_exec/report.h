#pragma once
// How the commands of this folder report errors on standard error.
#include "base/result.h"

namespace slipway::gang_exec {

// error: … / try: …; gives the exit code back.
int report(const Error& error, int exit_code);

}  // namespace slipway::gang_exec
