#include "domain/output_times.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

namespace slipway {
namespace {

constexpr std::string_view prefix = ".times";

std::string line_of(const OutputTime& entry) {
  return fmt::format("{} {} {}\n", entry.time.time_since_epoch().count(), entry.stream, entry.end);
}

// 100 ms, then a second, then ten.
Duration close_after(std::uint64_t entries) {
  return std::chrono::milliseconds(entries < 10'000 ? 100 : entries < 50'000 ? 1'000 : 10'000);
}

std::optional<OutputTime> parse_line(std::string_view line) {
  std::uint64_t numbers[3] = {};
  for (std::size_t i = 0; i < 3; ++i) {
    const char* const last = line.data() + line.size();
    const auto [end, error] = std::from_chars(line.data(), last, numbers[i]);
    const bool is_closed = i == 2 ? end == last : end != last && *end == ' ';
    if (error != std::errc{} || !is_closed) return std::nullopt;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()) + (i == 2 ? 0 : 1));
  }
  if (numbers[0] > INT64_MAX || numbers[1] < 1 || numbers[1] > 2) return std::nullopt;
  return OutputTime{TimePoint(Duration(static_cast<std::int64_t>(numbers[0]))),
                    static_cast<std::uint8_t>(numbers[1]), numbers[2]};
}

}  // namespace

std::string output_times_file(std::string_view stdout_file) {
  std::string_view process = stdout_file.substr(stdout_file.rfind('/') + 1);
  if (process.starts_with("stdout")) process.remove_prefix(6);
  if (process.ends_with(".txt")) process.remove_suffix(4);
  return fmt::format("{}{}", prefix, process);
}

bool is_output_times_file(std::string_view name) {
  return name == prefix || (name.starts_with(prefix) && name[prefix.size()] == '-');
}

std::vector<OutputTime> parse_output_times(std::string_view text) {
  std::vector<OutputTime> entries;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const auto entry = parse_line(text.substr(0, end));
    if (!entry) break;
    entries.push_back(*entry);
    text.remove_prefix(end + 1);
  }
  return entries;
}

void OutputTimeList::add(const OutputTime& entry) {
  if (entries_ > 0 && entry.stream == last_.stream && entry.time - last_.time < close_after(entries_)) {
    last_.end = entry.end;
    return;
  }
  if (entries_ > 0) {
    lines_ += line_of(last_);
    has_both_ |= entry.stream != last_.stream;
  }
  last_ = entry;
  ++entries_;
}

std::string OutputTimeList::take(bool is_over) {
  if (is_over && entries_ > 0) lines_ += line_of(last_);
  return std::exchange(lines_, {});
}

}  // namespace slipway
