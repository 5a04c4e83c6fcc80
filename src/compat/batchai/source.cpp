#include "compat/batchai/source.h"

#include <set>

#include "control/find_job.h"

namespace slipway::batchai {
namespace {

class InTurn final : public Source {
 public:
  InTurn(control::Controller& controller, const control::Caller& caller)
      : controller_(controller), caller_(caller) {}

  const FolderRecord* folder(const std::string& path) override { return controller_.folder(caller_, path); }
  std::vector<FolderRecord> folders(const std::string& prefix) override {
    return controller_.folders(caller_, prefix);
  }
  void expect_folders(const std::string&) override {}
  std::vector<PoolView> pools() override { return controller_.pools(caller_); }
  std::vector<NodeView> nodes(const std::string& pool) override { return controller_.nodes(caller_, pool); }
  std::optional<NodeView> node(const std::string& name) override {
    auto found = controller_.node(caller_, name);
    return found ? std::optional(std::move(*found)) : std::nullopt;
  }
  std::optional<DatastoreRecord> datastore(const std::string& name) override {
    auto found = controller_.datastore(caller_, name);
    return found ? std::optional(std::move(*found)) : std::nullopt;
  }
  Result<JobRecord> find_job(const std::string& id) override { return controller_.find_job(caller_, id); }
  Result<std::optional<JobRecord>> job_by_tag(const std::string& name, const std::string& value) override {
    return controller_.find_job_by_tag(caller_, name, value);
  }
  Result<std::vector<JobRecord>> jobs_by_tag(const std::string& name, const std::string& value,
                                             std::optional<JobId> after, std::uint32_t limit) override {
    return controller_.jobs_by_tag(caller_, name, value, after, limit);
  }
  Result<std::vector<std::vector<AttemptRecord>>> attempts_of(const std::vector<TaskRef>& tasks) override {
    return controller_.attempts_of(tasks);
  }

 private:
  control::Controller& controller_;
  control::Caller caller_;
};

class Saved final : public Source {
 public:
  Saved(control::ReadStore& store, std::shared_ptr<const control::Snapshot> live,
        const control::Caller& caller)
      : store_(store), live_(std::move(live)), workspace_(caller.workspace) {}

  const FolderRecord* folder(const std::string& path) override {
    const auto known = known_.find(path);
    if (known != known_.end()) return known->second ? &*known->second : nullptr;
    for (const std::string& prefix : expected_)
      if (path.starts_with(prefix)) return nullptr;
    const auto [at, added] = known_.emplace(path, take(store_.folder(workspace_, path)));
    return at->second ? &*at->second : nullptr;
  }
  std::vector<FolderRecord> folders(const std::string& prefix) override {
    return take(store_.folders(workspace_, prefix));
  }
  void expect_folders(const std::string& prefix) override {
    if (!expected_.insert(prefix).second) return;
    for (FolderRecord& one : folders(prefix)) {
      std::string path = one.path;
      known_.insert_or_assign(std::move(path), std::move(one));
    }
  }
  std::vector<PoolView> pools() override { return live_->pools_of(workspace_); }
  std::vector<NodeView> nodes(const std::string& pool) override { return live_->nodes_of(workspace_, pool); }
  std::optional<NodeView> node(const std::string& name) override {
    auto found = live_->node(workspace_, name);
    return found ? std::optional(std::move(*found)) : std::nullopt;
  }
  std::optional<DatastoreRecord> datastore(const std::string& name) override {
    return take(store_.datastore(workspace_, name));
  }
  Result<JobRecord> find_job(const std::string& id) override {
    return control::find_job(store_, workspace_, id);
  }
  Result<std::optional<JobRecord>> job_by_tag(const std::string& name, const std::string& value) override {
    return store_.job_by_tag(workspace_, name, value);
  }
  Result<std::vector<JobRecord>> jobs_by_tag(const std::string& name, const std::string& value,
                                             std::optional<JobId> after, std::uint32_t limit) override {
    return store_.jobs({.workspace = workspace_,
                        .state = {},
                        .name = {},
                        .before = {},
                        .limit = limit,
                        .tags = {{name, value}},
                        .after = after.value_or(JobId{0})});
  }
  Result<std::vector<std::vector<AttemptRecord>>> attempts_of(const std::vector<TaskRef>& tasks) override {
    return store_.attempts_of(tasks);
  }
  std::optional<Error> problem() const override { return problem_; }

 private:
  template <class T>
  T take(Result<T> result) {
    if (result) return std::move(*result);
    if (!problem_) problem_ = result.error();
    return T{};
  }

  control::ReadStore& store_;
  std::shared_ptr<const control::Snapshot> live_;
  std::string workspace_;
  std::map<std::string, std::optional<FolderRecord>> known_;
  std::set<std::string> expected_;
  std::optional<Error> problem_;
};

}  // namespace

std::unique_ptr<Source> source_in_turn(control::Controller& controller, const control::Caller& caller) {
  return std::make_unique<InTurn>(controller, caller);
}
std::unique_ptr<Source> source_of_saved(control::ReadStore& store,
                                        std::shared_ptr<const control::Snapshot> live,
                                        const control::Caller& caller) {
  return std::make_unique<Saved>(store, std::move(live), caller);
}

}  // namespace slipway::batchai
