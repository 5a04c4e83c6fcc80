#include "formula/value.h"

#include <fmt/format.h>

#include <cmath>

#include "base/overloaded.h"
#include "formula/timestamp.h"

namespace slipway::formula {

std::string describe_type(const Value& value) {
  const Overloaded names{
      [](double) -> std::string { return "a number"; },
      [](const Numbers& numbers) {
        return fmt::format("a vector of {} number{}", numbers.size(), numbers.size() == 1 ? "" : "s");
      },
      [](const std::string&) -> std::string { return "text"; },
      [](Timestamp) -> std::string { return "a time"; },
      [](Interval) -> std::string { return "a time interval"; },
      [](Metric metric) { return std::string(to_string(metric)); },
  };
  return std::visit(names, value);
}

std::string format(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return fmt::format("{}", number + 0.0);  // plus zero: nobody wants to read -0
}

std::string format(const Value& value) {
  const Overloaded forms{
      [](double number) { return format(number); },
      [](const Numbers& numbers) {
        std::string text = "[";
        for (const double number : numbers) text += (text.size() == 1 ? "" : ",") + format(number);
        return text + "]";
      },
      [](const std::string& text) { return text; },
      [](Timestamp time) { return format_timestamp(time); },
      [](Interval interval) { return format_interval(interval); },
      [](Metric metric) { return std::string(to_string(metric)); },
  };
  return std::visit(forms, value);
}

const double* as_number(const Value& value) {
  if (const double* number = std::get_if<double>(&value)) return number;
  const Numbers* numbers = std::get_if<Numbers>(&value);
  return numbers != nullptr && numbers->size() == 1 ? numbers->data() : nullptr;
}

}  // namespace slipway::formula
