#include "track/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace slipway::track {
namespace {

struct Item final : Subject {
  std::string id;
  double start = 0;
  std::optional<double> loss;
  std::optional<std::string> model;
  Item(std::string given, double started, std::optional<double> of_loss,
       std::optional<std::string> of_model = {})
      : id(std::move(given)), start(started), loss(of_loss), model(std::move(of_model)) {}

  std::optional<double> number(const Field& field) const override {
    if (field.entity == Entity::metric) return loss;
    return field.key == "start_time" ? std::optional(start) : std::nullopt;
  }
  std::optional<std::string_view> text(const Field& field) const override {
    if (field.entity == Entity::param) return model ? std::optional<std::string_view>(*model) : std::nullopt;
    return id;
  }
};

std::string ordered(const std::vector<std::string>& by, const std::vector<Item>& items) {
  const Order order = parse_order(by, Searched::runs).value();
  std::vector<std::pair<SortValues, std::string>> all;
  for (const Item& item : items) all.emplace_back(sort_values(order, item), item.id);
  std::sort(all.begin(), all.end(),
            [&](const auto& a, const auto& b) { return comes_before(order, a.first, b.first); });
  std::string ids;
  for (const auto& [values, id] : all) ids += id;
  return ids;
}

TEST(Order, MissingValuesComeLastInEitherDirection) {
  const std::vector<Item> items{
      {"a", 1, 0.5, "x"}, {"b", 2, {}, "y"}, {"c", 3, NAN}, {"d", 4, -1, "x"}, {"e", 5, {}}};
  EXPECT_EQ(ordered({}, items), "edcba");  // the newest first
  EXPECT_EQ(ordered({"metrics.loss"}, items), "daceb");
  EXPECT_EQ(ordered({"metrics.loss ASC"}, items), "daceb");
  EXPECT_EQ(ordered({"metrics.`loss` desc"}, items), "adceb");
  EXPECT_EQ(ordered({"params.model", "metrics.loss DESC"}, items), "adbce");
  EXPECT_EQ(ordered({"params.model DESC", "start_time"}, items), "badce");
  EXPECT_EQ(ordered({"start_time ASC"}, items), "abcde");
  EXPECT_EQ(ordered({}, {{"b", 1, {}}, {"a", 1, {}}}), "ab");
}

TEST(Order, RefusesWhatIsNoOrder) {
  for (const auto& items : std::vector<std::vector<std::string>>{{"foo.x"},
                                                                 {"metrics.a UP"},
                                                                 {"metrics.a DESC DESC"},
                                                                 {""},
                                                                 {"'x'"},
                                                                 {"metrics.a", "metrics.`a` DESC"},
                                                                 {"dataset.name"},
                                                                 std::vector<std::string>(51, "metrics.a")})
    EXPECT_FALSE(parse_order(items, Searched::runs).has_value()) << items[0];
  EXPECT_FALSE(parse_order({"metrics.a"}, Searched::experiments).has_value());
  EXPECT_TRUE(parse_order({"experiment_id DESC"}, Searched::experiments).has_value());
  EXPECT_TRUE(parse_order({"timestamp DESC", "name"}, Searched::models).has_value());
}

TEST(PageToken, BelongsToItsQuery) {
  const SortValues last{{SortValue::Rank::value, false, 1.5, ""},
                        {SortValue::Rank::nan, false, 0, ""},
                        {SortValue::Rank::value, true, 0, std::string("a\0b", 3)},
                        {SortValue::Rank::missing, false, 0, ""}};
  const std::string token = format_page_token(last, "the query");
  const auto again = parse_page_token(token, "the query");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(*again, last);
  EXPECT_FALSE(parse_page_token(token, "another query").has_value());
  EXPECT_FALSE(parse_page_token("", "the query").has_value());
  EXPECT_FALSE(parse_page_token("eyJvZmZzZXQiOiAxfQ==", "the query").has_value());
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(parse_page_token(changed, "the query").has_value()) << i;
    EXPECT_FALSE(parse_page_token(token.substr(0, i), "the query").has_value()) << i;
  }
}

}  // namespace
}  // namespace slipway::track
