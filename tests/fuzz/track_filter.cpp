// Filters, orders, page tokens and artifact paths of the tracking API: the first byte chooses which.
#include "target.h"
#include "track/filter.h"
#include "track/limits.h"
#include "track/order.h"
#include "track/words.h"

using namespace slipway;

namespace {

struct Everything final : track::Subject {  // has a value for whatever it is asked
  std::optional<double> number(const track::Field& field) const override {
    return static_cast<double>(field.key.size());
  }
  std::optional<std::string_view> text(const track::Field& field) const override { return field.key; }
  std::vector<std::string_view> texts(const track::Field& field) const override { return {field.key}; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text = fuzz::text(data + 1, size - 1);
  const auto searched = static_cast<track::Searched>(data[0] % 5);
  const Everything subject;
  const auto filter = track::parse_filter(text, searched);
  fuzz::check_explained(filter);
  if (filter) track::matches(*filter, subject);
  for (const track::Word& word : track::words_of(text.substr(0, 4'000)))
    SLIPWAY_CHECK(word.position >= 1 && word.position <= text.size() + 1);

  const auto order = track::parse_order({std::string(text)}, searched);
  fuzz::check_explained(order);
  if (order) {
    const auto values = track::sort_values(*order, subject);
    SLIPWAY_CHECK(!track::comes_before(*order, values, values));
    const auto again = track::parse_page_token(track::format_page_token(values, text), text);
    SLIPWAY_CHECK(again && *again == values);
  }
  fuzz::check_explained(track::parse_page_token(text, "q"));
  fuzz::check_explained(track::check_key("key", text));

  const auto path = track::safe_artifact_path(text);
  fuzz::check_explained(path);
  if (path) {
    SLIPWAY_CHECK(!path->starts_with('/') && path->find('\0') == std::string::npos);
    SLIPWAY_CHECK(("/" + *path + "/").find("/../") == std::string::npos);
    const auto again = track::safe_artifact_path(*path);
    SLIPWAY_CHECK(again && *again == *path);
  }
  return 0;
}
