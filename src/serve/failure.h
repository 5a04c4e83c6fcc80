#pragma once
// What a prediction request may fail with, in the codes that TensorFlow Serving's clients know. Kept apart
// from base's Result: its codes are fewer, and here the code decides the HTTP status.
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "base/result.h"

namespace slipway::serve {

// gRPC's numbers.
enum class Code {
  ok = 0,
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
  unauthenticated = 16,
};

const char* to_string(Code code);  // INVALID_ARGUMENT
int http_status(Code code);

struct Failure {
  Code code = Code::internal;
  std::string message;

  friend bool operator==(const Failure&, const Failure&) = default;
};

template <class T>
using Answer = tl::expected<T, Failure>;

inline tl::unexpected<Failure> refuse(Code code, std::string message) {
  return tl::unexpected<Failure>(Failure{code, std::move(message)});
}
inline tl::unexpected<Failure> refuse(Failure failure) { return tl::unexpected<Failure>(std::move(failure)); }
inline tl::unexpected<Failure> invalid(std::string message) {
  return refuse(Code::invalid_argument, std::move(message));
}

}  // namespace slipway::serve
