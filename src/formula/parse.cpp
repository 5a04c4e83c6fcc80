#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "formula/formula.h"
#include "formula/program.h"
#include "formula/tokens.h"

namespace slipway::formula {
namespace {

using Kind = Token::Kind;

constexpr std::size_t or_level = 1;
constexpr std::size_t and_level = 2;
struct BinaryRow {
  std::string_view symbol;
  std::size_t level;  // what binds tighter has the higher one
  Binary op;          // not of && and ||, which are jumps
};
constexpr BinaryRow binary_rows[] = {
    {"||", or_level, {}},       {"&&", and_level, {}},
    {"==", 3, Binary::equal},   {"!=", 3, Binary::not_equal},
    {"<", 4, Binary::less},     {"<=", 4, Binary::less_equal},
    {">", 4, Binary::greater},  {">=", 4, Binary::greater_equal},
    {"+", 5, Binary::add},      {"-", 5, Binary::subtract},
    {"*", 6, Binary::multiply}, {"/", 6, Binary::divide},
};

const BinaryRow* binary_row(const Token& token) {
  for (const BinaryRow& row : binary_rows)
    if (token.is(row.symbol)) return &row;
  return nullptr;
}

std::string list_of(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

// x for $x and the other way round.
std::string other_spelling(const std::string& name) {
  return name.front() == '$' ? name.substr(1) : "$" + name;
}

// Writes the program while it reads. The first problem is kept and moves the reader to the end, where nothing
// fits any more, so that every function is a straight line and only parse() asks whether all went well.
class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
    program_.variables.assign(std::begin(setting_names), std::end(setting_names));
    assigned_.resize(setting_count, false);
  }

  tl::expected<Formula, FormulaError> parse() {
    std::size_t statements = 0;
    while (token().kind != Kind::end) {
      if (take(";")) continue;
      if (++statements > Limits::statements_max)
        wrong(FormulaErrorCode::syntax, token(),
              fmt::format("a formula has at most {} statements", Limits::statements_max),
              "put several steps into one expression");
      statement();
      if (token().kind != Kind::end && !token().is(";"))
        unexpected("an operator or ;", "statements end with ;");
    }
    if (error_) return tl::unexpected<FormulaError>(std::move(*error_));
    return Formula(std::make_shared<const Program>(std::move(program_)));
  }

 private:
  const Token& token(std::size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  bool take(std::string_view symbol) {
    if (!token().is(symbol)) return false;
    ++next_;
    return true;
  }
  void expect(std::string_view symbol) {
    if (!take(symbol)) unexpected(symbol);
  }

  void wrong(FormulaErrorCode code, const Token& at, std::string message, std::string hint = {}) {
    if (!error_) error_ = FormulaError{code, at.at, std::move(message), std::move(hint)};
    next_ = tokens_.size() - 1;
    tokens_.back().kind = Kind::end;
  }
  void unexpected(std::string_view wanted, std::string hint = {}) {
    const Token& found = token();
    if (found.kind == Kind::wrong)
      wrong(FormulaErrorCode::syntax, found, found.text, found.hint);
    else if (found.kind == Kind::end)
      wrong(FormulaErrorCode::syntax, found, fmt::format("the formula ends where {} should stand", wanted));
    else
      wrong(FormulaErrorCode::syntax, found,
            fmt::format("'{}' stands where {} should", found.source.substr(0, 100), wanted),
            found.is("=") ? "to compare write ==" : std::move(hint));
  }

  // Returns where the instruction is, for jumps whose goal is known later.
  std::size_t emit(Op op, const Token& at, std::size_t operand = 0, std::size_t count = 0) {
    program_.code.push_back(
        {op, static_cast<std::uint16_t>(count), static_cast<std::uint32_t>(operand), at.at});
    return program_.code.size() - 1;
  }
  void land(std::size_t jump) {
    program_.code[jump].operand = static_cast<std::uint32_t>(program_.code.size());
  }
  void emit_constant(const Token& at, Value value) {
    emit(Op::constant, at, program_.constants.size());
    program_.constants.push_back(std::move(value));
  }

  void statement() {
    const Token& first = token();
    if ((first.kind != Kind::name && first.kind != Kind::variable) || !token(1).is("=")) {
      expression();
      emit(Op::discard, first);
      return;
    }
    const std::string name(first.source);
    const Token& equals = token(1);
    if (is_fixed(name))
      return wrong(
          FormulaErrorCode::evaluation, first, fmt::format("{} cannot be assigned", name),
          "choose a name of your own; the service reads $TargetDedicatedNodes, $TargetLowPriorityNodes and "
          "$NodeDeallocationOption");
    next_ += 2;
    expression();
    emit(Op::assign, equals, slot_of(name));  // only now: the expression does not see the variable yet
  }

  // c ? a : d ? b : e is a loop, so that long chains nest no deeper than short ones.
  void expression() {
    if (++nesting_ > Limits::nesting_max)
      wrong(FormulaErrorCode::syntax, token(),
            fmt::format("this is nested more than {} levels deep", Limits::nesting_max),
            "give parts of it names");
    std::vector<std::size_t> ends;
    for (;;) {
      operation(or_level);
      const Token& question = token();
      if (!take("?")) break;
      const std::size_t otherwise = emit(Op::jump_unless, question);
      expression();
      ends.push_back(emit(Op::jump, question));
      expect(":");
      land(otherwise);
    }
    for (const std::size_t jump : ends) land(jump);
    --nesting_;
  }

  // Operators of this level and of those that bind tighter.
  void operation(std::size_t level) {
    signs();
    for (;;) {
      const Token& symbol = token();
      const BinaryRow* row = binary_row(symbol);
      if (row == nullptr || row->level < level) return;
      ++next_;
      if (row->level <= and_level) {
        const std::size_t decided = emit(Op::jump_if_decided, symbol, 0, row->level == or_level ? 1 : 0);
        operation(row->level + 1);
        emit(Op::truth, symbol);
        land(decided);
      } else {
        operation(row->level + 1);
        emit(Op::binary, symbol, static_cast<std::size_t>(row->op));
      }
    }
  }

  void signs() {
    const std::size_t first = next_;
    while (token().is("-") || token().is("+") || token().is("!")) ++next_;
    const std::size_t end = next_;
    postfix();
    if (error_) return;
    for (std::size_t i = end; i-- > first;) {
      const Unary op = tokens_[i].is("-") ? Unary::minus : tokens_[i].is("+") ? Unary::plus : Unary::negate;
      emit(Op::unary, tokens_[i], static_cast<std::size_t>(op));
    }
  }

  void postfix() {
    primary();
    while (take(".")) {
      const Token& name = token();
      if (name.kind != Kind::name) return unexpected("the name of a member or a method");
      ++next_;
      if (take("("))
        call(methods(), Op::method, name, "method");
      else if (const MemberName* member = find(members(), name.source))
        emit(Op::member, name, static_cast<std::size_t>(member->id));
      else
        unknown("member", name, names_of(members()));
    }
  }

  void primary() {
    const Token& first = token();
    if (first.kind == Kind::number) {
      ++next_;
      emit_constant(first, first.number);
    } else if (first.kind == Kind::text) {
      ++next_;
      emit_constant(first, first.text);
    } else if (first.kind == Kind::name && token(1).is("(")) {
      next_ += 2;
      call(functions(), Op::function, first, "function");
    } else if (first.kind == Kind::name || first.kind == Kind::variable) {
      ++next_;
      variable(first);
    } else if (take("(")) {
      expression();
      expect(")");
    } else if (take("[")) {
      const std::size_t count = arguments("]");
      emit(Op::vector, first, 0, count);
    } else {
      unexpected("a value");
    }
  }

  std::size_t arguments(std::string_view close) {
    std::size_t count = 0;
    if (take(close)) return count;
    do {
      expression();
      ++count;
    } while (take(","));
    if (!take(close)) unexpected(fmt::format(", or {}", close));
    return count;
  }

  template <class Id>
  void call(std::span<const Callable<Id>> known, Op op, const Token& name, std::string_view kind) {
    const Callable<Id>* callee = find(known, name.source);
    if (callee == nullptr) return unknown(kind, name, names_of(known));
    const std::size_t count = arguments(")");
    if (count < callee->arguments_min || count > callee->arguments_max)
      return wrong(FormulaErrorCode::evaluation, name,
                   fmt::format("{} takes {}, not {}", callee->name, describe_arity(*callee), count));
    emit(op, name, static_cast<std::size_t>(callee->id), count);
  }

  template <class Id>
  static std::string describe_arity(const Callable<Id>& callee) {
    if (callee.arguments_max == 0) return "no arguments";
    if (callee.arguments_max == any_number) return "one argument or more";
    if (callee.arguments_min == callee.arguments_max)
      return fmt::format("{} arguments", callee.arguments_max);
    return fmt::format("{} to {} arguments", callee.arguments_min, callee.arguments_max);
  }

  void unknown(std::string_view kind, const Token& name, const std::vector<std::string>& known) {
    const std::string close = nearest(name.source, known);
    wrong(FormulaErrorCode::evaluation, name,
          fmt::format("there is no {} {}", kind, name.source.substr(0, 100)),
          close.empty() ? fmt::format("the {}s are {}", kind, list_of(known))
                        : fmt::format("did you mean {}?", close));
  }

  void variable(const Token& at) {
    const std::string name(at.source);
    if (known_variable(at, name) || known_variable(at, other_spelling(name))) return;
    // An error only when it is reached, and what the writer may have meant is looked for only then.
    emit(Op::undefined, at, program_.undefined.size());
    program_.undefined.push_back({name, program_.variables.size()});
  }

  bool known_variable(const Token& at, const std::string& name) {
    if (const IntervalName* interval = find(intervals(), name))
      return emit_constant(at, Interval(interval->ticks)), true;
    if (const auto option = parse_deallocation(name))
      return emit_constant(at, std::string(word(*option))), true;
    if (const auto metric = parse_metric(name))
      return emit(Op::metric, at, static_cast<std::size_t>(*metric)), true;
    if (name == slots_per_node_name) return emit(Op::slots_per_node, at), true;
    const auto found = std::find(program_.variables.begin(), program_.variables.end(), name);
    const auto slot = static_cast<std::size_t>(found - program_.variables.begin());
    if (slot >= setting_count) {  // one of the formula's own, and there only once it is assigned
      if (found == program_.variables.end()) return false;
      emit(Op::variable, at, slot);
      return true;
    }
    // Statements run in order and wholly, so what is assigned here is known without running any.
    const std::size_t alias = slot == node_deallocation_option ? slot : slot ^ 1;
    if (assigned_[slot] || assigned_[alias])
      emit(Op::variable, at, assigned_[slot] ? slot : alias);
    else
      emit(Op::current_setting, at, slot);
    return true;
  }

  static bool is_fixed(const std::string& name) {
    return find(intervals(), name) != nullptr || parse_deallocation(name) || parse_metric(name) ||
           name == slots_per_node_name;
  }

  std::size_t slot_of(const std::string& name) {
    const auto found = std::find(program_.variables.begin(), program_.variables.end(), name);
    const auto slot = static_cast<std::size_t>(found - program_.variables.begin());
    if (found == program_.variables.end()) program_.variables.push_back(name);
    if (slot < setting_count) assigned_[slot] = true;
    return slot;
  }

  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  std::size_t nesting_ = 0;
  Program program_;
  std::vector<bool> assigned_;  // of the settings: by a statement before
  std::optional<FormulaError> error_;
};

}  // namespace

tl::expected<Formula, FormulaError> parse(std::string_view text) {
  const std::size_t characters = count_characters(text);
  if (characters > Limits::characters_max)
    return tl::unexpected<FormulaError>(
        FormulaError{FormulaErrorCode::too_long,
                     {},
                     fmt::format("the formula has {} characters; at most {} are taken", characters,
                                 Limits::characters_max),
                     "leave out comments, give repeated parts names"});
  return Parser(tokenize(text)).parse();
}

}  // namespace slipway::formula
