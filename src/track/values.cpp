#include "track/values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

namespace slipway::track {
namespace {

constexpr std::array<std::pair<RunStatus, std::string_view>, 5> run_statuses{{
    {RunStatus::running, "RUNNING"},
    {RunStatus::scheduled, "SCHEDULED"},
    {RunStatus::finished, "FINISHED"},
    {RunStatus::failed, "FAILED"},
    {RunStatus::killed, "KILLED"},
}};

constexpr std::array<std::pair<LoggedModelStatus, std::string_view>, 3> logged_model_statuses{{
    {LoggedModelStatus::pending, "LOGGED_MODEL_PENDING"},
    {LoggedModelStatus::ready, "LOGGED_MODEL_READY"},
    {LoggedModelStatus::failed, "LOGGED_MODEL_UPLOAD_FAILED"},
}};

// By its name, or by its number as a text.
template <class Status, std::size_t N>
std::optional<Status> parse_status(const std::array<std::pair<Status, std::string_view>, N>& all,
                                   std::string_view text) {
  for (const auto& [status, name] : all)
    if (text == name || text == std::to_string(static_cast<int>(status))) return status;
  return std::nullopt;
}

auto pair_at(const std::vector<Pair>& pairs, std::string_view key) {
  return std::lower_bound(pairs.begin(), pairs.end(), key,
                          [](const Pair& pair, std::string_view wanted) { return pair.key < wanted; });
}

}  // namespace

std::string_view to_string(Lifecycle lifecycle) {
  return lifecycle == Lifecycle::active ? "active" : "deleted";
}

std::string_view to_string(RunStatus status) {
  return run_statuses[static_cast<std::size_t>(status) - 1].second;
}
std::optional<RunStatus> parse_run_status(std::string_view text) { return parse_status(run_statuses, text); }

std::string_view to_string(LoggedModelStatus status) {
  return logged_model_statuses[static_cast<std::size_t>(status) - 1].second;
}
std::optional<LoggedModelStatus> parse_logged_model_status(std::string_view text) {
  return parse_status(logged_model_statuses, text);
}

bool same_point(const Point& a, const Point& b) {
  return a.step == b.step && a.timestamp == b.timestamp &&
         (a.value == b.value || (std::isnan(a.value) && std::isnan(b.value)));
}

bool is_later(const Point& a, const Point& b) {
  if (std::tie(a.step, a.timestamp) != std::tie(b.step, b.timestamp))
    return std::tie(a.step, a.timestamp) < std::tie(b.step, b.timestamp);
  return std::isnan(a.value) ? !std::isnan(b.value) : a.value < b.value;
}

const Pair* find_pair(const std::vector<Pair>& pairs, std::string_view key) {
  const auto at = pair_at(pairs, key);
  return at != pairs.end() && at->key == key ? &*at : nullptr;
}

void put_pair(std::vector<Pair>& pairs, std::string key, std::string value) {
  const auto at = pairs.begin() + (pair_at(pairs, key) - pairs.begin());
  if (at != pairs.end() && at->key == key)
    at->value = std::move(value);
  else
    pairs.insert(at, Pair{std::move(key), std::move(value)});
}

bool erase_pair(std::vector<Pair>& pairs, std::string_view key) {
  const auto at = pair_at(pairs, key);
  if (at == pairs.end() || at->key != key) return false;
  pairs.erase(at);
  return true;
}

}  // namespace slipway::track
