#pragma once
// The API itself: which request is answered how. Included by this folder's .cpp files only.
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "api/task_tokens.h"
#include "api/worker.h"
#include "compat/mlflow/artifacts.h"
#include "compat/mlflow/mlflow.h"
#include "compat/mlflow/paths.h"

namespace slipway::mlflow {

class Service final : public api::CompatApi {
 public:
  Service(api::CompatApiContext context, track::Tracker& tracker);

  bool answers(std::string_view path) const override { return is_ours(path); }
  Access access(const net::Request& head) const override;
  api::CompatBody body(const net::Request& head) const override;
  bool takes_basic() const override { return true; }
  std::vector<api::CompatRoute> routes() const override { return compat_routes(); }
  ReservedTags reserved_tags() const override { return {"mlflow.", "the MLflow API"}; }
  net::Response unauthorized() const override;
  net::Response denied(const Error& why) const override { return response_of(why); }
  void handle(const api::Call& call) override;

 private:
  // The run of the task that asks is made with the first thing it logs.
  void with_run(const api::Call& call, const api::TrackedTask& task);
  void dispatch(const api::Call& call);
  void call_route(const api::Call& call, const std::shared_ptr<const Target>& target);
  void read_series(const api::Call& call, SeriesAsked asked);
  // (artifact_calls.cpp)
  void call_artifact(const api::Call& call, const Target& target);
  void list_artifacts(const api::Call& call, const std::string& path, const std::string& below,
                      const std::string& root_uri);
  void send_artifact(const api::Call& call, const std::string& path);
  void put_artifact(const api::Call& call, const std::string& path);
  void remove_artifact(const api::Call& call, const std::string& path);
  Result<void> owns_artifact(const api::Call& call, const std::string& path) const;

  static void post(api::Worker& worker, const api::Call& call, std::function<void()> work);

  api::CompatApiContext context_;
  track::Tracker& tracker_;
  std::set<std::string> prepared_;   // workspaces that have their default experiment
  std::set<std::string> task_runs_;  // that are there; a bounded memory of it
  // These last, so that their work is finished before anything above goes. Changes are short; a search, a
  // long series or a disk must not keep them waiting.
  api::Worker changes_;
  api::Worker reads_;
  api::Worker files_;
};

}  // namespace slipway::mlflow
