#include "domain/ids.h"

#include <fmt/format.h>

#include <charconv>

namespace slipway {
namespace {

template <class Number>
bool take_number(std::string_view& text, Number& number) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, char expected) {
  if (text.empty() || text[0] != expected) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string to_string(JobId id) { return fmt::format("job_{}", id.value()); }

std::optional<JobId> parse_job_id(std::string_view text) {
  if (!text.starts_with("job_")) return std::nullopt;
  text.remove_prefix(4);
  std::uint64_t number = 0;
  if (!take_number(text, number) || !text.empty() || number == 0) return std::nullopt;
  return JobId{number};
}

std::string to_string(const AttemptKey& key) {
  return fmt::format("{}.{}.{}.{}", key.task.job.value(), key.task.group, key.task.index, key.attempt);
}

std::optional<AttemptKey> parse_attempt_key(std::string_view text) {
  std::uint64_t job = 0;
  AttemptKey key;
  if (take_number(text, job) && take(text, '.') && take_number(text, key.task.group) && take(text, '.') &&
      take_number(text, key.task.index) && take(text, '.') && take_number(text, key.attempt) &&
      text.empty()) {
    key.task.job = JobId{job};
    return key;
  }
  return std::nullopt;
}

std::string task_name(std::string_view group_name, std::optional<std::uint32_t> index) {
  return index ? fmt::format("{}[{}]", group_name, *index) : std::string(group_name);
}

TaskName parse_task_name(std::string_view text) {
  const std::size_t open = text.rfind('[');
  if (open != std::string_view::npos && text.back() == ']') {
    std::string_view inside = text.substr(open + 1, text.size() - open - 2);
    std::uint32_t index = 0;
    if (take_number(inside, index) && inside.empty()) return {std::string(text.substr(0, open)), index};
  }
  return {std::string(text), std::nullopt};
}

}  // namespace slipway
