#pragma once
// An operating failure is a value: what happened, and what the reader can do about it.
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace slipway {

// Codes exist for callers that branch on them, not to describe every failure.
enum class ErrorCode { invalid, not_found, conflict, denied, unavailable, too_large, internal };

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string what;  // what happened, to which thing
  std::string hint;  // what the reader can do; empty when nothing helps

  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
using Result = tl::expected<T, Error>;

// return fail(ErrorCode::not_found, "there is no pool lab", "slipway pool list shows the pools");
inline tl::unexpected<Error> fail(ErrorCode code, std::string what, std::string hint = {}) {
  return tl::unexpected<Error>(Error{code, std::move(what), std::move(hint)});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace slipway
