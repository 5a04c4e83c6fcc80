#pragma once
// Keeps the models of a configuration loaded: follows their version folders, loads and unloads on a thread of
// its own, and lends loaded versions to requests.
//
// A version that was unloaded is freed when the last request that uses it is answered.
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "serve/folder_watch.h"
#include "serve/model.h"
#include "serve/model_config.h"
#include "serve/version_folder.h"
#include "serve/versions.h"

namespace slipway::serve {

struct ModelManagerOptions {
  Duration poll_interval = 1s;  // 0: folders are read once
  RetryPolicy retry = {};
  bool allows_labels_for_unavailable = false;
};

struct NewestVersion {};
struct ExactVersion {
  std::int64_t number;
};
struct LabelledVersion {
  std::string label;
};
using VersionChoice = std::variant<NewestVersion, ExactVersion, LabelledVersion>;

struct ServedModel {
  std::int64_t version = 0;
  std::shared_ptr<const Model> model;
};

class ModelManager {
 public:
  ModelManager(ModelManagerOptions options, const Clock& clock);
  ModelManager(const ModelManager&) = delete;
  ModelManager& operator=(const ModelManager&) = delete;
  ~ModelManager();

  // Replaces what is served, and returns when every model that can be loaded is. Where a label points at a
  // version that is not available, the whole configuration is refused and the one before stays.
  Answer<void> apply(const ServerConfig& config);

  // Called from any thread. `Servable not found for request: Latest(m)` when there is none.
  Answer<ServedModel> find(const std::string& name, const VersionChoice& choice) const;
  Answer<std::vector<VersionStatus>> status(const std::string& name,
                                            std::optional<std::int64_t> version) const;
  std::vector<std::string> model_names() const;
  std::vector<std::int64_t> available_versions(const std::string& name) const;
  bool is_ready() const;  // every model has a version to answer with

 private:
  struct Entry {
    ModelConfig config;
    std::map<std::string, std::int64_t> labels;  // in force
    ModelVersions versions;
    std::map<std::int64_t, VersionFolder> folders;
    std::map<std::int64_t, std::shared_ptr<const Model>> loaded;
    std::map<std::int64_t, std::weak_ptr<const Model>> draining;
    std::map<std::int64_t, FileStamp> failed_stamps;
    bool is_removed = false;
    bool is_listed = false;
    bool was_missing = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  void run(const std::stop_token& stop);
  void set_models(const ServerConfig& config);
  Answer<void> set_labels(const ServerConfig& config);
  void list(Lock& lock);
  void take_listing(Entry& entry, BaseFolder base);
  bool advance(Lock& lock);
  bool advance(const std::string& name, Entry& entry, Lock& lock);
  void load(const std::string& name, std::int64_t number, Lock& lock);
  void free_drained(Entry& entry);
  bool is_settled() const;

  ModelManagerOptions options_;
  const Clock& clock_;
  std::shared_ptr<FolderWatch> watch_;  // shared with models, whose end wakes the thread
  mutable std::mutex mutex_;
  std::condition_variable settled_;
  std::map<std::string, Entry, std::less<>> models_;  // guarded by mutex_
  ServerConfig config_;                               // guarded by mutex_
  std::vector<std::shared_ptr<const Model>> cold_;    // guarded by mutex_; served, and not warmed up yet
  bool must_list_ = false;                            // guarded by mutex_
  std::mutex applying_;                               // one configuration at a time
  std::jthread thread_;
};

}  // namespace slipway::serve
