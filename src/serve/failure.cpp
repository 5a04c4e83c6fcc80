#include "serve/failure.h"

namespace slipway::serve {

const char* to_string(Code code) {
  static constexpr const char* names[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  return names[static_cast<int>(code)];
}

int http_status(Code code) {
  switch (code) {
    case Code::ok: return 200;
    case Code::invalid_argument:
    case Code::failed_precondition:
    case Code::out_of_range: return 400;
    case Code::unauthenticated: return 401;
    case Code::permission_denied: return 403;
    case Code::not_found: return 404;
    case Code::already_exists:
    case Code::aborted: return 409;
    case Code::resource_exhausted: return 429;
    case Code::cancelled: return 499;
    case Code::unimplemented: return 501;
    case Code::unavailable: return 503;
    case Code::deadline_exceeded: return 504;
    case Code::unknown:
    case Code::internal:
    case Code::data_loss: break;
  }
  return 500;
}

}  // namespace slipway::serve
