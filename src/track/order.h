#pragma once
// The order of search results, and the tokens by which their pages follow one another. Pure.
//
// What has no value for a key comes last in either direction; of metrics, NaN before that. The things that
// are still alike go by the tie-break of what is searched, so that every order is total.
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "track/filter.h"

namespace slipway::track {

struct OrderKey {
  Field field;
  bool descending = false;
};

struct Order {
  std::vector<OrderKey> keys;  // complete: the last one is unique
};

// `items` like "metrics.loss DESC"; none: the usual order of what is searched.
Result<Order> parse_order(const std::vector<std::string>& items, Searched searched);

// The value of one key, as it is compared.
struct SortValue {
  enum class Rank : std::uint8_t { value, nan, missing };
  Rank rank = Rank::missing;
  bool is_text = false;
  double number = 0;
  std::string text;
  friend bool operator==(const SortValue&, const SortValue&) = default;
};
using SortValues = std::vector<SortValue>;

// The same without a copy of the text.
struct SortView {
  SortValue::Rank rank = SortValue::Rank::missing;
  bool is_text = false;
  double number = 0;
  std::string_view text;
};
SortView sort_view(const OrderKey& key, const Subject& subject);
SortView view_of(const SortValue& value);
int compare(const OrderKey& key, const SortView& a, const SortView& b);  // < 0: a comes first

SortValues sort_values(const Order& order, const Subject& subject);
bool comes_before(const Order& order, const SortValues& a, const SortValues& b);

// Where the next page begins: after what has these values. `query` is all that a token belongs to (filter,
// order, what is searched): with another one it is refused.
std::string format_page_token(const SortValues& last, std::string_view query);
Result<SortValues> parse_page_token(std::string_view token, std::string_view query);

}  // namespace slipway::track
