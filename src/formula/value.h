#pragma once
// What a formula computes with, and how values are written.
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "formula/formula.h"

namespace slipway::formula {

using Numbers = std::vector<double>;
using Interval = std::chrono::duration<std::int64_t, std::ratio<1, 10'000'000>>;  // of 100 ns
using Timestamp = std::chrono::time_point<std::chrono::system_clock, Interval>;   // of the years 1 to 9999

// A Metric stands for itself only before a dot; everywhere else it becomes its number first.
using Value = std::variant<double, Numbers, std::string, Timestamp, Interval, Metric>;

// An error that does not know yet where it is.
struct Problem {
  FormulaErrorCode code = FormulaErrorCode::evaluation;
  std::string message;
  std::string hint;
};
template <class T>
using Expected = tl::expected<T, Problem>;

inline tl::unexpected<Problem> problem(std::string message, std::string hint = {}) {
  return tl::unexpected<Problem>(Problem{FormulaErrorCode::evaluation, std::move(message), std::move(hint)});
}

std::string describe_type(const Value& value);  // "a number", "a vector of 3 numbers", "a time"
std::string format(double number);
std::string format(const Value& value);

// The number a value is, or can stand for: a vector of one number can.
const double* as_number(const Value& value);

}  // namespace slipway::formula
