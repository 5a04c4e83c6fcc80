#include "serve/versions.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/overloaded.h"

namespace slipway::serve {

std::map<std::int64_t, std::string> parse_version_names(const std::vector<std::string>& names) {
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  std::map<std::int64_t, std::string> found;
  for (const std::string& name : sorted) {
    std::int64_t number = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
    if (name.empty() || read.ec != std::errc() || read.ptr != name.data() + name.size() || number < 0)
      continue;
    found[number] = name;
  }
  return found;
}

std::vector<std::int64_t> wanted_versions(const std::map<std::int64_t, std::string>& present,
                                          const VersionPolicy& policy) {
  std::vector<std::int64_t> wanted;
  std::visit(Overloaded{
                 [&](const LatestPolicy& latest) {
                   auto left = std::max<std::int64_t>(latest.count, 1);
                   for (auto version = present.rbegin(); version != present.rend() && left > 0;
                        ++version, --left)
                     wanted.push_back(version->first);
                 },
                 [&](const AllPolicy&) {
                   for (const auto& version : present) wanted.push_back(version.first);
                 },
                 [&](const SpecificPolicy& specific) {
                   for (const std::int64_t number : specific.versions)
                     if (present.contains(number)) wanted.push_back(number);
                 },
             },
             policy);
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  return wanted;
}

const char* to_string(VersionState state) {
  switch (state) {
    case VersionState::start: return "START";
    case VersionState::loading: return "LOADING";
    case VersionState::available: return "AVAILABLE";
    case VersionState::unloading: return "UNLOADING";
    case VersionState::end: return "END";
  }
  return "UNKNOWN";
}

void ModelVersions::want(const std::vector<std::int64_t>& numbers) {
  for (auto& [number, version] : versions_)
    version.is_wanted = std::find(numbers.begin(), numbers.end(), number) != numbers.end();
  for (const std::int64_t number : numbers) {
    auto [found, is_new] = versions_.try_emplace(number);
    Version& version = found->second;
    version.status.number = number;
    version.is_wanted = true;
    // One that was unloaded comes back; one that failed for good waits until its files change.
    if (version.status.state == VersionState::end && version.status.failure.code == Code::ok)
      version.status.state = VersionState::start;
  }
  // One that was never loaded leaves nothing behind; a failure stays to be read.
  std::erase_if(versions_, [](const auto& entry) {
    return !entry.second.is_wanted && entry.second.status.state == VersionState::start &&
           entry.second.failures == 0;
  });
}

std::optional<std::int64_t> ModelVersions::to_unload() const {
  std::optional<std::int64_t> smallest;
  int loaded = 0;
  bool wants_any = false;
  for (const auto& [number, version] : versions_) {
    wants_any = wants_any || version.is_wanted;
    if (version.status.state != VersionState::available) continue;
    ++loaded;
    if (!version.is_wanted && !smallest) smallest = number;
  }
  if (loaded == 1 && wants_any) return std::nullopt;
  return smallest;
}

VersionStep ModelVersions::next(TimePoint now) {
  for (const auto& entry : versions_)
    if (entry.second.status.state == VersionState::loading) return {};
  if (const auto number = to_unload()) {
    versions_.at(*number).status.state = VersionState::unloading;
    return UnloadVersion{*number};
  }
  for (auto entry = versions_.rbegin(); entry != versions_.rend(); ++entry) {
    Version& version = entry->second;
    if (!version.is_wanted || version.status.state != VersionState::start || now < version.retry_at) continue;
    version.status.state = VersionState::loading;
    return LoadVersion{entry->first};
  }
  return {};
}

void ModelVersions::loaded(std::int64_t number) {
  Version& version = versions_.at(number);
  SLIPWAY_CHECK(version.status.state == VersionState::loading);
  version.status.state = VersionState::available;
  version.status.failure = {Code::ok, ""};
  version.failures = 0;
}

void ModelVersions::load_failed(std::int64_t number, Failure failure, TimePoint now) {
  Version& version = versions_.at(number);
  SLIPWAY_CHECK(version.status.state == VersionState::loading);
  version.status.failure = std::move(failure);
  ++version.failures;
  const bool is_over = version.failures > retry_.retries_max || !version.is_wanted;
  version.status.state = is_over ? VersionState::end : VersionState::start;
  version.retry_at = now + retry_.interval;
}

void ModelVersions::unloaded(std::int64_t number) {
  Version& version = versions_.at(number);
  SLIPWAY_CHECK(version.status.state == VersionState::unloading);
  version.status.state = version.is_wanted ? VersionState::start : VersionState::end;
  version.retry_at = {};
}

void ModelVersions::changed(std::int64_t number) {
  const auto found = versions_.find(number);
  if (found == versions_.end()) return;
  Version& version = found->second;
  const bool has_failed =
      version.status.state == VersionState::start || version.status.state == VersionState::end;
  if (!has_failed || !version.is_wanted || version.failures == 0) return;
  version.status.state = VersionState::start;
  version.failures = 0;
  version.retry_at = {};
}

std::optional<TimePoint> ModelVersions::retry_at() const {
  std::optional<TimePoint> first;
  for (const auto& entry : versions_) {
    const Version& version = entry.second;
    if (!version.is_wanted || version.status.state != VersionState::start) continue;
    if (!first || version.retry_at < *first) first = version.retry_at;
  }
  return first;
}

std::vector<VersionStatus> ModelVersions::status() const {
  std::vector<VersionStatus> all;
  for (auto entry = versions_.rbegin(); entry != versions_.rend(); ++entry)
    all.push_back(entry->second.status);
  return all;
}

std::optional<std::int64_t> ModelVersions::newest_available() const {
  for (auto entry = versions_.rbegin(); entry != versions_.rend(); ++entry)
    if (entry->second.status.state == VersionState::available) return entry->first;
  return std::nullopt;
}

bool ModelVersions::is_available(std::int64_t number) const {
  const auto found = versions_.find(number);
  return found != versions_.end() && found->second.status.state == VersionState::available;
}

bool ModelVersions::wants(std::int64_t number) const {
  const auto found = versions_.find(number);
  return found != versions_.end() && found->second.is_wanted;
}

bool ModelVersions::is_settled() const {
  return std::all_of(versions_.begin(), versions_.end(), [](const auto& entry) {
    const VersionState state = entry.second.status.state;
    if (!entry.second.is_wanted) return state != VersionState::loading;
    const bool has_failed = state == VersionState::start && entry.second.failures > 0;
    return state == VersionState::available || state == VersionState::end || has_failed;
  });
}

}  // namespace slipway::serve
