// Random formulas, mostly sensible ones, evaluated by the product and by a plain tree walk: same targets,
// same values, same errors at the same places.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "base/random.h"
#include "formula/reference.h"
#include "formula/testing.h"
#include "formula/timestamp.h"

namespace slipway::formula {
namespace {

using reference::Node;
using reference::Statement;
using reference::TreeValue;
using Kind = Node::Kind;

enum class Want { number, vector, text, time, interval };

class Generator {
 public:
  explicit Generator(Random& random) : random_(random) {}

  std::vector<Statement> formula() {
    std::vector<Statement> statements(static_cast<std::size_t>(random_.between(1, 7)));
    for (Statement& statement : statements) {
      const std::int64_t kind = random_.between(0, 9);
      if (kind == 0) {
        statement.value = random_.chance(0.2) ? leaf(Kind::call, "stop") : expression(any(), 3);
      } else if (kind == 1) {
        statement.name = "$NodeDeallocationOption";
        statement.value =
            leaf(Kind::name, pick({"requeue", "terminate", "taskcompletion", "retaineddata", "later"}));
      } else if (kind <= 3) {
        statement.name = pick(
            {"$TargetDedicatedNodes", "$TargetDedicated", "$TargetLowPriorityNodes", "$TargetLowPriority"});
        statement.value = expression(Want::number, 4);
      } else {
        statement.name = pick({"a", "b", "c", "$d", "e1"});
        statement.value = expression(any(), 4);
      }
    }
    return statements;
  }

 private:
  std::string pick(std::initializer_list<const char*> words) {
    return *(words.begin() + random_.between(0, static_cast<std::int64_t>(words.size()) - 1));
  }
  Want any() { return static_cast<Want>(random_.between(0, 4)); }
  static Node leaf(Kind kind, std::string word) { return {kind, std::move(word), {}, {}}; }
  Node node(Kind kind, std::string word, std::vector<Node> children) {
    return {kind, std::move(word), std::move(children), {}};
  }

  Node expression(Want want, int depth) {
    if (random_.chance(0.03)) want = any();  // now and then what does not fit
    if (random_.chance(0.04))
      return leaf(Kind::name, pick({"a", "b", "c", "$d", "d", "$a", "e1", "nowhere"}));
    if (depth > 0 && random_.chance(0.08))
      return node(
          Kind::choice, "?",
          {expression(Want::number, depth - 1), expression(want, depth - 1), expression(want, depth - 1)});
    switch (want) {
      case Want::number: return number(depth);
      case Want::vector: return vector(depth);
      case Want::text: return text();
      case Want::time: return time(depth);
      case Want::interval: return interval(depth);
    }
    return number(0);
  }

  Node number(int depth) {
    const std::int64_t kind = depth > 0 ? random_.between(0, 11) : random_.between(0, 3);
    if (kind <= 1)
      return leaf(Kind::number, pick({"0", "1", "2", "3", "7", "10", "0.5", ".25", "1e3", "2.", "70"}));
    if (kind == 2)
      return leaf(Kind::name, pick({"$TaskSlotsPerNode", "$TargetDedicatedNodes", "$TargetLowPriority"}));
    if (kind == 3) return metric();
    const int next = depth - 1;
    if (kind == 4) return node(Kind::unary, pick({"-", "+", "!"}), {expression(Want::number, next)});
    if (kind <= 6) return binary(pick({"+", "-", "*", "/", "&&", "||"}), Want::number, Want::number, next);
    if (kind == 7) {
      const Want both = random_.chance(0.5) ? Want::number : any();
      return binary(pick({"<", "<=", ">", ">=", "==", "!="}), both, both, next);
    }
    if (kind == 8)
      return node(Kind::call, pick({"avg", "max", "min", "sum", "len", "norm", "range", "std"}), mixed(next));
    if (kind == 9)
      return node(Kind::call, pick({"ceil", "floor", "round", "lg", "ln", "log"}),
                  {expression(Want::number, next)});
    if (kind == 10)
      return node(Kind::call, pick({"percentile", "val"}),
                  {expression(Want::vector, next), expression(Want::number, next)});
    if (random_.chance(0.5))
      return node(Kind::member, pick({"year", "month", "day", "weekday", "hour", "minute", "second"}),
                  {expression(Want::time, next)});
    if (random_.chance(0.3)) return node(Kind::method, "Count", {metric()});
    std::vector<Node> children{metric(), point(next)};
    if (random_.chance(0.4)) children.push_back(point(next));
    return node(Kind::method, "GetSamplePercent", std::move(children));
  }

  Node metric() {
    return leaf(Kind::name, pick({"$PendingTasks", "$PendingTasks", "$RunningTasks", "RunningTasks",
                                  "$CPUPercent", "$NetworkInBytes", "$CurrentDedicatedNodes"}));
  }
  Node point(int depth) { return expression(random_.chance(0.7) ? Want::interval : Want::time, depth); }
  std::vector<Node> mixed(int depth) {
    std::vector<Node> nodes;
    for (std::int64_t left = random_.between(0, 3); left > 0; --left)
      nodes.push_back(expression(random_.chance(0.5) ? Want::number : Want::vector, depth));
    return nodes;
  }
  Node binary(const std::string& op, Want left, Want right, int depth) {
    std::vector<Node> children{expression(left, depth)};
    children.push_back(expression(right, depth));
    return node(Kind::binary, op, std::move(children));
  }

  Node vector(int depth) {
    const std::int64_t kind = depth > 0 ? random_.between(0, 6) : 0;
    if (kind <= 1) return node(Kind::vector, "[", mixed(std::max(0, depth - 1)));
    const int next = depth - 1;
    if (kind == 2) {
      const bool both = random_.chance(0.4);
      const bool left = both || random_.chance(0.5);
      return binary(pick({"+", "-", "*", "/"}), left ? Want::vector : Want::number,
                    both || !left ? Want::vector : Want::number, next);
    }
    if (kind == 3) return node(Kind::unary, pick({"-", "+"}), {expression(Want::vector, next)});
    if (kind == 4) return node(Kind::call, pick({"vec", "vec"}), mixed(next));
    if (kind == 5)
      return node(Kind::call, pick({"ceil", "floor", "round", "ln"}), {expression(Want::vector, next)});
    std::vector<Node> children{metric()};
    if (random_.chance(0.4)) {
      children.push_back(expression(Want::number, next));
    } else {
      children.push_back(point(next));
      if (random_.chance(0.3)) children.push_back(point(next));
      if (random_.chance(0.3)) children.push_back(expression(Want::number, next));
    }
    return node(Kind::method, "GetSample", std::move(children));
  }

  Node text() {
    if (random_.chance(0.3)) return leaf(Kind::name, pick({"requeue", "$NodeDeallocationOption"}));
    return leaf(Kind::text, pick({"", "a", "b", "requeue", "2026-03-02T09:55:00Z", "x y"}));
  }

  Node time(int depth) {
    const std::int64_t kind = depth > 0 ? random_.between(0, 4) : 0;
    if (kind <= 1) return leaf(Kind::call, "time");
    if (kind == 2)
      return node(Kind::call, "time",
                  {leaf(Kind::text, pick({"", "2026-03-02T09:55:00Z", "2024-02-29T23:59:59Z",
                                          "1969-12-31T00:00:00Z", "tomorrow"}))});
    if (kind == 3) return binary(pick({"+", "-"}), Want::time, Want::interval, depth - 1);
    if (random_.chance(0.5)) return binary("+", Want::interval, Want::time, depth - 1);
    return node(Kind::method, "HistoryBeginTime", {metric()});
  }

  Node interval(int depth) {
    const std::int64_t kind = depth > 0 ? random_.between(0, 6) : 0;
    if (kind <= 1)
      return leaf(Kind::name, pick({"TimeInterval_Zero", "TimeInterval_Second", "TimeInterval_Minute",
                                    "TimeInterval_Hour", "TimeInterval_Day", "TimeInterval_Week"}));
    const int next = depth - 1;
    if (kind == 2) return binary("*", Want::number, Want::interval, next);
    if (kind == 3) return binary(pick({"*", "/"}), Want::interval, Want::number, next);
    if (kind == 4) return binary(pick({"+", "-"}), Want::interval, Want::interval, next);
    if (kind == 5) return binary("-", Want::time, Want::time, next);
    if (random_.chance(0.5)) return node(Kind::unary, pick({"-", "+"}), {expression(Want::interval, next)});
    return node(Kind::method, "GetSamplePeriod", {metric()});
  }

  Random& random_;
};

// Writes the tree down with as much space, comments and parentheses as it likes, and keeps where each word
// is.
class Writer {
 public:
  explicit Writer(Random& random) : random_(random) {}

  std::string write(std::vector<Statement>& statements) {
    for (Statement& statement : statements) {
      if (!statement.name.empty()) {
        put(statement.name);
        statement.equals = put("=");
      }
      expression(statement.value, 0);
      put(";");
    }
    return text_;
  }

 private:
  Position put(const std::string& word) {
    static const char* const spaces[] = {" ", " ", " ", "  ", "\n", " /* ü */ ", " // x ; y\n", "\r\n\t"};
    // Two words that would become one, or a number and a dot, need something between them.
    add(random_.chance(0.3) && !needs_space(word) ? "" : spaces[random_.between(0, 7)]);
    const Position at = at_;
    add(word);
    return at;
  }
  bool needs_space(const std::string& word) const {
    if (text_.empty()) return false;
    return is_word(text_.back()) && is_word(word[0])
               ? true
               : std::string("=<>!&|/*.").find(word[0]) != std::string::npos;
  }
  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.';
  }
  void add(const std::string& text) {
    for (const char c : text) {
      if (c == '\n')
        at_ = {at_.line + 1, 1};
      else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80)
        ++at_.column;
    }
    text_ += text;
  }

  static int level_of(const Node& node) {
    if (node.kind == Kind::choice) return 0;
    if (node.kind == Kind::unary) return 7;
    if (node.kind != Kind::binary) return 8;
    if (node.word == "||") return 1;
    if (node.word == "&&") return 2;
    if (node.word == "==" || node.word == "!=") return 3;
    if (node.word[0] == '<' || node.word[0] == '>') return 4;
    return node.word == "+" || node.word == "-" ? 5 : 6;
  }

  // At least `level` binds here: what binds less needs parentheses.
  void expression(Node& node, int level) {
    const bool parentheses = level_of(node) < level || random_.chance(0.05);
    if (parentheses) put("(");
    body(node);
    if (parentheses) put(")");
  }

  void body(Node& node) {
    switch (node.kind) {
      case Kind::number:
      case Kind::name: node.at = put(node.word); break;
      case Kind::text: node.at = put("\"" + node.word + "\""); break;
      case Kind::unary:
        node.at = put(node.word);
        expression(node.children[0], 7);
        break;
      case Kind::binary:
        expression(node.children[0], level_of(node));
        node.at = put(node.word);
        expression(node.children[1], level_of(node) + 1);
        break;
      case Kind::choice:
        expression(node.children[0], 1);
        node.at = put("?");
        expression(node.children[1], 0);
        put(":");
        expression(node.children[2], 0);
        break;
      case Kind::call:
        node.at = put(node.word);
        put("(");
        arguments(node, 0, ")");
        break;
      case Kind::vector:
        node.at = put("[");
        arguments(node, 0, "]");
        break;
      case Kind::method:
      case Kind::member:
        expression(node.children[0], 8);
        put(".");
        node.at = put(node.word);
        if (node.kind == Kind::member) break;
        put("(");
        arguments(node, 1, ")");
        break;
    }
  }

  void arguments(Node& node, std::size_t from, const std::string& close) {
    for (std::size_t i = from; i < node.children.size(); ++i) {
      if (i > from) put(",");
      expression(node.children[i], 0);
    }
    put(close);
  }

  Random& random_;
  std::string text_;
  Position at_;
};

bool same_number(std::string_view text, double number) {
  if (std::isnan(number)) return text == "NaN";
  if (std::isinf(number)) return text == (number > 0 ? "Infinity" : "-Infinity");
  return std::strtod(std::string(text).c_str(), nullptr) == number;
}

bool same(const std::string& text, const TreeValue& thing) {
  switch (thing.type) {
    case TreeValue::Type::number: return same_number(text, thing.number);
    case TreeValue::Type::text: return text == thing.text;
    case TreeValue::Type::time: return text == format_timestamp(Timestamp(Interval(thing.ticks)));
    case TreeValue::Type::interval: return text == format_interval(Interval(thing.ticks));
    case TreeValue::Type::metric: return false;
    case TreeValue::Type::vector: break;
  }
  std::string_view rest = std::string_view(text).substr(1);
  for (const double number : thing.vector) {
    const std::size_t end = rest.find_first_of(",]");
    if (!same_number(rest.substr(0, end), number)) return false;
    rest.remove_prefix(end + 1);
  }
  return thing.vector.empty() ? text == "[]" : rest.empty();
}

TEST(FormulaReference, MatchesATreeWalk) {
  const SampledPool pool;
  int worked = 0;
  int failed = 0;
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    Random random(seed);
    std::vector<Statement> statements = Generator(random).formula();
    const std::string text = Writer(random).write(statements);
    if (text.size() > 8000) continue;
    SCOPED_TRACE(seed);
    const reference::Result expected = reference::evaluate(statements, pool.inputs);
    const Outcome outcome = pool.run(text);
    ASSERT_EQ(outcome.error.has_value(), expected.error.has_value())
        << text << (outcome.error ? describe(*outcome.error) : "");
    ++(outcome.error ? failed : worked);
    ASSERT_EQ(outcome.targets, expected.targets) << text;
    ASSERT_EQ(word(outcome.deallocation), expected.option) << text;
    ASSERT_EQ(outcome.variables.size(), expected.variables.size()) << text;
    if (outcome.error) {
      ASSERT_EQ(outcome.error->code, expected.error->first) << text << describe(*outcome.error);
      ASSERT_EQ(outcome.error->at, expected.error->second) << text << describe(*outcome.error);
    }
    auto named = expected.variables.begin();
    for (const Variable& variable : outcome.variables) {
      ASSERT_EQ(variable.name, named->first) << text;
      ASSERT_TRUE(same(variable.value, named->second)) << text << variable.name << "=" << variable.value;
      ++named;
    }
  }
  // Neither kind may be so rare that nothing is compared.
  EXPECT_GT(worked, 3000);
  EXPECT_GT(failed, 3000);
}

}  // namespace
}  // namespace slipway::formula
