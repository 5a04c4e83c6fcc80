#pragma once
// Every word of the language, with what a parser needs to know of it.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formula/formula.h"

namespace slipway::formula {

enum class Function : std::uint8_t {
  // Many numbers in, one out.
  avg,
  len,
  max,
  min,
  norm,
  range,
  std,
  sum,
  // A number in, a number out; of several, each.
  ceil,
  floor,
  lg,
  ln,
  log,
  round,
  // Others.
  percentile,
  rand,
  stop,
  time,
  val,
  vec,
};
enum class Method : std::uint8_t {
  get_sample,
  get_sample_percent,
  get_sample_period,
  count,
  history_begin_time
};
enum class Member : std::uint8_t { year, month, day, weekday, hour, minute, second };

constexpr std::size_t any_number = 100'000;  // more arguments than a formula can hold

template <class Id>
struct Callable {
  std::string_view name;
  Id id;
  std::size_t arguments_min;
  std::size_t arguments_max;
};
std::span<const Callable<Function>> functions();
std::span<const Callable<Method>> methods();

struct MemberName {
  std::string_view name;
  Member id;
};
std::span<const MemberName> members();

struct IntervalName {
  std::string_view name;  // TimeInterval_Minute
  std::int64_t ticks;     // of 100 ns
};
std::span<const IntervalName> intervals();

template <class Row>
const Row* find(std::span<const Row> rows, std::string_view name) {
  for (const Row& row : rows)
    if (row.name == name) return &row;
  return nullptr;
}
template <class Row>
std::vector<std::string> names_of(std::span<const Row> rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.emplace_back(row.name);
  return names;
}

// What the service defines and a formula may assign. Both spellings of a target can be assigned; the long one
// counts then.
enum Setting : std::uint32_t {
  target_dedicated_nodes,
  target_dedicated,
  target_low_priority_nodes,
  target_low_priority,
  node_deallocation_option,
};
constexpr std::string_view setting_names[] = {"$TargetDedicatedNodes", "$TargetDedicated",
                                              "$TargetLowPriorityNodes", "$TargetLowPriority",
                                              "$NodeDeallocationOption"};
constexpr std::uint32_t setting_count = 5;
constexpr std::string_view slots_per_node_name = "$TaskSlotsPerNode";

}  // namespace slipway::formula
