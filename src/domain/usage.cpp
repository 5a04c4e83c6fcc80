#include "domain/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <vector>

namespace slipway {
namespace {

std::string digits(NodeTime amount) {
  std::string text;
  do text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(amount % 10)));
  while ((amount /= 10) > 0);
  return text;
}

std::int64_t micros(NodeTime amount) { return static_cast<std::int64_t>(amount / node_whole); }

}  // namespace

void UsageMeter::advance(TimePoint now) {
  if (now <= at_) return;
  const NodeTime passed = (now - at_).count();
  for (std::size_t kind = 0; kind < spent_kinds; ++kind) spent_[kind] += passed * rates_[kind];
  wall_ += passed * wall_rate_;
  at_ = now;
}

void UsageMeter::change(Spent kind, std::int64_t share, TimePoint now) {
  advance(now);
  rates_[static_cast<std::size_t>(kind)] += static_cast<std::uint64_t>(share);
}

void UsageMeter::change_wall(std::int64_t share, TimePoint now) {
  advance(now);
  wall_rate_ += static_cast<std::uint64_t>(share);
}

void UsageMeter::lose(NodeTime amount) {
  spent_[static_cast<std::size_t>(Spent::computing)] -= amount;
  spent_[static_cast<std::size_t>(Spent::lost)] += amount;
}

void UsageMeter::stop_all(TimePoint now) {
  advance(now);
  rates_ = {};
  wall_rate_ = 0;
}

NodeTime UsageMeter::spent() const { return std::accumulate(spent_.begin(), spent_.end(), NodeTime{0}); }

std::string UsageMeter::to_string() const {
  std::string text = fmt::format("{} {} {}", at_.time_since_epoch().count(), digits(wall_), wall_rate_);
  for (std::size_t kind = 0; kind < spent_kinds; ++kind)
    text += fmt::format(" {} {}", digits(spent_[kind]), rates_[kind]);
  return text;
}

Result<UsageMeter> UsageMeter::parse(std::string_view text) {
  std::vector<NodeTime> numbers(1);
  for (const char c : text) {
    if (c == ' ')
      numbers.push_back(0);
    else if (c >= '0' && c <= '9')
      numbers.back() = numbers.back() * 10 + (c - '0');
    else
      numbers.clear();
    if (numbers.empty()) break;
  }
  if (numbers.size() != 3 + 2 * spent_kinds)
    return fail(ErrorCode::conflict, "a stored usage is not what it should be");
  UsageMeter meter;
  meter.at_ = TimePoint(Duration(static_cast<std::int64_t>(numbers[0])));
  meter.wall_ = numbers[1];
  meter.wall_rate_ = static_cast<std::uint64_t>(numbers[2]);
  for (std::size_t kind = 0; kind < spent_kinds; ++kind) {
    meter.spent_[kind] = numbers[3 + 2 * kind];
    meter.rates_[kind] = static_cast<std::uint64_t>(numbers[4 + 2 * kind]);
  }
  return meter;
}

Usage usage_of_pool(const UsageMeter& meter) {
  Usage usage;
  usage.wall = usage.idle = micros(meter.wall());
  for (std::size_t kind = 0; kind < spent_kinds; ++kind) {
    usage.spent[kind] = micros(meter.spent(static_cast<Spent>(kind)));
    usage.idle -= usage.spent[kind];
  }
  return usage;
}

Usage usage_of_job(const UsageMeter& meter) {
  Usage usage;
  for (std::size_t kind = 0; kind < spent_kinds; ++kind) {
    usage.spent[kind] = micros(meter.spent(static_cast<Spent>(kind)));
    usage.wall += usage.spent[kind];
  }
  return usage;
}

}  // namespace slipway
