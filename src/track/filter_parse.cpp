#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "track/filter.h"
#include "track/filter_names.h"
#include "track/words.h"

namespace slipway::track {
namespace {

tl::unexpected<Error> wrong_at(const Word& word, std::string what, std::string hint = {}) {
  return fail(ErrorCode::invalid,
              fmt::format("the filter at character {}: {}", word.position, std::move(what)), std::move(hint));
}

std::string found(const Word& word) {
  if (word.kind == Word::Kind::end) return "the filter ends";
  return fmt::format("'{}' stands", cut_word(word.source));
}

bool is_in(Operator op) { return op == Operator::in || op == Operator::not_in; }
bool is_null_check(Operator op) { return op == Operator::is_null || op == Operator::is_not_null; }
bool is_order(Operator op) {
  return op == Operator::greater || op == Operator::greater_equal || op == Operator::less ||
         op == Operator::less_equal;
}

class FilterParser {
 public:
  FilterParser(const std::vector<Word>& words, Searched searched) : words_(words), searched_(searched) {}

  Result<Filter> parse() {
    Filter filter;
    if (now().kind == Word::Kind::end) return filter;
    while (true) {
      auto clause = parse_clause();
      if (!clause) return fail(clause.error());
      filter.clauses.push_back(std::move(*clause));
      if (now().kind == Word::Kind::end) return filter;
      if (!now().is_keyword("AND"))
        return wrong_at(now(), found(now()) + " where AND or the end is expected",
                        now().is_keyword("OR") ? "clauses are joined by AND only; search twice for OR" : "");
      if (filter.clauses.size() == filter_clauses_max)
        return wrong_at(now(), fmt::format("it has more than {} clauses", filter_clauses_max));
      ++at_;
    }
  }

 private:
  const Word& now() const { return words_[at_]; }
  const Word& take() { return words_[at_++]; }

  Result<Clause> parse_clause() {
    const Word& begin = now();
    if (begin.kind == Word::Kind::wrong) return wrong_at(begin, begin.text);
    if (begin.kind != Word::Kind::name)
      return wrong_at(begin, found(begin) + " where a name is expected",
                      "a clause is written like metrics.loss < 0.1");
    ++at_;
    auto field = resolve_name({begin.entity, begin.text}, searched_, NameUse::filter);
    if (!field) return wrong_at(begin, field.error().what, field.error().hint);
    Clause clause;
    clause.field = std::move(*field);
    const Word& op = now();
    auto read = parse_operator();
    if (!read) return fail(read.error());
    clause.op = *read;
    if (auto fits = check_operator(clause, op); !fits) return fail(fits.error());
    if (is_null_check(clause.op)) return clause;
    if (auto done = is_in(clause.op) ? parse_list(clause) : parse_value(clause); !done)
      return fail(done.error());
    return clause;
  }

  Result<Operator> parse_operator() {
    struct Symbol {
      std::string_view source;
      Operator op;
    };
    static constexpr Symbol symbols[] = {{"=", Operator::equal},          {"!=", Operator::not_equal},
                                         {"<>", Operator::not_equal},     {">", Operator::greater},
                                         {">=", Operator::greater_equal}, {"<", Operator::less},
                                         {"<=", Operator::less_equal}};
    const Word& word = take_unless_end();
    for (const Symbol& symbol : symbols)
      if (word.is_symbol(symbol.source)) return symbol.op;
    if (word.is_keyword("LIKE")) return Operator::like;
    if (word.is_keyword("ILIKE")) return Operator::ilike;
    if (word.is_keyword("IN")) return Operator::in;
    if (word.is_keyword("NOT")) {
      if (!now().is_keyword("IN")) return wrong_at(now(), found(now()) + " after NOT, where IN is expected");
      ++at_;
      return Operator::not_in;
    }
    if (word.is_keyword("IS")) {
      const bool is_not = now().is_keyword("NOT");
      if (is_not) ++at_;
      if (!now().is_keyword("NULL")) return wrong_at(now(), found(now()) + " where NULL is expected");
      ++at_;
      return is_not ? Operator::is_not_null : Operator::is_null;
    }
    if (word.kind == Word::Kind::wrong) return wrong_at(word, word.text);
    return wrong_at(word, found(word) + " where an operator is expected",
                    "the operators are = != > >= < <= LIKE ILIKE IN NOT IN IS NULL IS NOT NULL");
  }

  const Word& take_unless_end() { return now().kind == Word::Kind::end ? now() : take(); }

  static bool may_be_listed(const Field& field) {
    return field.entity == Entity::dataset || (field.entity == Entity::attribute && field.key == "run_id");
  }

  static Result<void> check_operator(const Clause& clause, const Word& at) {
    const Field& field = clause.field;
    if (is_null_check(clause.op) && field.entity != Entity::param && field.entity != Entity::tag)
      return wrong_at(at, fmt::format("'{}' is never NULL", cut_word(field.key)),
                      "IS NULL is for params and tags");
    if (is_in(clause.op) && !may_be_listed(field))
      return wrong_at(at, fmt::format("'{}' takes no list", cut_word(field.key)),
                      "IN is for run_id and for datasets");
    const bool is_text_operator = clause.op == Operator::like || clause.op == Operator::ilike;
    if (field.is_number && is_text_operator)
      return wrong_at(at, fmt::format("'{}' is a number, and LIKE is for texts", cut_word(field.key)));
    if (!field.is_number && is_order(clause.op))
      return wrong_at(at, fmt::format("'{}' is a text, which is not greater or less", cut_word(field.key)),
                      "use = != LIKE or ILIKE");
    return {};
  }

  Result<void> parse_value(Clause& clause) {
    const Word& word = take_unless_end();
    if (word.kind == Word::Kind::wrong) return wrong_at(word, word.text);
    if (clause.field.is_number) {
      if (word.kind != Word::Kind::number)
        return wrong_at(word, found(word) + " where a number is expected",
                        fmt::format("'{}' is a number: write it without quotes", cut_word(clause.field.key)));
      clause.number = word.number;
      return {};
    }
    if (word.kind != Word::Kind::string && !is_double_quoted(word))
      return wrong_at(word, found(word) + " where a text in quotes is expected",
                      fmt::format("'{}' is a text: write it like 'adam'", cut_word(clause.field.key)));
    clause.text = word.text;
    return {};
  }

  // What is a name in double quotes elsewhere is a text where a value is expected.
  static bool is_double_quoted(const Word& word) {
    return word.kind == Word::Kind::name && word.source.starts_with('"');
  }

  Result<void> parse_list(Clause& clause) {
    if (!now().is_symbol("(")) return wrong_at(now(), found(now()) + " where '(' is expected");
    do {
      ++at_;
      const Word& word = take_unless_end();
      if (word.kind == Word::Kind::wrong) return wrong_at(word, word.text);
      if (word.kind != Word::Kind::string && !is_double_quoted(word))
        return wrong_at(word, found(word) + " where a text in quotes is expected",
                        "a list is written like ('a', 'b')");
      clause.texts.push_back(word.text);
    } while (now().is_symbol(","));
    if (!now().is_symbol(")")) return wrong_at(now(), found(now()) + " where ',' or ')' is expected");
    ++at_;
    return {};
  }

  const std::vector<Word>& words_;
  Searched searched_;
  std::size_t at_ = 0;
};

}  // namespace

Result<Filter> parse_filter(std::string_view text, Searched searched) {
  if (text.size() > filter_size_max)
    return fail(ErrorCode::invalid,
                fmt::format("the filter has {} bytes; at most {} are read", text.size(), filter_size_max),
                "search for less at once");
  const std::vector<Word> words = words_of(text);
  return FilterParser(words, searched).parse();
}

}  // namespace slipway::track
