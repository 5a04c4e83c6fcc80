#pragma once
// Tokens that the processes of a task find in their environment, to track what they do: they are taken by the
// compatibility APIs that track, and nowhere else. Nothing of them is stored: a token says whose it is, and
// is signed. It holds for as long as its job has not ended, also through restarts of the service.
//
// On the network's thread.
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/seal.h"
#include "domain/protocol.h"
#include "domain/records.h"

namespace slipway::api {

struct TrackedTask {
  std::string workspace;
  JobId job;
  std::string task;  // its name

  // The run that the task logs to: the same for all of its attempts.
  std::string run() const;
};
// Of a caller who showed such a token, by the id of that.
std::optional<TrackedTask> task_of_token(const std::string& workspace, std::string_view token_id);

class TaskTokens {
 public:
  explicit TaskTokens(const Sealer& sealer) : sealer_(sealer) {}

  void job_lives(JobId job) { live_.insert(job); }
  void job_ended(JobId job);

  // Where and what to track goes to each process that starts, but where its user said it otherwise: MLFLOW_….
  // `url`: as nodes reach the service; empty: nothing is given.
  void give(Orders& orders, const std::string& url);
  std::string make(const TrackedTask& task) const;
  // nullptr: it is none, or its job has ended. The address holds until the job ends.
  const TokenRecord* find(const std::string& secret);

 private:
  const Sealer& sealer_;
  std::set<JobId> live_;
  std::unordered_map<std::string, TokenRecord> shown_;  // by secret: those that were checked
};

}  // namespace slipway::api
