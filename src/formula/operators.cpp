#include "formula/operators.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "formula/timestamp.h"

namespace slipway::formula {
namespace {

std::string_view verb(Binary op) {
  switch (op) {
    case Binary::add: return "added";
    case Binary::subtract: return "subtracted";
    case Binary::multiply: return "multiplied";
    case Binary::divide: return "divided";
    default: return "compared";
  }
}

tl::unexpected<Problem> mismatch(Binary op, const Value& left, const Value& right) {
  const bool vector = std::holds_alternative<Numbers>(left) || std::holds_alternative<Numbers>(right);
  return problem(fmt::format("{} and {} cannot be {}", describe_type(left), describe_type(right), verb(op)),
                 vector ? "take one number of a vector with avg(), max() or val()" : "");
}

tl::unexpected<Problem> division_by_zero() {
  return problem("division by zero", "test for it: n == 0 ? 0 : x / n");
}

double calculate(Binary op, double left, double right) {
  switch (op) {
    case Binary::add: return left + right;
    case Binary::subtract: return left - right;
    case Binary::multiply: return left * right;
    default: return left / right;
  }
}

// One side at least is a vector; a number goes with each element of the other.
Expected<Value> element_wise(Binary op, const Value& left, const Value& right) {
  const Numbers* const lefts = std::get_if<Numbers>(&left);
  const Numbers* const rights = std::get_if<Numbers>(&right);
  if (lefts != nullptr && rights != nullptr && lefts->size() != rights->size())
    return problem(fmt::format("a vector of {} and a vector of {} cannot be {}", lefts->size(),
                               rights->size(), verb(op)),
                   "both need the same length");
  Numbers result(lefts != nullptr ? lefts->size() : rights->size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double divisor = rights != nullptr ? (*rights)[i] : std::get<double>(right);
    if (op == Binary::divide && divisor == 0) return division_by_zero();
    result[i] = calculate(op, lefts != nullptr ? (*lefts)[i] : std::get<double>(left), divisor);
  }
  return result;
}

Expected<Value> interval_of(double ticks) {
  if (!(std::abs(ticks) < 9.2e18))  // NaN too
    return problem("the time interval is too long", "intervals reach over 29,000 years");
  return Interval(std::llround(ticks));
}

Expected<Value> sum_of(Interval left, Interval right) {
  std::int64_t ticks = 0;
  if (__builtin_add_overflow(left.count(), right.count(), &ticks) ||
      ticks == std::numeric_limits<std::int64_t>::min())  // it has no opposite
    return problem("the time interval is too long", "intervals reach over 29,000 years");
  return Interval(ticks);
}

Expected<Value> moved(Timestamp time, Interval by) {
  if (const auto made = later(time, by)) return *made;
  return problem("the time is out of range", "times reach from the year 1 to 9999");
}

// At least one side is a time or an interval.
Expected<Value> calculate_times(Binary op, const Value& left, const Value& right) {
  const double* const number_left = as_number(left);
  const double* const number_right = as_number(right);
  const Interval* const interval_left = std::get_if<Interval>(&left);
  const Interval* const interval_right = std::get_if<Interval>(&right);
  const Timestamp* const time_left = std::get_if<Timestamp>(&left);
  const Timestamp* const time_right = std::get_if<Timestamp>(&right);
  const auto ticks = [](const Interval* interval) { return static_cast<double>(interval->count()); };
  switch (op) {
    case Binary::multiply:
      if (number_left != nullptr && interval_right != nullptr)
        return interval_of(*number_left * ticks(interval_right));
      if (interval_left != nullptr && number_right != nullptr)
        return interval_of(ticks(interval_left) * *number_right);
      break;
    case Binary::divide:
      if (interval_left == nullptr || number_right == nullptr) break;
      if (*number_right == 0) return division_by_zero();
      return interval_of(ticks(interval_left) / *number_right);
    case Binary::add:
      if (interval_left != nullptr && interval_right != nullptr)
        return sum_of(*interval_left, *interval_right);
      if (interval_left != nullptr && time_right != nullptr) return moved(*time_right, *interval_left);
      if (time_left != nullptr && interval_right != nullptr) return moved(*time_left, *interval_right);
      break;
    case Binary::subtract:
      if (interval_left != nullptr && interval_right != nullptr)
        return sum_of(*interval_left, -*interval_right);
      if (time_left != nullptr && interval_right != nullptr) return moved(*time_left, -*interval_right);
      if (time_left != nullptr && time_right != nullptr) return *time_left - *time_right;
      break;
    default: break;
  }
  return mismatch(op, left, right);
}

template <class T>
double compare(Binary op, const T& left, const T& right) {
  switch (op) {
    case Binary::less: return left < right ? 1 : 0;
    case Binary::less_equal: return left <= right ? 1 : 0;
    case Binary::greater: return left > right ? 1 : 0;
    case Binary::greater_equal: return left >= right ? 1 : 0;
    case Binary::equal: return left == right ? 1 : 0;
    default: return left != right ? 1 : 0;
  }
}

Expected<Value> compare_values(Binary op, const Value& left, const Value& right) {
  const double* const number_left = as_number(left);
  const double* const number_right = as_number(right);
  if (number_left != nullptr && number_right != nullptr) return compare(op, *number_left, *number_right);
  if (left.index() == right.index()) {
    if (const auto* text = std::get_if<std::string>(&left))
      return compare(op, *text, std::get<std::string>(right));
    if (const auto* time = std::get_if<Timestamp>(&left))
      return compare(op, *time, std::get<Timestamp>(right));
    if (const auto* interval = std::get_if<Interval>(&left))
      return compare(op, *interval, std::get<Interval>(right));
  }
  return mismatch(op, left, right);
}

}  // namespace

Expected<Value> apply(Unary op, const Value& operand) {
  if (op == Unary::negate) {
    if (const double* number = as_number(operand)) return *number == 0 ? 1.0 : 0.0;
    return problem(fmt::format("! takes a number, not {}", describe_type(operand)));
  }
  const bool minus = op == Unary::minus;
  if (const double* number = std::get_if<double>(&operand)) return minus ? -*number : *number;
  if (const Interval* interval = std::get_if<Interval>(&operand)) return minus ? -*interval : *interval;
  if (const Numbers* numbers = std::get_if<Numbers>(&operand)) {
    Numbers result = *numbers;
    if (minus)
      for (double& number : result) number = -number;
    return result;
  }
  return problem(fmt::format("{} takes a number, a vector or a time interval, not {}", minus ? '-' : '+',
                             describe_type(operand)));
}

Expected<Value> apply(Binary op, const Value& left, const Value& right) {
  if (op >= Binary::less) return compare_values(op, left, right);
  const double* const number_left = std::get_if<double>(&left);
  const double* const number_right = std::get_if<double>(&right);
  if (number_left != nullptr && number_right != nullptr) {
    if (op == Binary::divide && *number_right == 0) return division_by_zero();
    return calculate(op, *number_left, *number_right);
  }
  const auto is_numeric = [](const Value& value) {
    return std::holds_alternative<double>(value) || std::holds_alternative<Numbers>(value);
  };
  if (is_numeric(left) && is_numeric(right)) return element_wise(op, left, right);
  return calculate_times(op, left, right);
}

}  // namespace slipway::formula
