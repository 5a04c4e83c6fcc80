#include "domain/environment.h"

#include <fmt/format.h>

#include <algorithm>

namespace slipway {
namespace {

bool is_control(char c) { return (c >= 0 && c < ' ') || c == 127; }

// As it can be shown on one line.
std::string shown(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, 100))
    text += is_control(c) ? fmt::format("\\x{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
  return text;
}

std::string_view name_problem(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.find('=') != std::string_view::npos) return "it contains '='";
  if (std::any_of(name.begin(), name.end(), is_control))
    return "it contains a line end or another control character";
  return "";
}

}  // namespace

Result<void> validate_environment(std::string_view whose, const Environment& variables) {
  for (const auto& [name, value] : variables) {
    if (const std::string_view why = name_problem(name); !why.empty())
      return fail(
          ErrorCode::invalid,
          fmt::format("{}: '{}' cannot be the name of an environment variable: {}", whose, shown(name), why),
          "use letters, digits and underscores");
    if (value.find('\0') != std::string::npos)
      return fail(ErrorCode::invalid,
                  fmt::format("{}: the value of environment variable {} contains a zero byte", whose, name),
                  "leave it out: a process would get only what is before it");
  }
  return {};
}

}  // namespace slipway
