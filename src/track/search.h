#pragma once
// Searches over what is in memory: filter, order, pages.
//
// A token is good for the same search only, and where something was logged meanwhile the next page goes on
// behind the last of this one.
#include <algorithm>
#include <string>
#include <vector>

#include "base/result.h"
#include "track/order.h"
#include "track/state.h"

namespace slipway::track {

enum class ViewType : std::uint8_t { active_only = 1, deleted_only = 2, all = 3 };
constexpr bool is_shown(ViewType view, Lifecycle lifecycle) {
  return view == ViewType::all || (view == ViewType::active_only) == (lifecycle == Lifecycle::active);
}

struct SearchRequest {
  std::string filter;
  std::vector<std::string> order_by;
  std::string page_token;
  std::size_t limit = 1'000;
  ViewType view = ViewType::active_only;
  std::string scope;  // what else a token belongs to: the experiments that are searched
};

template <class Item>
struct SearchPage {
  std::vector<const Item*> items;
  std::string next_token;  // empty: that was all
};

struct Search {  // a request that was understood
  Filter filter;
  Order order;
  SortValues after;  // empty: from the beginning
  std::string query;
  std::size_t limit = 0;
};
// Keys are looked up once, in `keys`.
Result<Search> parse_search(const SearchRequest& request, Searched searched, const Keys& keys);

// Of `items`, those that match, in order, behind the token. `subject_of(item)` is a Subject.
template <class Item, class SubjectOf>
SearchPage<Item> search_page(const Search& search, const std::vector<const Item*>& items,
                             const SubjectOf& subject_of) {
  struct Candidate {
    const Item* item;
    SortView first;  // of the first key, by which most are told apart
  };
  const std::vector<OrderKey>& keys = search.order.keys;
  const auto is_behind_token = [&](const auto& subject) {
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (const int sign = compare(keys[i], sort_view(keys[i], subject), view_of(search.after[i])); sign != 0)
        return sign > 0;
    return false;
  };
  std::vector<Candidate> found;
  for (const Item* item : items) {
    const auto subject = subject_of(*item);
    if (!matches(search.filter, subject)) continue;
    if (!search.after.empty() && !is_behind_token(subject)) continue;
    found.push_back({item, sort_view(keys[0], subject)});
  }
  const auto before = [&](const Candidate& a, const Candidate& b) {
    if (const int sign = compare(keys[0], a.first, b.first); sign != 0) return sign < 0;
    const auto of_a = subject_of(*a.item);
    const auto of_b = subject_of(*b.item);
    for (std::size_t i = 1; i < keys.size(); ++i)
      if (const int sign = compare(keys[i], sort_view(keys[i], of_a), sort_view(keys[i], of_b)); sign != 0)
        return sign < 0;
    return false;
  };
  const std::size_t shown = std::min(search.limit, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(shown), found.end(), before);
  SearchPage<Item> page;
  for (std::size_t i = 0; i < shown; ++i) page.items.push_back(found[i].item);
  if (shown > 0 && found.size() > shown)
    page.next_token =
        format_page_token(sort_values(search.order, subject_of(*page.items.back())), search.query);
  return page;
}

Result<SearchPage<Run>> search_runs(const State& state, const std::string& workspace,
                                    const std::vector<std::string>& experiments,
                                    const SearchRequest& request);
Result<SearchPage<Experiment>> search_experiments(const State& state, const std::string& workspace,
                                                  const SearchRequest& request);
Result<SearchPage<RegisteredModel>> search_models(const State& state, const std::string& workspace,
                                                  const SearchRequest& request);
Result<SearchPage<ModelVersion>> search_versions(const State& state, const std::string& workspace,
                                                 const SearchRequest& request);
Result<SearchPage<LoggedModel>> search_logged_models(const State& state, const std::string& workspace,
                                                     const std::vector<std::string>& experiments,
                                                     const SearchRequest& request);

}  // namespace slipway::track
