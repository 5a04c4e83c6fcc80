#pragma once
// How a command fails: what the user reads on standard error, and the exit code of the program.
#include <string>

#include "base/result.h"

namespace slipway::cli {

struct ExitCode {
  static constexpr int done = 0;
  static constexpr int refused = 1;  // or failed
  static constexpr int usage = 2;
  static constexpr int unreachable = 3;
  static constexpr int timed_out = 124;    // as timeout(1) has it
  static constexpr int signalled = 128;    // plus the signal
  static constexpr int interrupted = 130;  // 128 + SIGINT
};

struct Failure {
  int exit_code = ExitCode::refused;
  std::string what;  // what happened, to which thing
  std::string why;   // empty when not known
  std::string hint;  // what the reader can do; empty when nothing helps
  int status = 0;    // of HTTP, where the service refused
};

template <class T>
using Outcome = tl::expected<T, Failure>;

inline tl::unexpected<Failure> give_up(Failure failure) {
  return tl::unexpected<Failure>(std::move(failure));
}
inline tl::unexpected<Failure> misuse(std::string what, std::string hint = {}) {
  return give_up({ExitCode::usage, std::move(what), {}, std::move(hint)});
}
inline tl::unexpected<Failure> refuse(std::string what, std::string why = {}, std::string hint = {}) {
  return give_up({ExitCode::refused, std::move(what), std::move(why), std::move(hint)});
}

// An error of several lines says what in the first and why in the others.
Failure to_failure(const Error& error);
template <class T>
tl::unexpected<Failure> give_up(const Result<T>& result) {
  return give_up(to_failure(result.error()));
}
template <class T>
tl::unexpected<Failure> give_up(const Outcome<T>& outcome) {
  return give_up(Failure(outcome.error()));
}

// error: … / why: … / try: …
std::string format(const Failure& failure);

}  // namespace slipway::cli
