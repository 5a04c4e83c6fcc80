#include <algorithm>
#include <cmath>

#include "track/filter.h"

namespace slipway::track {
namespace {

bool compare(double left, Operator op, double right) {
  if (std::isnan(left)) return false;
  switch (op) {
    case Operator::equal: return left == right;
    case Operator::not_equal: return left != right;
    case Operator::greater: return left > right;
    case Operator::greater_equal: return left >= right;
    case Operator::less: return left < right;
    case Operator::less_equal: return left <= right;
    default: return false;
  }
}

bool compare_text(std::string_view left, const Clause& clause) {
  const auto is_listed = [&] {
    return std::find(clause.texts.begin(), clause.texts.end(), left) != clause.texts.end();
  };
  switch (clause.op) {
    case Operator::equal: return left == clause.text;
    case Operator::not_equal: return left != clause.text;
    case Operator::like: return is_like(left, clause.text, {});
    case Operator::ilike: return is_like(left, clause.text, {.ignores_case = true});
    case Operator::in: return is_listed();
    case Operator::not_in: return !is_listed();
    default: return false;
  }
}

bool matches_clause(const Clause& clause, const Subject& subject) {
  if (clause.field.is_number) {
    const auto number = subject.number(clause.field);
    return number && compare(*number, clause.op, clause.number);
  }
  if (clause.field.entity == Entity::dataset) {
    const auto all = subject.texts(clause.field);
    return std::any_of(all.begin(), all.end(),
                       [&](std::string_view text) { return compare_text(text, clause); });
  }
  const auto text = subject.text(clause.field);
  if (clause.op == Operator::is_null) return !text;
  if (clause.op == Operator::is_not_null) return text.has_value();
  return text && compare_text(*text, clause);
}

char lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::size_t character_size(std::string_view text, std::size_t at) {
  std::size_t size = 1;
  while (at + size < text.size() && (static_cast<unsigned char>(text[at + size]) & 0xc0) == 0x80) ++size;
  return size;
}

}  // namespace

std::vector<std::string_view> Subject::texts(const Field&) const { return {}; }

bool matches(const Filter& filter, const Subject& subject) {
  return std::all_of(filter.clauses.begin(), filter.clauses.end(),
                     [&](const Clause& clause) { return matches_clause(clause, subject); });
}

// Two pointers and the last %: what it covers grows by one character when the rest does not fit. Never more
// than text × pattern steps.
bool is_like(std::string_view text, std::string_view pattern, LikeOptions options) {
  const auto same = [&](char a, char b) { return options.ignores_case ? lowered(a) == lowered(b) : a == b; };
  std::size_t t = 0, p = 0;
  std::size_t after_percent = std::string_view::npos, covered = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '%') {
      after_percent = ++p;
      covered = t;
    } else if (p < pattern.size() && pattern[p] == '_') {
      t += character_size(text, t);
      ++p;
    } else if (p < pattern.size() && same(text[t], pattern[p])) {
      ++t;
      ++p;
    } else if (after_percent != std::string_view::npos) {
      p = after_percent;
      t = ++covered;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '%') ++p;
  return p == pattern.size();
}

}  // namespace slipway::track
