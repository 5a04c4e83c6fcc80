#include "compat/batchai/body.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compat/batchai/examples_test.h"

namespace slipway::batchai {
namespace {

TEST(BatchAiBody, TenExamplesAreAcceptedWithoutSecrets) {
  for (const std::string& example : examples) {
    SCOPED_TRACE(example);
    const auto body = accept_body(Body::job, sent(example));
    ASSERT_TRUE(body.has_value()) << body.error().message;
    const Value kept = without_secrets(Body::job, *body);
    const std::string text = format(kept);
    for (const char* secret : {"sesame", "s3cret", "\"abc\""})
      EXPECT_EQ(text.find(secret), std::string::npos);
    // What is kept reads as the same again: it is what every GET shows. A secret variable without its value
    // is the one thing that could not be sent.
    Problems problems;
    EXPECT_EQ(format(read_body(Body::job, parse_stored(text), problems)), text);
    EXPECT_TRUE(problems.empty());
  }
}

TEST(BatchAiBody, AllProblemsAreReportedWithTheirLines) {
  const auto body = accept_body(Body::job, R"({"properties": {
 "nodeCount": 0,
 "cluster": {"id": 5},
 "secrets": [{"name": "A"}, {"name": "B", "valueSecretReference": {"secretUrl": "https://v/s"}}],
 "caffe2Settings": {"pythonScriptFilePath": "a.py"},
 "horovodSettings": {"pythonScriptFilePath": "b.py"},
 "constraints": {"maxWallClockTime": "soon"}
}})");
  ASSERT_FALSE(body.has_value());
  std::vector<std::string> targets;
  for (const auto& detail : body.error().details) targets.push_back(detail.target);
  std::sort(targets.begin(), targets.end());
  const std::vector<std::string> wanted{"properties",
                                        "properties.cluster.id",
                                        "properties.constraints.maxWallClockTime",
                                        "properties.nodeCount",
                                        "properties.secrets[0]",
                                        "properties.secrets[1].valueSecretReference",
                                        "properties.stdOutErrPathPrefix"};
  EXPECT_EQ(targets, wanted);
  EXPECT_EQ(body.error().code, "InvalidRequestBody");
  EXPECT_NE(body.error().message.find("line 3"), std::string::npos) << body.error().message;
}

TEST(BatchAiBody, RulesBetweenFields) {
  struct Row {
    const char* rule;
    Body kind;
    std::string body;
    std::string target;  // empty: it is taken
  };
  const std::string job = R"("cluster":{"id":"/x"},"stdOutErrPathPrefix":"/x",)";
  const std::string cluster = R"("vmSize":"cpu","userAccountSettings":{"adminUserName":"a"})";
  const Row rows[] = {
      {"a multiple of the nodes", Body::job,
       job + R"("nodeCount":2,"customMpiSettings":{"commandLine":"x","processCount":3})",
       "properties.customMpiSettings.processCount"},
      {"one parameter server a node", Body::job,
       job + R"("nodeCount":1,"tensorFlowSettings":{"pythonScriptFilePath":"x","parameterServerCount":2})",
       "properties.tensorFlowSettings.parameterServerCount"},
      {"script or configuration", Body::job, job + R"("nodeCount":1,"caffeSettings":{})",
       "properties.caffeSettings"},
      {"not both", Body::job,
       job + R"("nodeCount":1,"cntkSettings":{"configFilePath":"a","pythonScriptFilePath":"b"})",
       "properties.cntkSettings"},
      {"the language fits", Body::job,
       job + R"("nodeCount":1,"cntkSettings":{"configFilePath":"a","languageType":"python"})",
       "properties.cntkSettings.languageType"},
      {"a backend there is", Body::job,
       job + R"("nodeCount":1,"pyTorchSettings":{"pythonScriptFilePath":"x","communicationBackend":"smoke"})",
       "properties.pyTorchSettings.communicationBackend"},
      {"without case", Body::job,
       job +
           R"("nodeCount":1,"schedulingPriority":"High","pyTorchSettings":{"pythonScriptFilePath":"x","communicationBackend":"GLOO"})",
       ""},
      {"ids are unique", Body::job,
       job +
           R"("nodeCount":1,"customToolkitSettings":{},"outputDirectories":[{"id":"A","pathPrefix":"/x"},{"id":"a","pathPrefix":"/y"}])",
       "properties.outputDirectories[1].id"},
      {"mounts stay below the root", Body::job,
       job +
           R"("nodeCount":1,"customToolkitSettings":{},"mountVolumes":{"unmanagedFileSystems":[{"mountCommand":"m","relativeMountPath":"../x"}]})",
       "properties.mountVolumes.unmanagedFileSystems[0].relativeMountPath"},
      {"no toolkit", Body::job, job + R"("nodeCount":1)", "properties"},
      {"unknown keys and older ones", Body::job,
       job +
           R"("nodeCount":1,"toolType":"x","experimentName":"y","priority":-5,"customToolkitSettings":{"commandLine":"x","new":1},"outputDirectories":[{"id":"A","pathPrefix":"/x","type":"custom","createNew":true}])",
       ""},
      {"one way to scale", Body::cluster, cluster + R"(,"scaleSettings":{})", "properties.scaleSettings"},
      {"not two", Body::cluster,
       cluster +
           R"(,"scaleSettings":{"manual":{"targetNodeCount":1},"autoScale":{"minimumNodeCount":0,"maximumNodeCount":1}})",
       "properties.scaleSettings"},
      {"min is not above max", Body::cluster,
       cluster + R"(,"scaleSettings":{"autoScale":{"minimumNodeCount":3,"maximumNodeCount":1}})",
       "properties.scaleSettings.autoScale.minimumNodeCount"},
      {"none is none", Body::cluster, cluster, ""},
      {"capital letters", Body::cluster,
       cluster +
           R"(,"vmPriority":"LowPriority","scaleSettings":{"manual":{"targetNodeCount":"2","nodeDeallocationOption":"WaitForJobCompletion"}})",
       ""},
      {"a number that is none", Body::cluster,
       cluster + R"(,"scaleSettings":{"manual":{"targetNodeCount":1.5}})",
       "properties.scaleSettings.manual.targetNodeCount"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const auto body = accept_body(row.kind, "{\"properties\":{" + row.body + "}}");
    if (row.target.empty()) {
      EXPECT_TRUE(body.has_value()) << body.error().message;
    } else {
      ASSERT_FALSE(body.has_value());
      EXPECT_EQ(body.error().target, row.target) << body.error().message;
    }
  }
}

TEST(BatchAiBody, BodyThatIsNoObjectIsRejected) {
  for (const char* text : {"[", "[]", "5", "{\"properties\":[]}", "{\"properties\":{\"cluster\":[]}}"}) {
    const auto body = accept_body(Body::job, text);
    ASSERT_FALSE(body.has_value()) << text;
    EXPECT_EQ(body.error().status, 400);
    EXPECT_FALSE(body.error().message.empty());
  }
}

TEST(BatchAiBody, Periods) {
  struct Row {
    const char* text;
    std::int64_t seconds;  // -1: it is none
    const char* written;
  };
  const Row rows[] = {{"P7D", 604'800, "P7D"},
                      {"PT1H30M", 5'400, "PT1H30M"},
                      {"P1DT1S", 86'401, "P1DT1S"},
                      {"PT0.5S", 0, "PT0S"},
                      {"7.00:00:00", 604'800, "P7D"},
                      {"00:10:00", 600, "PT10M"},
                      {"P1W", 604'800, "P7D"},
                      {"P", -1, ""},
                      {"PT", -1, ""},
                      {"PT5", -1, ""},
                      {"P5S", -1, ""},
                      {"5 minutes", -1, ""},
                      {"PTinfS", -1, ""},
                      {"", -1, ""},
                      {"PT-5S", -1, ""}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const auto period = parse_period(row.text);
    ASSERT_EQ(period.has_value(), row.seconds >= 0);
    if (!period) continue;
    EXPECT_EQ(std::chrono::floor<std::chrono::seconds>(*period).count(), row.seconds);
    EXPECT_EQ(format_period(*period), row.written);
  }
}

}  // namespace
}  // namespace slipway::batchai
