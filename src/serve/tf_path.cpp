#include "serve/tf_path.h"

#include <algorithm>
#include <charconv>

#include "net/http.h"

namespace slipway::serve {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool take_prefix(std::string_view& text, std::string_view prefix) {
  const bool starts = text.size() >= prefix.size() &&
                      std::equal(prefix.begin(), prefix.end(), text.begin(),
                                 [](char expected, char given) { return expected == lower(given); });
  if (starts) text.remove_prefix(prefix.size());
  return starts;
}

std::string_view take_until(std::string_view& text, std::string_view ends) {
  const std::size_t size = std::min(text.find_first_of(ends), text.size());
  const std::string_view taken = text.substr(0, size);
  text.remove_prefix(size);
  return taken;
}

std::optional<TfAction> post_action(std::string_view rest) {
  if (rest == ":predict") return TfAction::predict;
  if (rest == ":classify") return TfAction::classify;
  if (rest == ":regress") return TfAction::regress;
  return std::nullopt;
}

std::optional<TfAction> get_action(std::string_view rest) {
  if (rest.empty()) return TfAction::status;
  if (take_prefix(rest, "/metadata") && rest.empty()) return TfAction::metadata;
  return std::nullopt;
}

}  // namespace

Answer<std::optional<TfPath>> parse_tf_path(std::string_view method, std::string_view target) {
  const std::optional<TfPath> none;
  if (target.find('?') != std::string_view::npos || !take_prefix(target, "/v1/models/")) return none;
  TfPath path;
  const auto name = net::percent_decode(take_until(target, "/:"));
  if (!name || name->empty()) return none;
  path.model = *name;
  if (take_prefix(target, "/versions/")) {
    const std::string_view digits = take_until(target, "/:");
    const bool are_digits = !digits.empty() && std::all_of(digits.begin(), digits.end(),
                                                           [](char c) { return c >= '0' && c <= '9'; });
    if (!are_digits) return none;
    std::int64_t number = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec != std::errc())
      return invalid("");
    path.version = number;
  } else if (take_prefix(target, "/labels/")) {
    const auto label = net::percent_decode(take_until(target, "/:"));
    if (!label || label->empty()) return none;
    path.label = *label;
  }
  const auto action = method == "POST"  ? post_action(target)
                      : method == "GET" ? get_action(target)
                                        : std::nullopt;
  if (!action) return none;
  path.action = *action;
  return std::optional<TfPath>(path);
}

VersionChoice choice_of(const TfPath& path) {
  if (path.version) return ExactVersion{*path.version};
  if (path.label) return LabelledVersion{*path.label};
  return NewestVersion{};
}

}  // namespace slipway::serve
