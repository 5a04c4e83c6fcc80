#include "formula/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formula/timestamp.h"

namespace slipway::formula {
namespace {

std::string_view name_of(Function function) {
  for (const auto& row : functions())
    if (row.id == function) return row.name;
  return "";
}

// Numbers and vectors as one list, from left to right.
Expected<Numbers> flatten(Function function, std::span<const Value> arguments) {
  Numbers list;
  for (const Value& argument : arguments) {
    if (const double* number = std::get_if<double>(&argument))
      list.push_back(*number);
    else if (const Numbers* numbers = std::get_if<Numbers>(&argument))
      list.insert(list.end(), numbers->begin(), numbers->end());
    else
      return problem(
          fmt::format("{} takes numbers and vectors, not {}", name_of(function), describe_type(argument)));
  }
  return list;
}

// Unlike <, an order of all numbers: what is not a number comes first. Sorting needs one.
bool is_before(double a, double b) { return a < b || (std::isnan(a) && !std::isnan(b)); }

double sum_of(const Numbers& list) {
  double sum = 0;
  for (const double number : list) sum += number;
  return sum;
}

double deviation(const Numbers& list) {
  if (list.size() == 1) return 0;
  const auto count = static_cast<double>(list.size());
  const double mean = sum_of(list) / count;
  double squares = 0;
  for (const double number : list) squares += (number - mean) * (number - mean);
  return std::sqrt(squares / (count - 1));
}

double length_of(const Numbers& list) {
  double squares = 0;
  for (const double number : list) squares += number * number;
  return std::sqrt(squares);
}

Expected<Value> aggregate(Function function, const Numbers& list) {
  if (function == Function::len) return static_cast<double>(list.size());
  if (function == Function::sum) return sum_of(list);
  if (list.empty())
    return problem(fmt::format("{} of no numbers at all", name_of(function)),
                   "add one that is always there, like max(0, …), or test len() first");
  const auto [least, most] = std::minmax_element(list.begin(), list.end(), is_before);
  switch (function) {
    case Function::avg: return sum_of(list) / static_cast<double>(list.size());
    case Function::max: return *most;
    case Function::min: return *least;
    case Function::range: return *most - *least;
    case Function::norm: return length_of(list);
    default: return deviation(list);
  }
}

Expected<double> transformed(Function function, double number) {
  switch (function) {
    case Function::ceil: return std::ceil(number);
    case Function::floor: return std::floor(number);
    case Function::round: return std::round(number);  // halves away from zero
    default: break;
  }
  if (!(number > 0))
    return problem(fmt::format("{} takes numbers above 0, not {}", name_of(function), format(number)),
                   "keep it positive, like max(1, x)");
  return function == Function::lg   ? std::log2(number)
         : function == Function::ln ? std::log(number)
                                    : std::log10(number);
}

// One number stays one; everything else gives a vector.
Expected<Value> transform(Function function, std::span<const Value> arguments) {
  if (arguments.size() == 1)
    if (const double* number = std::get_if<double>(&arguments[0])) return transformed(function, *number);
  auto list = flatten(function, arguments);
  if (!list) return tl::unexpected<Problem>(list.error());
  for (double& number : *list) {
    const auto result = transformed(function, number);
    if (!result) return tl::unexpected<Problem>(result.error());
    number = *result;
  }
  return std::move(*list);
}

// The vector and the number that percentile() and val() take.
struct VectorAndNumber {
  const Numbers* numbers;
  double number;
};
Expected<VectorAndNumber> vector_and_number(Function function, std::span<const Value> arguments) {
  const Numbers* const numbers = std::get_if<Numbers>(&arguments[0]);
  const double* const number = as_number(arguments[1]);
  if (numbers == nullptr || number == nullptr)
    return problem(fmt::format("{} takes a vector and a number, not {} and {}", name_of(function),
                               describe_type(arguments[0]), describe_type(arguments[1])),
                   numbers == nullptr ? "vec() makes a vector of numbers" : "");
  return VectorAndNumber{numbers, *number};
}

Expected<Value> percentile(std::span<const Value> arguments) {
  const auto given = vector_and_number(Function::percentile, arguments);
  if (!given) return tl::unexpected<Problem>(given.error());
  if (!(given->number >= 0 && given->number <= 100))
    return problem(fmt::format("a percentile is from 0 to 100, not {}", format(given->number)));
  if (given->numbers->empty()) return problem("percentile of no numbers at all", "test len() first");
  Numbers list = *given->numbers;
  // Divided last, so that whole percentages stay whole.
  const double rank = std::ceil(given->number * static_cast<double>(list.size()) / 100);
  const auto index = std::min(static_cast<std::size_t>(std::max(rank, 1.0)), list.size()) - 1;
  const auto wanted = list.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(list.begin(), wanted, list.end(), is_before);
  return *wanted;
}

Expected<Value> element(std::span<const Value> arguments) {
  const auto given = vector_and_number(Function::val, arguments);
  if (!given) return tl::unexpected<Problem>(given.error());
  const double index = std::trunc(given->number);
  if (!(index >= 0 && index < static_cast<double>(given->numbers->size())))
    return problem(
        fmt::format("there is no element {} in a vector of {}", format(index), given->numbers->size()),
        "the first is 0");
  return (*given->numbers)[static_cast<std::size_t>(index)];
}

Expected<Value> time(std::span<const Value> arguments, Timestamp now) {
  if (arguments.empty()) return now;
  const std::string* const text = std::get_if<std::string>(&arguments[0]);
  if (text == nullptr) return problem(fmt::format("time takes a text, not {}", describe_type(arguments[0])));
  if (text->empty()) return now;
  if (const auto parsed = parse_timestamp(*text)) return *parsed;
  return problem(fmt::format("\"{}\" is not a time", text->substr(0, 100)),
                 "write it as 2026-03-02T10:00:00Z or Mon, 02 Mar 2026 10:00:00 GMT");
}

}  // namespace

Expected<Value> call(Function function, std::span<const Value> arguments, const CallContext& context) {
  switch (function) {
    case Function::percentile: return percentile(arguments);
    case Function::val: return element(arguments);
    case Function::time: return time(arguments, context.now);
    case Function::rand: return context.random.unit();
    case Function::ceil:
    case Function::floor:
    case Function::lg:
    case Function::ln:
    case Function::log:
    case Function::round: return transform(function, arguments);
    default: break;
  }
  auto list = flatten(function, arguments);
  if (!list) return tl::unexpected<Problem>(list.error());
  if (function == Function::vec) return std::move(*list);
  return aggregate(function, *list);
}

}  // namespace slipway::formula
