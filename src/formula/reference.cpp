#include "formula/reference.h"

#include <algorithm>
#include <cmath>
#include <ctime>

namespace slipway::formula::reference {
namespace {

using Kind = Node::Kind;
using Type = TreeValue::Type;

struct Stopped {};
struct Failure {
  FormulaErrorCode code;
  Position at;
};
[[noreturn]] void fail(Position at) { throw Failure{FormulaErrorCode::evaluation, at}; }

TreeValue number(double value) { return {Type::number, value, {}, {}, 0}; }
TreeValue vector(std::vector<double> values) { return {Type::vector, 0, std::move(values), {}, 0}; }
TreeValue text(std::string value) { return {Type::text, 0, {}, std::move(value), 0}; }
TreeValue time(std::int64_t ticks) { return {Type::time, 0, {}, {}, ticks}; }
TreeValue interval(std::int64_t ticks) { return {Type::interval, 0, {}, {}, ticks}; }

constexpr std::int64_t second = 10'000'000;
const std::map<std::string, std::int64_t> units = {{"TimeInterval_Zero", 0},
                                                   {"TimeInterval_Second", second},
                                                   {"TimeInterval_Minute", 60 * second},
                                                   {"TimeInterval_Hour", 3600 * second},
                                                   {"TimeInterval_Day", 86400 * second},
                                                   {"TimeInterval_Week", 604800 * second}};

class Walker {
 public:
  explicit Walker(const Inputs& inputs) : inputs_(inputs) {}

  Result run(const std::vector<Statement>& statements) {
    try {
      for (const Statement& statement : statements) execute(statement);
    } catch (const Stopped&) {
    } catch (const Failure& failure) {
      Result failed;
      failed.targets = inputs_.targets;
      failed.error = {failure.code, failure.at};
      return failed;
    }
    Result result;
    result.targets.dedicated = target("$TargetDedicatedNodes", "$TargetDedicated", inputs_.targets.dedicated);
    result.targets.low_priority =
        target("$TargetLowPriorityNodes", "$TargetLowPriority", inputs_.targets.low_priority);
    if (variables_.count("$NodeDeallocationOption") > 0)
      result.option = variables_["$NodeDeallocationOption"].text;
    for (const auto& [name, value] : variables_)
      if (!name.starts_with("$Target") && name != "$NodeDeallocationOption") result.variables[name] = value;
    return result;
  }

 private:
  std::int32_t target(const std::string& name, const std::string& alias, std::int32_t otherwise) {
    const std::string& chosen = variables_.count(name) > 0 ? name : alias;
    if (variables_.count(chosen) == 0) return otherwise;
    const double wanted = variables_[chosen].number;
    return wanted < 0 ? 0 : static_cast<std::int32_t>(std::floor(wanted));
  }

  void execute(const Statement& statement) {
    TreeValue value = evaluate(statement.value);
    if (statement.name.empty()) return;
    if (statement.name.starts_with("$Target")) {
      value = number(need_number(value, statement.equals));
      if (std::isnan(value.number) || std::isinf(value.number) || value.number > 2147483647.0)
        fail(statement.equals);
    } else if (statement.name == "$NodeDeallocationOption") {
      if (value.type != Type::text || !is_option(value.text)) fail(statement.equals);
    } else {
      value = settled(value, statement.equals);
    }
    variables_[statement.name] = value;
  }

  static bool is_option(const std::string& word) {
    return word == "requeue" || word == "terminate" || word == "taskcompletion" || word == "retaineddata";
  }

  std::vector<Sample> visible(const std::string& metric) const {
    std::vector<Sample> samples;
    for (const Sample& sample : inputs_.samples[static_cast<std::size_t>(*parse_metric(metric))])
      if (sample.time <= inputs_.now) samples.push_back(sample);
    return samples;
  }

  TreeValue settled(const TreeValue& value, Position at) const {
    if (value.type != Type::metric) return value;
    if (value.text == "$CurrentDedicatedNodes") return number(inputs_.current.dedicated);
    const auto samples = visible(value.text);
    if (samples.empty()) throw Failure{FormulaErrorCode::insufficient_samples, at};
    return number(samples.back().value);
  }

  double need_number(const TreeValue& given, Position at) const {
    const TreeValue value = settled(given, at);
    if (value.type == Type::number) return value.number;
    if (value.type == Type::vector && value.vector.size() == 1) return value.vector[0];
    fail(at);
  }

  TreeValue lookup(const std::string& name, Position at) {
    for (const std::string& spelling : {name, name[0] == '$' ? name.substr(1) : "$" + name}) {
      if (variables_.count(spelling) > 0) return variables_[spelling];
      if (units.count(spelling) > 0) return interval(units.at(spelling));
      if (is_option(spelling)) return text(spelling);
      if (parse_metric(spelling)) return {Type::metric, 0, {}, spelling, 0};
      if (spelling == "$TaskSlotsPerNode") return number(inputs_.slots_per_node);
      if (spelling == "$TargetDedicatedNodes" || spelling == "$TargetDedicated") {
        const std::string other =
            spelling == "$TargetDedicated" ? "$TargetDedicatedNodes" : "$TargetDedicated";
        return variables_.count(other) > 0 ? variables_[other] : number(inputs_.targets.dedicated);
      }
      if (spelling == "$TargetLowPriorityNodes" || spelling == "$TargetLowPriority") {
        const std::string other =
            spelling == "$TargetLowPriority" ? "$TargetLowPriorityNodes" : "$TargetLowPriority";
        return variables_.count(other) > 0 ? variables_[other] : number(inputs_.targets.low_priority);
      }
      if (spelling == "$NodeDeallocationOption") return text("requeue");
    }
    fail(at);
  }

  TreeValue evaluate(const Node& node) {
    switch (node.kind) {
      case Kind::number: return number(std::stod(node.word));
      case Kind::text: return text(node.word);
      case Kind::name: return lookup(node.word, node.at);
      case Kind::unary: return unary(node);
      case Kind::binary: return binary(node);
      case Kind::choice:
        return need_number(evaluate(node.children[0]), node.at) != 0 ? evaluate(node.children[1])
                                                                     : evaluate(node.children[2]);
      case Kind::call: return call(node);
      case Kind::method: return method(node);
      case Kind::member: return member(node);
      case Kind::vector: return vector(list(node, 0));
    }
    fail(node.at);
  }

  TreeValue unary(const Node& node) {
    const TreeValue value = settled(evaluate(node.children[0]), node.at);
    if (node.word == "!") return number(need_number(value, node.at) == 0 ? 1 : 0);
    const double sign = node.word == "-" ? -1 : 1;
    if (value.type == Type::number) return number(sign * value.number);
    if (value.type == Type::interval) return interval(sign < 0 ? -value.ticks : value.ticks);
    if (value.type != Type::vector) fail(node.at);
    std::vector<double> result;
    for (const double each : value.vector) result.push_back(sign * each);
    return vector(result);
  }

  TreeValue binary(const Node& node) {
    const std::string& op = node.word;
    if (op == "&&" || op == "||") {
      const bool left = need_number(evaluate(node.children[0]), node.at) != 0;
      if (left == (op == "||")) return number(left ? 1 : 0);
      return number(need_number(evaluate(node.children[1]), node.at) != 0 ? 1 : 0);
    }
    TreeValue left = evaluate(node.children[0]);
    TreeValue right = evaluate(node.children[1]);
    left = settled(left, node.at);
    right = settled(right, node.at);
    if (op == "+" || op == "-" || op == "*" || op == "/") return arithmetic(op[0], left, right, node.at);
    return number(compare(op, left, right, node.at) ? 1 : 0);
  }

  static double calculate(char op, double a, double b, Position at) {
    if (op == '/' && b == 0) fail(at);
    return op == '+' ? a + b : op == '-' ? a - b : op == '*' ? a * b : a / b;
  }

  TreeValue arithmetic(char op, const TreeValue& left, const TreeValue& right, Position at) const {
    const auto is_number = [](const TreeValue& value) { return value.type == Type::number; };
    const auto is_numeric = [&](const TreeValue& value) {
      return is_number(value) || value.type == Type::vector;
    };
    if (is_number(left) && is_number(right)) return number(calculate(op, left.number, right.number, at));
    if (is_numeric(left) && is_numeric(right)) {
      const std::size_t size = is_number(left) ? right.vector.size() : left.vector.size();
      if (!is_number(left) && !is_number(right) && left.vector.size() != right.vector.size()) fail(at);
      std::vector<double> result;
      for (std::size_t i = 0; i < size; ++i)
        result.push_back(calculate(op, is_number(left) ? left.number : left.vector[i],
                                   is_number(right) ? right.number : right.vector[i], at));
      return vector(result);
    }
    if (left.type == Type::interval && right.type == Type::interval && (op == '+' || op == '-'))
      return interval(
          checked(static_cast<long double>(left.ticks) + (op == '+' ? 1.0L : -1.0L) * right.ticks, at));
    if (left.type == Type::interval && right.type == Type::time && op == '+')
      return time(checked_time(left.ticks, right.ticks, at));
    if (left.type == Type::time && right.type == Type::interval && (op == '+' || op == '-'))
      return time(checked_time(left.ticks, op == '+' ? right.ticks : -right.ticks, at));
    if (left.type == Type::time && right.type == Type::time && op == '-')
      return interval(left.ticks - right.ticks);
    if (right.type == Type::interval && is_numeric(left) && op == '*')
      return interval(checked(need_number(left, at) * static_cast<double>(right.ticks), at));
    if (left.type == Type::interval && is_numeric(right) && (op == '*' || op == '/'))
      return interval(
          checked(calculate(op, static_cast<double>(left.ticks), need_number(right, at), at), at));
    fail(at);
  }

  static std::int64_t checked(long double ticks, Position at) {
    if (std::isnan(ticks) || ticks > 9.2e18L || ticks < -9.2e18L) fail(at);
    return static_cast<std::int64_t>(std::round(ticks));
  }
  static std::int64_t checked_time(std::int64_t a, std::int64_t b, Position at) {
    const long double sum = static_cast<long double>(a) + static_cast<long double>(b);
    // The beginnings of the years 1 and 10000.
    if (sum < -62135596800.0L * second || sum >= 253402300800.0L * second) fail(at);
    return static_cast<std::int64_t>(sum);
  }

  bool compare(const std::string& op, const TreeValue& left, const TreeValue& right, Position at) const {
    double less = 0;
    double equal = 0;
    if (left.type == right.type && left.type == Type::text) {
      less = left.text < right.text;
      equal = left.text == right.text;
    } else if (left.type == right.type && (left.type == Type::time || left.type == Type::interval)) {
      less = left.ticks < right.ticks;
      equal = left.ticks == right.ticks;
    } else {
      const double a = need_number(left, at);
      const double b = need_number(right, at);
      if (std::isnan(a) || std::isnan(b)) return op == "!=";
      less = a < b;
      equal = a == b;
    }
    if (op == "<") return less != 0;
    if (op == "<=") return less != 0 || equal != 0;
    if (op == ">") return less == 0 && equal == 0;
    if (op == ">=") return less == 0;
    return (equal != 0) == (op == "==");
  }

  std::vector<double> list(const Node& node, std::size_t from) {
    std::vector<TreeValue> things;
    for (std::size_t i = from; i < node.children.size(); ++i) things.push_back(evaluate(node.children[i]));
    for (TreeValue& value : things) value = settled(value, node.at);
    std::vector<double> all;
    for (const TreeValue& value : things) {
      if (value.type == Type::number)
        all.push_back(value.number);
      else if (value.type == Type::vector)
        all.insert(all.end(), value.vector.begin(), value.vector.end());
      else
        fail(node.at);
    }
    return all;
  }

  TreeValue call(const Node& node) {
    const std::string& name = node.word;
    if (name == "stop") throw Stopped{};
    if (name == "time") return time_function(node);
    if (name == "percentile" || name == "val") {
      TreeValue values = evaluate(node.children[0]);
      TreeValue at = evaluate(node.children[1]);
      values = settled(values, node.at);
      at = settled(at, node.at);
      if (values.type != Type::vector) fail(node.at);
      return number(pick(name, values.vector, need_number(at, node.at), node.at));
    }
    const bool scalar_form =
        name == "ceil" || name == "floor" || name == "round" || name == "lg" || name == "ln" || name == "log";
    if (scalar_form && node.children.size() == 1) {
      const TreeValue value = settled(evaluate(node.children[0]), node.at);
      if (value.type == Type::number) return number(each(name, value.number, node.at));
      if (value.type != Type::vector) fail(node.at);
      std::vector<double> result;
      for (const double one : value.vector) result.push_back(each(name, one, node.at));
      return vector(result);
    }
    std::vector<double> all = list(node, 0);
    if (scalar_form) {
      for (double& one : all) one = each(name, one, node.at);
      return vector(all);
    }
    if (name == "vec") return vector(all);
    return number(fold(name, std::move(all), node.at));
  }

  static double each(const std::string& name, double x, Position at) {
    const double whole = std::trunc(x);
    if (name == "ceil") return whole < x ? whole + 1 : whole;
    if (name == "floor") return whole > x ? whole - 1 : whole;
    if (name == "round") return std::fabs(x - whole) >= 0.5 ? whole + (x < 0 ? -1 : 1) : whole;
    if (std::isnan(x) || x <= 0) fail(at);
    return name == "lg" ? std::log2(x) : name == "ln" ? std::log(x) : std::log10(x);
  }

  static double pick(const std::string& name, std::vector<double> values, double at, Position where) {
    if (name == "val") {
      if (std::isnan(at) || std::trunc(at) < 0 || std::trunc(at) >= static_cast<double>(values.size()))
        fail(where);
      return values[static_cast<std::size_t>(std::fabs(at))];
    }
    if (values.empty() || std::isnan(at) || at < 0 || at > 100) fail(where);
    std::sort(values.begin(), values.end());
    std::size_t rank = 1;  // the first that has so many percent at or below it
    while (rank < values.size() && static_cast<double>(rank) * 100 < at * static_cast<double>(values.size()))
      ++rank;
    return values[rank - 1];
  }

  static double fold(const std::string& name, std::vector<double> all, Position at) {
    double sum = 0;
    double squares = 0;
    for (const double one : all) {
      sum += one;
      squares += one * one;
    }
    if (name == "len") return static_cast<double>(all.size());
    if (name == "sum") return sum;
    if (all.empty()) fail(at);
    const auto count = static_cast<double>(all.size());
    if (name == "avg") return sum / count;
    if (name == "norm") return std::sqrt(squares);
    if (name == "std") {
      double spread = 0;
      for (const double one : all) spread += (one - sum / count) * (one - sum / count);
      return all.size() == 1 ? 0 : std::sqrt(spread / (count - 1));
    }
    double least = all[0];
    double most = all[0];
    for (const double one : all) {
      if (one < least) least = one;
      if (one > most) most = one;
    }
    return name == "min" ? least : name == "max" ? most : most - least;
  }

  std::int64_t now() const { return inputs_.now.time_since_epoch().count() * 10; }

  TreeValue time_function(const Node& node) {
    if (node.children.empty()) return time(now());
    const TreeValue value = settled(evaluate(node.children[0]), node.at);
    if (value.type != Type::text) fail(node.at);
    if (value.text.empty()) return time(now());
    std::tm parts{};  // generated times have this form or are no times
    if (strptime(value.text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr) fail(node.at);
    return time(timegm(&parts) * second);
  }

  TreeValue member(const Node& node) {
    const TreeValue value = evaluate(node.children[0]);
    if (value.type != Type::time) fail(node.at);
    std::time_t seconds = value.ticks / second;
    if (value.ticks % second < 0) --seconds;
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    if (node.word == "year") return number(parts.tm_year + 1900);
    if (node.word == "month") return number(parts.tm_mon + 1);
    if (node.word == "day") return number(parts.tm_mday);
    if (node.word == "weekday") return number(parts.tm_wday == 0 ? 7 : parts.tm_wday);
    if (node.word == "hour") return number(parts.tm_hour);
    return number(node.word == "minute" ? parts.tm_min : parts.tm_sec);
  }

  TreeValue method(const Node& node) {
    const TreeValue owner = evaluate(node.children[0]);
    std::vector<TreeValue> given;
    for (std::size_t i = 1; i < node.children.size(); ++i) given.push_back(evaluate(node.children[i]));
    for (TreeValue& value : given) value = settled(value, node.at);
    if (owner.type != Type::metric) fail(node.at);
    const std::vector<Sample> samples = visible(owner.text);
    if (node.word == "Count") return number(static_cast<double>(samples.size()));
    if (node.word == "GetSamplePeriod") return interval(30 * second);
    if (node.word == "HistoryBeginTime")
      return time(samples.empty() ? now() : samples[0].time.time_since_epoch().count() * 10);
    const bool percent_asked = node.word == "GetSamplePercent";
    const auto is_number = [](const TreeValue& value) {
      return value.type == Type::number || (value.type == Type::vector && value.vector.size() == 1);
    };
    if (!percent_asked && is_number(given[0])) {
      const double count = need_number(given[0], node.at);
      if (given.size() != 1 || std::isnan(count) || count < 0) fail(node.at);
      std::vector<double> newest;
      for (std::size_t i = samples.size(); i-- > 0 && static_cast<double>(newest.size() + 1) <= count;)
        newest.insert(newest.begin(), samples[i].value);
      return vector(newest);
    }
    std::optional<double> percent;
    if (!percent_asked && is_number(given.back())) {
      percent = need_number(given.back(), node.at);
      given.pop_back();
    }
    if (given.size() > 2) fail(node.at);
    std::vector<std::int64_t> points;
    for (const TreeValue& value : given) {
      if (value.type != Type::time && value.type != Type::interval) fail(node.at);
      points.push_back(value.type == Type::time ? value.ticks : checked_time(now(), -value.ticks, node.at));
    }
    if (points.size() == 1) points.push_back(now());
    std::sort(points.begin(), points.end());
    std::vector<double> found;
    for (const Sample& sample : samples) {
      const std::int64_t at = sample.time.time_since_epoch().count() * 10;
      if (at > points[0] && at <= points[1]) found.push_back(sample.value);
    }
    const double periods = static_cast<double>(points[1] - points[0]) / (30.0 * second);
    const double expected = std::max(1.0, std::floor(periods + 0.5));
    const double received = std::min(100.0, 100.0 * static_cast<double>(found.size()) / expected);
    if (percent_asked) return number(received);
    if (percent && received < *percent) throw Failure{FormulaErrorCode::insufficient_samples, node.at};
    return vector(found);
  }

  const Inputs& inputs_;
  std::map<std::string, TreeValue> variables_;
};

}  // namespace

Result evaluate(const std::vector<Statement>& statements, const Inputs& inputs) {
  return Walker(inputs).run(statements);
}

}  // namespace slipway::formula::reference
