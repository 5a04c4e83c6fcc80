#pragma once
// How the commands of this folder say on standard error why they end.
#include "base/result.h"

namespace slipway::remote {

// error: … / try: …; gives the exit code back.
int report(const Error& error, int exit_code);

}  // namespace slipway::remote
