#pragma once
// For tests of the commands under `slipway batchai`: a service with workspace lab and experiment first in it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "cli/testing.h"
#include "wire/json.h"

namespace slipway::cli {

using wire::Json;
using ExchangePtr = std::shared_ptr<net::Exchange>;

inline constexpr const char* lab =
    "/subscriptions/default/resourceGroups/default/providers/Microsoft.BatchAI/workspaces/lab";
inline const std::string clusters = std::string(lab) + "/clusters";
inline const std::string jobs = std::string(lab) + "/experiments/first/jobs";

inline std::string cluster_json(const std::string& name, const std::string& more = "") {
  return fmt::format(
      R"({{"id":"{0}/{1}","name":"{1}","type":"Microsoft.BatchAI/workspaces/clusters","properties":{{"vmSize":"STANDARD_NC6",)"
      R"("provisioningState":"succeeded","allocationState":"steady","scaleSettings":{{"manual":{{"targetNodeCount":2}}}},)"
      R"("userAccountSettings":{{"adminUserName":"ana"}},{2}"nodeStateCounts":{{"idleNodeCount":1,"runningNodeCount":2,)"
      R"("preparingNodeCount":3,"unusableNodeCount":5,"leavingNodeCount":4}}}}}})",
      clusters, name, more);
}

inline std::string job_json(const std::string& state, const std::string& info = "") {
  return fmt::format(
      R"({{"id":"{}/fit","name":"fit","properties":{{"cluster":{{"id":"{}/nc6"}},"toolType":"custom","nodeCount":2,)"
      R"("creationTime":"2018-06-07T21:16:21Z","provisioningState":"succeeded","executionState":"{}"{}}}}})",
      jobs, clusters, state, info);
}

// Nobody's settings are in sight.
class BatchAi : public ::testing::Test {
 protected:
  BatchAi() {
    for (const char* name : {"AZURE_SUBSCRIPTION_ID", "AZURE_STORAGE_ACCOUNT",
                             "AZURE_BATCHAI_STORAGE_ACCOUNT", "AZURE_BATCHAI_STORAGE_KEY"})
      ::unsetenv(name);
    home.write(".ssh/id_rsa.pub", "ssh-rsa AAAA ana@lab\n");
    ::setenv("HOME", home.path().c_str(), 1);
    service.on(std::string("GET ") + lab, 200, R"({"name":"lab","location":"eastus"})");
    service.on(std::string("GET ") + lab + "/experiments/first", 200, R"({"name":"first"})");
  }
  // A cluster or job that can be made.
  void offer(const std::string& path, const std::string& answered) {
    service.on("PUT " + path, 200, answered);
  }
  Json sent(const std::string& what) const {
    const std::string body = service.body_of(what);
    return body.empty() ? Json() : Json::parse(body);
  }
  Ran run(std::vector<std::string> words) const {
    words.insert(words.end(), {"--data", data.path()});
    return service.run(words);
  }

  FakeService service;
  TemporaryFolder home, data;
};

}  // namespace slipway::cli
