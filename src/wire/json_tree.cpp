#include "wire/json_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace slipway::wire {
namespace {

constexpr std::size_t tree_depth_max = 64;

class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  Json take() { return std::move(root_); }

 private:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(Json::number_integer_t value) override { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) override { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }  // JSON has none
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool key(std::string& key) override {
    // Of the list that an ordered object is: its own ways to add compare with all that is there.
    using List = std::vector<Json::object_t::value_type>;
    static_cast<List&>(open_.back()->get_ref<Json::object_t&>()).emplace_back(std::move(key), Json());
    return true;
  }
  bool end_object() override {
    std::vector<std::string_view> keys;
    for (const auto& [key, value] : open_.back()->get_ref<Json::object_t&>()) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    if (const auto twice = std::adjacent_find(keys.begin(), keys.end()); twice != keys.end())
      throw Json::other_error::create(501, fmt::format("the key '{}' stands twice", twice->substr(0, 100)),
                                      static_cast<const Json*>(nullptr));
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    throw Json::other_error::create(501, error.what(), static_cast<const Json*>(nullptr));
  }

  Json& place() {
    if (open_.empty()) return root_;
    Json& in = *open_.back();
    if (in.is_array()) return in.emplace_back();
    return in.get_ref<Json::object_t&>().back().second;
  }
  template <class T>
  bool add(T value) {
    place() = std::move(value);
    return true;
  }
  bool open(Json value) {
    if (open_.size() == tree_depth_max)
      throw Json::other_error::create(501, fmt::format("nested more than {} levels deep", tree_depth_max),
                                      static_cast<const Json*>(nullptr));
    Json& at = place();
    at = std::move(value);
    open_.push_back(&at);
    return true;
  }

  Json root_;
  std::vector<Json*> open_;  // from the root to where the text is; only the last one grows
};

}  // namespace

Json parse_tree(std::string_view text) {
  TreeBuilder builder;
  nlohmann::json_sax<Json>* const events = &builder;
  if (!Json::sax_parse(text, events))
    throw Json::other_error::create(501, "not JSON", static_cast<const Json*>(nullptr));
  return builder.take();
}

}  // namespace slipway::wire
