// Reads a query by the binding power of its operators: an expression takes what follows it while that binds
// more strongly than what stands before it.
#include <fmt/format.h>

#include <charconv>

#include "base/suggest.h"
#include "jmespath/jmespath.h"
#include "jmespath/node.h"
#include "jmespath/tokens.h"

namespace slipway::jmespath {
namespace {

constexpr int power_pipe = 1;
constexpr int power_or = 2;
constexpr int power_and = 3;
constexpr int power_comparison = 5;
constexpr int power_flatten = 9;
constexpr int power_projection_end = 10;  // what binds less ends a projection
constexpr int power_star = 20;
constexpr int power_filter = 21;
constexpr int power_dot = 40;
constexpr int power_not = 8;  // !a.b[0] is !(a.b[0]), !a == b is (!a) == b
constexpr int power_bracket = 55;
constexpr int power_call = 60;

int power_of(const Token& token) {
  if (token.kind != Token::Kind::symbol) return 0;
  struct Row {
    std::string_view symbol;
    int power;
  };
  constexpr Row rows[] = {{"|", power_pipe},        {"||", power_or},         {"&&", power_and},
                          {"==", power_comparison}, {"!=", power_comparison}, {"<", power_comparison},
                          {"<=", power_comparison}, {">", power_comparison},  {">=", power_comparison},
                          {"[]", power_flatten},    {"[?", power_filter},     {".", power_dot},
                          {"[", power_bracket},     {"(", power_call}};
  for (const Row& row : rows)
    if (token.text == row.symbol) return row.power;
  return 0;
}

class Parser {
 public:
  Parser(std::string_view text, std::vector<Token> tokens) : text_(text), tokens_(std::move(tokens)) {}

  Node read() {
    Node node = expression(0);
    if (now().kind != Token::Kind::end) unexpected("the end, or an operator");
    return node;
  }
  Error explain(const QueryError& error) const { return query_error_at(text_, error.at, error.what, hint_); }

 private:
  const Token& now() const { return tokens_[at_]; }
  const Token& after(std::size_t count) const { return tokens_[std::min(at_ + count, tokens_.size() - 1)]; }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool take_if(std::string_view symbol) {
    const bool found = now().is(symbol);
    if (found) take();
    return found;
  }
  [[noreturn]] void wrong(std::size_t at, std::string what, std::string hint = {}) {
    hint_ = std::move(hint);
    throw QueryError{at, std::move(what)};
  }
  [[noreturn]] void unexpected(std::string_view expected) {
    const Token& token = now();
    if (token.kind == Token::Kind::end) wrong(token.at, fmt::format("it ends where {} should be", expected));
    wrong(token.at, fmt::format("here should be {}", expected));
  }
  void need(std::string_view symbol) {
    if (!take_if(symbol)) unexpected(symbol);
  }

  Node make(Kind kind, std::size_t at, std::vector<Node> children = {}) {
    Node node;
    node.kind = kind;
    node.at = at;
    node.children = std::move(children);
    for (const Node& child : node.children) node.depth = std::max(node.depth, child.depth + 1);
    if (node.depth > depth_max) wrong(at, fmt::format("the query nests more than {} deep", depth_max));
    return node;
  }
  template <class... Nodes>
  Node join(Kind kind, std::size_t at, Nodes... nodes) {
    std::vector<Node> children;
    children.reserve(sizeof...(nodes));
    (children.push_back(std::move(nodes)), ...);
    return make(kind, at, std::move(children));
  }

  Node expression(int power) {
    if (++level_ > depth_max) wrong(now().at, fmt::format("the query nests more than {} deep", depth_max));
    Node left = first();
    while (power_of(now()) > power) left = extended(std::move(left));
    --level_;
    return left;
  }

  // What can begin an expression.
  Node first() {
    const Token token = now();
    if (token.kind == Token::Kind::name || token.kind == Token::Kind::quoted_name) {
      take();
      if (token.kind == Token::Kind::quoted_name && now().is("("))
        wrong(token.at, "a function's name is not quoted");
      return field(token);
    }
    if (token.kind == Token::Kind::text || token.kind == Token::Kind::json) {
      take();
      Node node = make(Kind::literal, token.at);
      node.value = token.kind == Token::Kind::text ? Json(token.text) : Json::parse(token.text);
      return node;
    }
    if (token.is("[?") || token.is("[]")) return extended(make(Kind::current, token.at));
    if (token.is("[")) return bracket_first();
    if (token.is("{")) return object();
    if (take_if("@")) return make(Kind::current, token.at);
    if (take_if("*")) {
      Node right = now().is("]") ? make(Kind::current, token.at) : projected(power_star);
      return join(Kind::object_projection, token.at, make(Kind::current, token.at), std::move(right));
    }
    if (take_if("!")) return join(Kind::negation, token.at, expression(power_not));
    if (take_if("&")) return join(Kind::expression, token.at, expression(0));
    if (take_if("(")) {
      Node inside = expression(0);
      need(")");
      return inside;
    }
    unexpected("an expression");
  }

  Node field(const Token& token) {
    Node node = make(Kind::field, token.at);
    node.text = token.text;
    return node;
  }

  // What an operator makes of the expression before it.
  Node extended(Node left) {
    const Token token = take();
    if (token.is(".")) return dotted(std::move(left), token.at);
    if (token.is("|")) return join(Kind::chain, token.at, std::move(left), expression(power_pipe));
    if (token.is("||")) return join(Kind::either, token.at, std::move(left), expression(power_or));
    if (token.is("&&")) return join(Kind::both, token.at, std::move(left), expression(power_and));
    if (token.is("[]")) {
      Node flat = join(Kind::flatten, token.at, std::move(left));
      return join(Kind::list_projection, token.at, std::move(flat), projected(power_flatten));
    }
    if (token.is("[?")) {
      Node condition = expression(0);
      need("]");
      Node right = now().is("[]") ? make(Kind::current, token.at) : projected(power_filter);
      return join(Kind::filter_projection, token.at, std::move(left), std::move(right), std::move(condition));
    }
    if (token.is("[")) return indexed(std::move(left), token.at);
    if (token.is("(")) return called(left);
    Node node = join(Kind::comparison, token.at, std::move(left), expression(power_comparison));
    node.text = token.text;
    return node;
  }

  Node dotted(Node left, std::size_t at) {
    if (!take_if("*")) return join(Kind::chain, at, std::move(left), after_dot(power_dot));
    return join(Kind::object_projection, at, std::move(left), projected(power_star));
  }

  Node after_dot(int power) {
    const Token& token = now();
    if (token.kind == Token::Kind::name || token.kind == Token::Kind::quoted_name || token.is("*"))
      return expression(power);
    if (token.is("[")) {
      const std::size_t at = take().at;
      return list(at);
    }
    if (token.is("{")) return object();
    unexpected("a name, [ or {");
  }

  // What a projection does to each of its items.
  Node projected(int power) {
    const Token& token = now();
    if (power_of(token) < power_projection_end) return make(Kind::current, token.at);
    if (token.is("[") || token.is("[?")) return expression(power);
    if (take_if(".")) return after_dot(power);
    unexpected("., [ or the end");
  }

  bool at_index() const { return now().kind == Token::Kind::number || now().is(":"); }

  Node bracket_first() {
    const std::size_t at = take().at;
    if (at_index() || (now().is("*") && after(1).is("]"))) return indexed(make(Kind::current, at), at);
    return list(at);
  }

  Node indexed(Node left, std::size_t at) {
    if (take_if("*")) {
      need("]");
      return join(Kind::list_projection, at, std::move(left), projected(power_star));
    }
    if (!at_index()) unexpected("a number, : or *");
    std::optional<std::int64_t> parts[3];
    int colons = 0;
    while (!now().is("]")) {
      if (now().is(":") && colons < 2) {
        ++colons;
        take();
      } else if (now().kind == Token::Kind::number && !parts[colons]) {
        parts[colons] = number(take());
      } else {
        unexpected("]");
      }
    }
    const std::size_t end = take().at;
    if (colons == 0) {
      Node node = join(Kind::index, at, std::move(left));
      node.start = parts[0];
      return node;
    }
    if (parts[2] == 0) wrong(end, "a slice cannot have steps of 0", "a negative step goes backwards");
    Node node = join(Kind::slice, at, std::move(left));
    node.start = parts[0];
    node.stop = parts[1];
    node.step = parts[2];
    return join(Kind::list_projection, at, std::move(node), projected(power_star));
  }

  std::int64_t number(const Token& token) {
    std::int64_t value = 0;
    const auto [end, error] =
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    if (error != std::errc{} || value > INT32_MAX || value < -INT32_MAX)
      wrong(token.at, fmt::format("{} is too large", token.text));
    return value;
  }

  Node list(std::size_t at) {
    std::vector<Node> items;
    do items.push_back(expression(0));
    while (take_if(","));
    need("]");
    return make(Kind::list, at, std::move(items));
  }

  Node object() {
    const std::size_t at = take().at;
    std::vector<Node> values;
    std::vector<std::string> names;
    do {
      if (now().kind != Token::Kind::name && now().kind != Token::Kind::quoted_name) unexpected("a name");
      names.push_back(take().text);
      need(":");
      values.push_back(expression(0));
    } while (take_if(","));
    need("}");
    Node node = make(Kind::object, at, std::move(values));
    node.names = std::move(names);
    return node;
  }

  Node called(const Node& name) {
    if (name.kind != Kind::field) wrong(name.at, "this is no function");
    if (!is_function(name.text)) {
      const std::string close = nearest(name.text, function_names());
      wrong(name.at, fmt::format("there is no function {}", name.text), close);
    }
    std::vector<Node> arguments;
    if (!now().is(")")) do
        arguments.push_back(expression(0));
      while (take_if(","));
    need(")");
    Node node = make(Kind::call, name.at, std::move(arguments));
    node.text = name.text;
    return node;
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::uint32_t level_ = 0;
  std::string hint_;
};

}  // namespace

Result<Node> parse(std::string_view text) {
  Result<std::vector<Token>> tokens = tokenize(text);
  if (!tokens) return fail(tokens.error());
  Parser parser(text, std::move(*tokens));
  try {
    return parser.read();
  } catch (const QueryError& error) {
    return fail(parser.explain(error));
  }
}

Query::Query(std::string text, std::shared_ptr<const Node> root)
    : text_(std::move(text)), root_(std::move(root)) {}

Result<Query> Query::parse(std::string_view text) {
  Result<Node> root = jmespath::parse(text);
  if (!root) return fail(root.error());
  return Query(std::string(text), std::make_shared<const Node>(std::move(*root)));
}

Result<std::string> Query::apply(std::string_view json) const {
  if (nesting_of(json) > nesting_max)
    return fail(ErrorCode::invalid, fmt::format("the data nests more than {} deep", nesting_max));
  const Json data = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (data.is_discarded()) return fail(ErrorCode::invalid, "what should be queried is not JSON");
  try {
    return evaluate(*root_, data).dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (const QueryError& error) {
    return fail(query_error_at(text_, error.at, error.what));
  }
}

}  // namespace slipway::jmespath
