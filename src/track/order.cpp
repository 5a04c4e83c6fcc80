#include "track/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/crc32c.h"
#include "base/encoding.h"
#include "track/bytes.h"
#include "track/filter_names.h"
#include "track/words.h"

namespace slipway::track {
namespace {

constexpr std::size_t order_items_max = 50;
constexpr std::size_t order_item_size_max = 1'000;

Result<OrderKey> parse_item(std::string_view item, Searched searched) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    return fail(ErrorCode::invalid, fmt::format("order_by '{}': {}", cut_word(item), why), hint);
  };
  if (item.size() > order_item_size_max) return refuse("it is too long", "name one thing to order by");
  const std::vector<Word> words = words_of(item);
  if (words[0].kind != Word::Kind::name)
    return refuse(fmt::format("at character {} a name is expected", words[0].position),
                  "write it like metrics.loss DESC");
  auto field = resolve_name({words[0].entity, words[0].text}, searched, NameUse::order);
  if (!field) return refuse(field.error().what, field.error().hint);
  if (field->entity == Entity::dataset && searched == Searched::runs)
    return refuse("runs are not ordered by their datasets", "order by metrics, params, tags or attributes");
  OrderKey key{std::move(*field), false};
  std::size_t next = 1;
  if (words[next].is_keyword("ASC") || words[next].is_keyword("DESC"))
    key.descending = words[next++].is_keyword("DESC");
  if (words[next].kind != Word::Kind::end)
    return refuse(fmt::format("'{}' at character {} is not ASC or DESC", cut_word(words[next].source),
                              words[next].position),
                  "write it like metrics.loss DESC");
  return key;
}

OrderKey by(std::string key, bool is_number, bool descending) {
  return {Field{Entity::attribute, std::move(key), is_number, 0}, descending};
}

std::vector<OrderKey> usual_order(Searched searched) {
  switch (searched) {
    case Searched::runs: return {by("start_time", true, true)};
    case Searched::experiments: return {by("creation_time", true, true)};
    case Searched::models: return {by("name", false, false)};
    case Searched::versions: return {by("last_update_time", true, true)};
    case Searched::logged_models: return {by("creation_time", true, true)};
  }
  return {};
}

std::vector<OrderKey> tie_break(Searched searched, bool is_usual) {
  switch (searched) {
    case Searched::runs: return {by("start_time", true, true), by("run_id", false, false)};
    case Searched::experiments: return {by("experiment_id", true, !is_usual)};
    case Searched::models: return {by("name", false, false)};
    case Searched::versions: return {by("name", false, false), by("version_number", true, true)};
    case Searched::logged_models: return {by("model_id", false, false)};
  }
  return {};
}

std::uint32_t hash_of(std::string_view text) { return crc32c(text.data(), text.size()); }

}  // namespace

Result<Order> parse_order(const std::vector<std::string>& items, Searched searched) {
  if (items.size() > order_items_max)
    return fail(ErrorCode::invalid,
                fmt::format("order_by has {} items; at most {} are read", items.size(), order_items_max));
  Order order;
  const auto has = [&](const Field& field) {
    return std::any_of(order.keys.begin(), order.keys.end(),
                       [&](const OrderKey& key) { return key.field == field; });
  };
  for (const std::string& item : items) {
    auto key = parse_item(item, searched);
    if (!key) return fail(key.error());
    if (has(key->field))
      return fail(ErrorCode::invalid, fmt::format("order_by names '{}' twice", cut_word(key->field.key)),
                  "name it once");
    order.keys.push_back(std::move(*key));
  }
  if (items.empty()) order.keys = usual_order(searched);
  for (OrderKey& key : tie_break(searched, items.empty()))
    if (!has(key.field)) order.keys.push_back(std::move(key));
  return order;
}

SortView sort_view(const OrderKey& key, const Subject& subject) {
  if (key.field.is_number) {
    const auto number = subject.number(key.field);
    if (!number) return {};
    if (std::isnan(*number)) return {SortValue::Rank::nan, false, 0, {}};
    return {SortValue::Rank::value, false, *number, {}};
  }
  const auto text = subject.text(key.field);
  if (!text) return {};
  return {SortValue::Rank::value, true, 0, *text};
}

SortView view_of(const SortValue& value) { return {value.rank, value.is_text, value.number, value.text}; }

int compare(const OrderKey& key, const SortView& a, const SortView& b) {
  if (a.rank != b.rank) return a.rank < b.rank ? -1 : 1;
  if (a.rank != SortValue::Rank::value) return 0;
  const int sign = a.is_text && b.is_text ? a.text.compare(b.text)
                   : a.number < b.number  ? -1
                   : a.number > b.number  ? 1
                                          : 0;
  return key.descending ? -sign : sign;
}

SortValues sort_values(const Order& order, const Subject& subject) {
  SortValues values;
  for (const OrderKey& key : order.keys) {
    const SortView view = sort_view(key, subject);
    values.push_back({view.rank, view.is_text, view.number, std::string(view.text)});
  }
  return values;
}

bool comes_before(const Order& order, const SortValues& a, const SortValues& b) {
  for (std::size_t i = 0; i < order.keys.size(); ++i)
    if (const int sign = compare(order.keys[i], view_of(a[i]), view_of(b[i])); sign != 0) return sign < 0;
  return false;
}

std::string format_page_token(const SortValues& last, std::string_view query) {
  ByteWriter out;
  out.fixed32(hash_of(query));
  for (const SortValue& value : last) {
    out.byte(static_cast<std::uint8_t>(static_cast<unsigned>(value.rank) * 2 + (value.is_text ? 1 : 0)));
    if (value.rank != SortValue::Rank::value) continue;
    if (value.is_text)
      out.text(value.text);
    else
      out.real(value.number);
  }
  const std::string body = out.take();
  ByteWriter whole;
  whole.fixed32(hash_of(body));
  return format_base64url(whole.take() + body);
}

Result<SortValues> parse_page_token(std::string_view token, std::string_view query) {
  const auto refuse = [](const char* why) {
    return fail(ErrorCode::invalid, fmt::format("the page token is not good here: {}", why),
                "pass next_page_token of the page before, with the same filter and order");
  };
  const auto bytes = parse_base64url(token);
  if (!bytes) return refuse("it is not one of ours");
  ByteReader in(*bytes);
  const std::uint32_t sum = in.fixed32();
  if (bytes->size() < 8 || sum != hash_of(std::string_view(*bytes).substr(4)))
    return refuse("it is not one of ours");
  if (in.fixed32() != hash_of(query)) return refuse("it belongs to another search");
  SortValues values;
  while (!in.at_end() && !in.failed()) {
    const std::uint8_t kind = in.byte();
    if (kind > 5) return refuse("it is not one of ours");
    SortValue value;
    value.rank = static_cast<SortValue::Rank>(kind / 2);
    value.is_text = kind % 2 == 1;
    if (value.rank == SortValue::Rank::value) {
      if (value.is_text)
        value.text = in.text();
      else
        value.number = in.real();
    }
    values.push_back(std::move(value));
  }
  if (in.failed()) return refuse("it is not one of ours");
  return values;
}

}  // namespace slipway::track
