#include "blob/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "blob/names.h"

namespace slipway::blob {
namespace {

struct Trio {  // one name on all three lists; nullptr where it is not
  const BlobInfo* there = nullptr;
  const LocalFile* here = nullptr;
  const KnownFile* known = nullptr;

  bool changed_here() const { return here != nullptr && (known == nullptr || *here != known->here); }
  bool changed_there() const { return there != nullptr && (known == nullptr || there->etag != known->etag); }
  Action action(Action::Kind kind) const {
    Action action{.kind = kind,
                  .name = here != nullptr    ? here->name
                          : there != nullptr ? there->name
                                             : known->here.name};
    if (there != nullptr) action.there = *there;
    if (known != nullptr) action.known = *known;
    return action;
  }
  bool may_be_same() const {
    return here != nullptr && there != nullptr && here->size == there->size && !there->md5.empty();
  }
};
using Trios = std::map<std::string, Trio>;

// Stores without folders mark them by empty blobs: "a/", or "a" beside "a/b".
void drop_folders(Trios& trios, std::vector<Skipped>& skipped) {
  for (auto& [name, trio] : trios) {
    if (trio.there == nullptr) continue;
    const std::string prefix = name + "/";
    auto below = trios.lower_bound(prefix);
    while (below != trios.end() && below->first.starts_with(prefix) && below->second.there == nullptr)
      ++below;
    if (below == trios.end() || !below->first.starts_with(prefix)) continue;
    if (trio.there->size > 0) skipped.push_back({name, "it is both a blob and a folder of others"});
    trio.there = nullptr;
  }
  std::erase_if(trios, [](const auto& item) {
    const Trio& trio = item.second;
    return trio.there == nullptr && trio.here == nullptr && trio.known == nullptr;
  });
}

Trios collect(const Sides& sides, std::vector<Skipped>& skipped) {
  Trios trios;
  std::set<std::string> closed;
  for (const Skipped& item : sides.not_files) closed.insert(item.name);
  skipped = sides.not_files;
  const auto is_open = [&](const std::string& name) {
    for (std::size_t end = name.find('/');; end = name.find('/', end + 1)) {
      if (closed.contains(name.substr(0, end))) return false;
      if (end == std::string::npos) return true;
    }
  };
  const auto is_usable = [&](const std::string& name) {
    auto trouble = trouble_with_name(name);
    if (!trouble && !is_open(name)) {
      if (closed.contains(name)) return false;  // reported already
      trouble = "a folder above it is a link here";
    }
    if (trouble) skipped.push_back({name, *trouble});
    return !trouble;
  };
  for (const BlobInfo& blob : sides.there) {
    if (blob.name.ends_with('/') && blob.size == 0) continue;
    if (is_usable(blob.name)) trios[blob.name].there = &blob;
  }
  for (const LocalFile& file : sides.here)
    if (is_usable(file.name)) trios[file.name].here = &file;
  for (const KnownFile& file : sides.known)
    if (is_open(file.here.name)) trios[file.here.name].known = &file;
  drop_folders(trios, skipped);
  return trios;
}

void sort_deletions_first(Plan& plan) {
  std::stable_partition(plan.actions.begin(), plan.actions.end(), [](const Action& action) {
    return action.kind != Action::Kind::download && action.kind != Action::Kind::upload;
  });
}

}  // namespace

Plan plan_pull(const Sides& sides) {
  Plan plan;
  for (const auto& [name, trio] : collect(sides, plan.skipped)) {
    if (trio.there != nullptr) {
      if (trio.here != nullptr && !trio.changed_there()) {
        if (trio.changed_here())
          plan.kept_here.push_back(name);
        else
          ++plan.unchanged;
        continue;
      }
      Action action = trio.action(Action::Kind::download);
      action.unless_same_as_there = trio.may_be_same();
      action.is_conflict = trio.changed_here();
      plan.actions.push_back(std::move(action));
    } else if (trio.known != nullptr) {
      const bool goes = trio.here != nullptr && !trio.changed_here();
      if (trio.here != nullptr && !goes) plan.kept_here.push_back(name);
      plan.actions.push_back(trio.action(goes ? Action::Kind::delete_here : Action::Kind::forget));
    } else {
      plan.kept_here.push_back(name);
    }
  }
  sort_deletions_first(plan);
  return plan;
}

Plan plan_push(const Sides& sides, const PushOptions& options) {
  Plan plan;
  for (const auto& [name, trio] : collect(sides, plan.skipped)) {
    if (trio.here != nullptr) {
      if (!trio.changed_here()) {
        ++plan.unchanged;
        continue;
      }
      Action action = trio.action(Action::Kind::upload);
      action.unless_same_as_there = trio.may_be_same();
      action.unless_same_as_known = trio.known != nullptr && trio.known->here.size == trio.here->size;
      action.is_conflict = trio.changed_there();
      plan.actions.push_back(std::move(action));
    } else if (trio.known != nullptr) {
      const bool goes = options.removals_count && trio.there != nullptr && !trio.changed_there();
      if (trio.changed_there()) plan.kept_there.push_back(name);
      plan.actions.push_back(trio.action(goes ? Action::Kind::delete_there : Action::Kind::forget));
    }
  }
  sort_deletions_first(plan);
  return plan;
}

}  // namespace slipway::blob
