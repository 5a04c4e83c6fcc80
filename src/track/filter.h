#pragma once
// The filters of searches: parsed once, asked of each thing searched. Pure.
//
//   metrics.loss < 0.1 AND params.model = 'lr' AND tags.team IS NOT NULL AND attributes.status != 'FAILED'
//
// Clauses are joined by AND only. A clause on what a thing does not have is false, also with !=; IS NULL
// alone matches absence. Errors name the character where the filter stops making sense, counted from 1.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipway::track {

enum class Searched : std::uint8_t { runs, experiments, models, versions, logged_models };

// What a name in a filter or an order stands for.
enum class Entity : std::uint8_t { attribute, metric, param, tag, dataset };

struct Field {
  Entity entity = Entity::attribute;
  std::string key;          // of an attribute: its canonical name
  bool is_number = false;   // how it is compared
  std::uint32_t index = 0;  // for whoever looks it up: of the key in a table of its own
  friend bool operator==(const Field&, const Field&) = default;
};

enum class Operator : std::uint8_t {
  equal,
  not_equal,
  greater,
  greater_equal,
  less,
  less_equal,
  like,
  ilike,
  in,
  not_in,
  is_null,
  is_not_null,
};

struct Clause {
  Field field;
  Operator op = Operator::equal;
  double number = 0;
  std::string text;
  std::vector<std::string> texts;  // of IN
};

struct Filter {
  std::vector<Clause> clauses;  // none: everything matches
};

constexpr std::size_t filter_size_max = 16'384;
constexpr std::size_t filter_clauses_max = 200;

// An empty filter matches everything.
Result<Filter> parse_filter(std::string_view text, Searched searched);

// One of the things that are searched. What it does not have is nullopt.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::optional<double> number(const Field& field) const = 0;
  virtual std::optional<std::string_view> text(const Field& field) const = 0;
  // Several values, of which one has to match: datasets of a run. None by itself.
  virtual std::vector<std::string_view> texts(const Field& field) const;
};

bool matches(const Filter& filter, const Subject& subject);

// LIKE: % is any run of characters, _ one character. Without case only ASCII letters are alike.
struct LikeOptions {
  bool ignores_case = false;
};
bool is_like(std::string_view text, std::string_view pattern, LikeOptions options);

}  // namespace slipway::track
