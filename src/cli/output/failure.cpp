#include "cli/output/failure.h"

#include <fmt/format.h>

namespace slipway::cli {
namespace {

// Lines after the first stand under it, so that a list in a message stays readable.
std::string indented(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "       ";
  }
  return out;
}

}  // namespace

Failure to_failure(const Error& error) {
  const std::size_t line = error.what.find('\n');
  Failure failure{ExitCode::refused, error.what.substr(0, line), {}, error.hint};
  if (line != std::string::npos) failure.why = error.what.substr(line + 1);
  return failure;
}

std::string format(const Failure& failure) {
  std::string text = fmt::format("error: {}\n", indented(failure.what));
  if (!failure.why.empty()) text += fmt::format("why:   {}\n", indented(failure.why));
  if (!failure.hint.empty()) text += fmt::format("try:   {}\n", indented(failure.hint));
  return text;
}

}  // namespace slipway::cli
