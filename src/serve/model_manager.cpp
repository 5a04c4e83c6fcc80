#include "serve/model_manager.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/overloaded.h"

namespace slipway::serve {

ModelManager::ModelManager(ModelManagerOptions options, const Clock& clock)
    : options_(options), clock_(clock), watch_(std::make_shared<FolderWatch>()) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

ModelManager::~ModelManager() {
  thread_.request_stop();
  watch_->wake();
}

// --- configuration

void ModelManager::set_models(const ServerConfig& config) {
  for (auto& entry : models_) entry.second.is_removed = true;
  for (const ModelConfig& model : config.models) {
    const auto found =
        models_.try_emplace(model.name, Entry{.versions = ModelVersions(options_.retry)}).first;
    Entry& entry = found->second;
    // What is loaded stays until the versions of the folder it has now are, also where that is another one.
    entry.config = model;
    entry.is_removed = false;
    entry.is_listed = false;
  }
  for (auto& entry : models_)
    if (entry.second.is_removed) entry.second.versions.want({});
  config_ = config;
  must_list_ = true;
  watch_->wake();
}

Answer<void> ModelManager::set_labels(const ServerConfig& config) {
  for (const ModelConfig& model : config.models) {
    const Entry& entry = models_.find(model.name)->second;
    for (const auto& [label, version] : model.labels) {
      if (entry.versions.is_available(version)) continue;
      const auto current = entry.labels.find(label);
      const bool may_wait = options_.allows_labels_for_unavailable &&
                            (current == entry.labels.end() || current->second == version);
      if (!may_wait)
        return refuse(
            Code::failed_precondition,
            fmt::format("Request to assign label {} to version {} of model {}, which is not currently "
                        "available for inference",
                        label, version, model.name));
    }
  }
  for (const ModelConfig& model : config.models) models_.find(model.name)->second.labels = model.labels;
  return {};
}

Answer<void> ModelManager::apply(const ServerConfig& config) {
  const std::lock_guard one(applying_);
  Lock lock(mutex_);
  const ServerConfig before = config_;
  set_models(config);
  settled_.wait(lock, [&] { return is_settled(); });
  auto labelled = set_labels(config);
  if (labelled) return {};
  set_models(before);
  settled_.wait(lock, [&] { return is_settled(); });
  return labelled;
}

bool ModelManager::is_settled() const {
  for (const auto& [name, entry] : models_)
    if (!entry.is_removed && (!entry.is_listed || !entry.versions.is_settled())) return false;
  return true;
}

// --- the thread

void ModelManager::run(const std::stop_token& stop) {
  TimePoint poll_at{};
  Lock lock(mutex_);
  while (!stop.stop_requested()) {
    list(lock);
    while (advance(lock) && !stop.stop_requested()) {
    }
    settled_.notify_all();
    if (!cold_.empty()) {
      const std::shared_ptr<const Model> model = std::move(cold_.back());
      cold_.pop_back();
      lock.unlock();
      model->warm_up();
      lock.lock();
      continue;
    }
    const TimePoint now = clock_.now();
    const bool polls = options_.poll_interval.count() > 0;
    poll_at = now + options_.poll_interval;
    std::optional<TimePoint> next;
    if (polls) next = poll_at;
    for (const auto& entry : models_)
      if (const auto retry = entry.second.versions.retry_at(); retry && (!next || *retry < *next))
        next = retry;
    if (must_list_) continue;
    lock.unlock();
    watch_->wait(next ? std::max(Duration(0), *next - now) : Duration(-1));
    lock.lock();
    must_list_ = must_list_ || polls;
  }
}

// Reads the folders without holding the lock: a slow disk must not stop requests.
void ModelManager::list(Lock& lock) {
  if (!must_list_) return;
  must_list_ = false;
  std::vector<std::pair<std::string, std::string>> bases;
  for (const auto& [name, entry] : models_)
    if (!entry.is_removed) bases.emplace_back(name, entry.config.base_path);
  for (const auto& [name, path] : bases) {
    lock.unlock();
    if (options_.poll_interval.count() > 0)
      watch_->add(path);  // before it is read: nothing is missed between
    BaseFolder base = list_versions(path);
    if (options_.poll_interval.count() > 0) {
      for (const std::string& folder : base.incomplete) watch_->add(folder);
      for (const auto& version : base.versions) watch_->add(version.second.path);
      if (!base.incomplete.empty()) base = list_versions(path);
    }
    lock.lock();
    const auto found = models_.find(name);
    const bool is_still_it =
        found != models_.end() && !found->second.is_removed && found->second.config.base_path == path;
    if (is_still_it) take_listing(found->second, std::move(base));
  }
}

void ModelManager::take_listing(Entry& entry, BaseFolder base) {
  entry.is_listed = true;
  const bool is_missing = !base.exists || base.versions.empty();
  if (is_missing && !entry.was_missing)
    log::warning("model.no_versions", {{"model", entry.config.name},
                                       {"base_path", entry.config.base_path},
                                       {"why", base.exists ? "no numbered folder with a model in it"
                                                           : "the folder is not there"}});
  entry.was_missing = is_missing;
  if (!base.exists) return;  // a mount that went away: what is loaded stays
  entry.folders = std::move(base.versions);
  for (const auto& [number, folder] : entry.folders) {
    const auto failed = entry.failed_stamps.find(number);
    if (failed == entry.failed_stamps.end() || failed->second == folder.stamp) continue;
    entry.failed_stamps.erase(failed);
    entry.versions.changed(number);
  }
  std::map<std::int64_t, std::string> present;
  for (const auto& [number, folder] : entry.folders) present[number] = folder.path;
  entry.versions.want(wanted_versions(present, entry.config.policy));
}

bool ModelManager::advance(Lock& lock) {
  std::vector<std::string> names;
  for (const auto& entry : models_) names.push_back(entry.first);
  bool did_something = false;
  for (const std::string& name : names) {
    const auto found = models_.find(name);
    if (found == models_.end()) continue;
    did_something = advance(name, found->second, lock) || did_something;
    const auto after = models_.find(name);
    const bool is_gone = after != models_.end() && after->second.is_removed && after->second.loaded.empty();
    if (is_gone && after->second.draining.empty()) models_.erase(after);
  }
  return did_something;
}

bool ModelManager::advance(const std::string& name, Entry& entry, Lock& lock) {
  free_drained(entry);
  const VersionStep step = entry.versions.next(clock_.now());
  if (const auto* load_step = std::get_if<LoadVersion>(&step)) {
    load(name, load_step->number, lock);
    return true;
  }
  if (const auto* unload = std::get_if<UnloadVersion>(&step)) {
    log::info("model.unloading", {{"model", name}, {"version", unload->number}});
    const auto loaded = entry.loaded.find(unload->number);
    entry.draining[unload->number] = loaded->second;
    const std::shared_ptr<const Model> last = std::move(loaded->second);
    entry.loaded.erase(loaded);
    return true;
  }
  return false;
}

void ModelManager::free_drained(Entry& entry) {
  std::erase_if(entry.draining, [&](const auto& draining) {
    if (!draining.second.expired()) return false;
    entry.versions.unloaded(draining.first);
    return true;
  });
}

void ModelManager::load(const std::string& name, std::int64_t number, Lock& lock) {
  const VersionFolder folder = models_.find(name)->second.folders.at(number);
  lock.unlock();
  const TimePoint begun = clock_.now();
  auto model = load_version(folder.path);
  const TimePoint now = clock_.now();
  lock.lock();
  Entry& entry = models_.find(name)->second;  // only this thread removes them
  if (!model) {
    log::warning("model.load_failed", {{"model", name}, {"version", number}, {"why", model.error().message}});
    entry.failed_stamps[number] = folder.stamp;
    entry.versions.load_failed(number, model.error(), now);
    return;
  }
  // The last to let go of it, mostly a request, wakes the thread to note that it is gone.
  const Model* raw = model->get();
  auto wake_at_end = [held = std::move(*model), watch = watch_](const Model*) mutable {
    held.reset();
    watch->wake();
  };
  entry.loaded[number] = std::shared_ptr<const Model>(raw, std::move(wake_at_end));
  cold_.push_back(entry.loaded[number]);
  entry.versions.loaded(number);
  log::info("model.available", {{"model", name}, {"version", number}, {"load_s", seconds(now - begun)}});
}

// --- readers

Answer<ServedModel> ModelManager::find(const std::string& name, const VersionChoice& choice) const {
  const Lock lock(mutex_);
  const auto found = models_.find(name);
  const auto none = [&](const std::string& request) {
    return refuse(Code::not_found, fmt::format("Servable not found for request: {}", request));
  };
  std::optional<std::int64_t> number;
  if (const auto* labelled = std::get_if<LabelledVersion>(&choice)) {
    const auto label = found == models_.end() ? std::map<std::string, std::int64_t>::const_iterator{}
                                              : found->second.labels.find(labelled->label);
    if (found == models_.end() || label == found->second.labels.end())
      return invalid(fmt::format("Unrecognized servable version label: {}", labelled->label));
    number = label->second;
  }
  if (const auto* exact = std::get_if<ExactVersion>(&choice)) number = exact->number;
  const std::string request =
      number ? fmt::format("Specific({}, {})", name, *number) : fmt::format("Latest({})", name);
  if (found == models_.end() || found->second.loaded.empty()) return none(request);
  const auto& loaded = found->second.loaded;
  const auto version = number ? loaded.find(*number) : std::prev(loaded.end());
  if (version == loaded.end()) return none(request);
  return ServedModel{version->first, version->second};
}

Answer<std::vector<VersionStatus>> ModelManager::status(const std::string& name,
                                                        std::optional<std::int64_t> version) const {
  const Lock lock(mutex_);
  const auto found = models_.find(name);
  std::vector<VersionStatus> all;
  if (found != models_.end()) all = found->second.versions.status();
  if (version) {
    std::erase_if(all, [&](const VersionStatus& status) { return status.number != *version; });
    if (all.empty())
      return refuse(Code::not_found, fmt::format("Could not find version {} of model {}", *version, name));
  }
  if (all.empty())
    return refuse(Code::not_found, fmt::format("Could not find any versions of model {}", name));
  return all;
}

std::vector<std::string> ModelManager::model_names() const {
  const Lock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, entry] : models_)
    if (!entry.is_removed) names.push_back(name);
  return names;
}

std::vector<std::int64_t> ModelManager::available_versions(const std::string& name) const {
  const Lock lock(mutex_);
  std::vector<std::int64_t> numbers;
  if (const auto found = models_.find(name); found != models_.end())
    for (const auto& loaded : found->second.loaded) numbers.push_back(loaded.first);
  return numbers;
}

bool ModelManager::is_ready() const {
  const Lock lock(mutex_);
  return std::all_of(models_.begin(), models_.end(), [](const auto& entry) {
    return entry.second.is_removed || !entry.second.loaded.empty();
  });
}

}  // namespace slipway::serve
