// The command lines written for az batchai, against a service made of a table of answers.
#include <atomic>

#include "cli/az/testing.h"

namespace slipway::cli {
namespace {

TEST_F(BatchAi, LoginNamesTheServiceAndTheUser) {
  service.on("GET /v1/service", 200, R"({"url":"x","user":"ana"})");
  const Ran ran = run({"login", "-u", "me", "-p", "secret"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("The service is " + service.url() + "; you are ana, by the token in "),
            std::string::npos)
      << ran.err;
  EXPECT_EQ(Json::parse(ran.out)[0]["user"]["name"], "ana");
}

TEST_F(BatchAi, FlagsOfOtherCommandsAreDroppedWithANote) {
  service.on("DELETE " + clusters + "/nc6", 200, "");
  const Ran ran = run({"batchai", "cluster", "delete", "-w", "lab", "-e", "first", "--name", "nc6", "-y"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "note:  -e is not used by slipway batchai cluster delete\n");
  EXPECT_EQ(run({"batchai", "cluster", "delete", "--nonsense", "x", "--name", "nc6", "-y"}).code, 2);
}

TEST_F(BatchAi, DeletingWhatDoesNotExistPrintsANote) {
  service.on("DELETE " + jobs + "/fit", 204, "");
  const Ran ran = run({"batchai", "job", "delete", "-w", "lab", "-e", "first", "-n", "fit", "-y"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "note:  there is no fit: nothing was deleted\n");
}

TEST_F(BatchAi, TablesHaveAzuresColumns) {
  service.on("GET " + clusters, 200, R"({"value":[)" + cluster_json("nc6") + R"(]})");
  service.on("GET " + jobs, 200,
             R"({"value":[)" + job_json("failed", R"(,"executionInfo":{"exitCode":3})") + R"(]})");
  EXPECT_EQ(run({"batchai", "cluster", "list", "-w", "lab", "-o", "table"}).out,
            "Name    Resource Group    Workspace    VM Size       State      Idle    Running    Preparing"
            "    Leaving    Unusable\n"
            "------  ----------------  -----------  ------------  -------  ------  ---------  -----------"
            "  ---------  ----------\n"
            "nc6     default           lab          STANDARD_NC6  steady        1          2            3"
            "          4           5\n");
  EXPECT_EQ(run({"batchai", "job", "list", "-w", "lab", "-e", "first", "-o", "table"}).out,
            "Name    Cluster    Cluster RG    Cluster Workspace    Tool      Nodes  State      Exit code\n"
            "------  ---------  ------------  -------------------  ------  -------  -------  -----------\n"
            "fit     nc6        default       lab                  custom        2  failed             3\n");
}

TEST_F(BatchAi, FollowsThePages) {
  service.on("GET " + clusters, [&](const ExchangePtr& exchange) {
    const bool second = exchange->request().parameter("$skiptoken").has_value();
    const std::string next = second ? ""
                                    : fmt::format(R"(,"nextLink":"{}{}?api-version=2018-05-01&$skiptoken=2")",
                                                  service.url(), clusters);
    exchange->send(
        json_response(200, fmt::format(R"({{"value":[{}]{}}})", cluster_json(second ? "b" : "a"), next)));
  });
  EXPECT_EQ(run({"batchai", "cluster", "list", "-w", "lab", "-o", "quiet"}).out, "a\nb\n");
  EXPECT_EQ(run({"batchai", "cluster", "list", "-w", "lab", "--query", "[].name", "-o", "tsv"}).out,
            "a\nb\n");
  EXPECT_EQ(run({"batchai", "cluster", "list", "-w", "lab", "-o", "none"}).out, "");
}

TEST_F(BatchAi, ShowsEveryFieldAndTheGroup) {
  service.on("GET " + clusters + "/nc6", 200, cluster_json("nc6"));
  const Ran ran = run({"batchai", "cluster", "show", "-w", "lab", "-n", "nc6"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json shown = Json::parse(ran.out);
  EXPECT_EQ(shown["resourceGroup"], "default");
  EXPECT_EQ(shown["vmSize"], "STANDARD_NC6");
  EXPECT_TRUE(shown.contains("subnet") && shown["subnet"].is_null());
  EXPECT_TRUE(shown["scaleSettings"].contains("autoScale") && shown["scaleSettings"]["autoScale"].is_null());
  EXPECT_EQ(shown["scaleSettings"]["manual"]["targetNodeCount"], 2);
  EXPECT_FALSE(shown.contains("properties"));
  EXPECT_EQ(run({"batchai", "cluster", "show", "-w", "lab", "-n", "nc6", "--query",
                 "{n: name, idle: nodeStateCounts.idleNodeCount, on: subnet}", "-o", "tsv"})
                .out,
            "nc6\t1\tNone\n");
  EXPECT_EQ(run({"batchai", "cluster", "show", "-w", "lab", "-n", "nc6", "--query", "subnet.id"}).out, "");
}

TEST_F(BatchAi, MissingResourceExitsThree) {
  service.on("GET " + jobs + "/gone", 404,
             R"({"error":{"code":"JobNotFound","message":"The specified job was not found.","details":[)"
             R"({"code":"x","target":"name","message":"gone"}]}})");
  const Ran ran = run({"batchai", "job", "show", "-w", "lab", "-e", "first", "-n", "gone"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "error: The specified job was not found.\nwhy:   name: gone\n");
}

TEST_F(BatchAi, ClusterCreateFromFlags) {
  offer(clusters + "/nc6", cluster_json("nc6"));
  const Ran ran = run({"batchai",
                       "cluster",
                       "create",
                       "-w",
                       "lab",
                       "-n",
                       "nc6",
                       "-i",
                       "UbuntuDSVM",
                       "-s",
                       "Standard_NC6",
                       "--min",
                       "2",
                       "--max",
                       "2",
                       "--afs-name",
                       "batchaisample",
                       "--afs-mount-path",
                       "external",
                       "-u",
                       "ana",
                       "-k",
                       home.path(".ssh/id_rsa.pub")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(sent("PUT " + clusters + "/nc6"), Json::parse(R"({"properties":{"vmSize":"Standard_NC6",
    "scaleSettings":{"manual":{"targetNodeCount":2}},
    "virtualMachineConfiguration":{"imageReference":{"publisher":"microsoft-ads",
      "offer":"linux-data-science-vm-ubuntu","sku":"linuxdsvmubuntu","version":"latest"}},
    "userAccountSettings":{"adminUserName":"ana","adminUserSshPublicKey":"ssh-rsa AAAA ana@lab"},
    "nodeSetup":{"mountVolumes":{"azureFileShares":[{"accountName":"default",
      "azureFileUrl":"https://default.file.core.windows.net/batchaisample","credentials":{},
      "relativeMountPath":"external"}]}}}})"));
}

TEST_F(BatchAi, CommandsOfTheFirstVersionNeedNoWorkspace) {
  const std::string usual =
      "/subscriptions/default/resourceGroups/default/providers/Microsoft.BatchAI/workspaces/default";
  service.on("PUT " + usual, 200, "{}");
  service.on("PUT " + usual + "/experiments/default", 200, "{}");
  service.on("PUT " + usual + "/clusters/nc6", 200, cluster_json("nc6"));
  service.on("PUT " + usual + "/experiments/default/jobs/fit", 200, job_json("queued"));
  Ran ran = run({"batchai",
                 "cluster",
                 "create",
                 "-n",
                 "nc6",
                 "-i",
                 "UbuntuDSVM",
                 "-s",
                 "Standard_NC6",
                 "--min",
                 "2",
                 "--max",
                 "2",
                 "--afs-name",
                 "batchaisample",
                 "--afs-mount-path",
                 "external",
                 "-u",
                 "ana",
                 "-k",
                 home.path(".ssh/id_rsa.pub")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "") << "nobody asked for the usual workspace, so nothing is said of it";
  service.on("GET " + usual + "/clusters/nc6", 200, cluster_json("nc6"));
  data.write("job.json", R"({"properties":{"nodeCount":2,"customToolkitSettings":{"commandLine":"ls"},)"
                         R"("stdOutErrPathPrefix":"$AZ_BATCHAI_MOUNT_ROOT/external"}})");
  ran = run({"batchai", "job", "create", "-n", "fit", "--cluster-name", "nc6", "-c", data.path("job.json")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(service.body_of("PUT " + usual + "/experiments/default"), "");
}

TEST_F(BatchAi, ClusterCreateWithPasswordAndAccount) {
  offer(clusters + "/my_cluster", cluster_json("my_cluster"));
  const Ran ran = run({"batchai",
                       "cluster",
                       "create",
                       "-l",
                       "eastus",
                       "-w",
                       "lab",
                       "--name",
                       "my_cluster",
                       "--vm-size",
                       "STANDARD_NC6",
                       "--image",
                       "UbuntuLTS",
                       "--min",
                       "0",
                       "--max",
                       "4",
                       "--storage-account-name",
                       "my_storage_account",
                       "--storage-account-key",
                       "KEY",
                       "--afs-name",
                       "my_fileshare",
                       "--afs-mount-path",
                       "azurefileshare",
                       "--user-name",
                       "me",
                       "--password",
                       "pw",
                       "--nfs",
                       "files"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json properties = sent("PUT " + clusters + "/my_cluster")["properties"];
  EXPECT_EQ(properties["userAccountSettings"],
            Json::parse(R"({"adminUserName":"me","adminUserPassword":"pw"})"));
  EXPECT_EQ(properties["scaleSettings"],
            Json::parse(R"({"autoScale":{"minimumNodeCount":0,"maximumNodeCount":4,"initialNodeCount":0}})"));
  const Json& volumes = properties["nodeSetup"]["mountVolumes"];
  EXPECT_EQ(volumes["azureFileShares"][0]["credentials"], Json::parse(R"({"accountKey":"KEY"})"));
  EXPECT_EQ(volumes["fileServers"][0],
            Json::parse(R"({"fileServer":{"id":")" + std::string(lab) +
                        R"(/fileServers/files"},"relativeMountPath":"nfs","mountOptions":"rw"})"));
}

TEST_F(BatchAi, MissingWorkspaceAndExperimentAreCreated) {
  const std::string other =
      "/subscriptions/default/resourceGroups/default/providers/Microsoft.BatchAI/workspaces/new";
  service.on("PUT " + other, 200, R"({"name":"new"})");
  offer(other + "/clusters/c", cluster_json("c"));
  const Ran ran =
      run({"batchai", "cluster", "create", "-w", "new", "-n", "c", "-s", "x", "-t", "1", "-l", "eastus"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("workspace new was not there: it is made"), std::string::npos) << ran.err;
  EXPECT_EQ(sent("PUT " + other), Json::parse(R"({"location":"eastus"})"));
  // Nobody asked for the usual ones, so nothing is said of them; and a list of them is empty before they are
  // there.
  EXPECT_EQ(run({"batchai", "cluster", "list"}).out, "[]\n");
  EXPECT_EQ(run({"batchai", "cluster", "list", "-w", "none"}).code, 1);
}

TEST_F(BatchAi, InvalidClusterIsExplained) {
  service.on("GET " + clusters + "/old", 200, cluster_json("old"));
  struct Row {
    std::vector<std::string> more;
    int code;
    const char* error;
  };
  const Row rows[] = {
      {{"-n", "c", "-t", "1"}, 2, "error: --vm-size is missing"},
      {{"-n", "c", "-s", "x"}, 2, "error: the size of the cluster is missing"},
      {{"-n", "c", "-s", "x", "--min", "1"}, 2, "error: --min and --max go together"},
      {{"-n", "c", "-s", "x", "--min", "3", "--max", "1"}, 2, "error: --min 3 is more than --max 1"},
      {{"-n", "c", "-s", "x", "-t", "1", "-i", "Windows"}, 2, "error: --image: 'Windows' is no image"},
      {{"-n", "c", "-s", "x", "-t", "1", "--custom-image", "i"}, 2, "error: --custom-image needs"},
      {{"-n", "c", "-s", "x", "-t", "1", "--setup-task", "ls"},
       2,
       "error: --setup-task and --setup-task-output"},
      {{"-n", "c", "-s", "x", "-t", "1", "-k", "nonsense"},
       2,
       "error: -k: 'nonsense' is neither a public key"},
      {{"-n", "c", "-s", "x", "-t", "1", "-f", "/nonexistent.json"},
       1,
       "error: cannot open /nonexistent.json"},
      {{"-n", "old", "-s", "x", "-t", "1"}, 1, "error: there is a cluster old already"},
      {{"-s", "x", "-t", "1"}, 2, "error: -n is missing"},
  };
  for (const Row& row : rows) {
    std::vector<std::string> words{"batchai", "cluster", "create", "-w", "lab"};
    words.insert(words.end(), row.more.begin(), row.more.end());
    SCOPED_TRACE(row.error);
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, row.code);
    EXPECT_TRUE(ran.err.starts_with(row.error)) << ran.err;
  }
  EXPECT_TRUE(service.seen("PUT").empty());
}

TEST_F(BatchAi, JobCreateFromFilesOfAnyVersion) {
  service.on("GET " + clusters + "/nc6", 200, cluster_json("nc6"));
  offer(jobs + "/fit", job_json("queued"));
  data.write("job.json",
             R"({"$schema":"x","properties":{"nodeCount":3,"priority":5,"colour":"red","toolType":"custom",
    "customToolkitSettings":{"commandLine":"ls"},"stdOutErrPathPrefix":"$AZ_BATCHAI_MOUNT_ROOT/external",
    "outputDirectories":[{"id":"M","pathPrefix":"p","type":"model","createNew":true}],
    "mountVolumes":{"azureFileShares":[{"azureFileUrl":"https://<AZURE_BATCHAI_STORAGE_ACCOUNT>.file.core.windows.net/logs",
      "relativeMountPath":"logs"}],"azureBlobFileSystems":[{"accountName":"<AZURE_BATCHAI_STORAGE_ACCOUNT>",
      "containerName":"c","credentialsInfo":{"accountKey":"<AZURE_BATCHAI_STORAGE_KEY>"},"relativeMountPath":"b"}]}}})");
  const std::string file = data.path("job.json");
  const std::vector<std::string> begin{"batchai", "job", "create", "-w", "lab", "-e", "first", "-n", "fit"};
  const std::vector<std::vector<std::string>> ways = {{"--cluster-name", "nc6", "-c", file},
                                                      {"-c", "nc6", "-f", file},
                                                      {"-c", clusters + "/nc6", "--config-file", file},
                                                      {"--cluster-name", "nc6", "--config", file},
                                                      {"-c", file, "-r", "nc6"}};
  for (const std::vector<std::string>& way : ways) {
    SCOPED_TRACE(way[0] + way[2]);
    std::vector<std::string> words = begin;
    words.insert(words.end(), way.begin(), way.end());
    words.insert(words.end(), {"--storage-account-name", "lab", "--storage-account-key", "K"});
    const Ran ran = run(words);
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.err.find("colour is unknown"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("the job asks for 3 nodes and the cluster has at most 2"), std::string::npos)
        << ran.err;
    EXPECT_EQ(sent("PUT " + jobs + "/fit"),
              Json::parse(R"({"properties":{"nodeCount":3,"schedulingPriority":"high",
      "colour":"red","customToolkitSettings":{"commandLine":"ls"},
      "stdOutErrPathPrefix":"$AZ_BATCHAI_MOUNT_ROOT/external","outputDirectories":[{"id":"M","pathPrefix":"p"}],
      "mountVolumes":{"azureFileShares":[{"azureFileUrl":"https://lab.file.core.windows.net/logs",
        "relativeMountPath":"logs","accountName":"lab","credentials":{"accountKey":"K"}}],
        "azureBlobFileSystems":[{"accountName":"lab","containerName":"c","credentials":{"accountKey":"K"},
        "relativeMountPath":"b"}]},"cluster":{"id":")" +
                          clusters + R"(/nc6"}}})"));
  }
  std::vector<std::string> words = begin;
  words.insert(words.end(), {"-c", "nc6", "-f", file});
  const Ran without = run(words);
  EXPECT_EQ(without.code, 2);
  EXPECT_NE(without.err.find("needs a storage account"), std::string::npos) << without.err;
}

TEST_F(BatchAi, AcceptedOperationsArePolled) {
  std::atomic<int> asked = 0;
  service.on("GET " + clusters + "/c", [&](const ExchangePtr& exchange) {
    exchange->send(asked < 2 ? json_response(404, "{}") : json_response(200, cluster_json("c")));
  });
  const auto accept = [&](const ExchangePtr& exchange) {
    exchange->send(
        {202, {{"Azure-AsyncOperation", service.url() + "/operations/1?api-version=2018-05-01"}}, ""});
  };
  service.on("PUT " + clusters + "/c", accept);
  service.on("DELETE " + clusters + "/c", accept);
  service.on("GET /operations/1", [&](const ExchangePtr& exchange) {
    exchange->send(
        json_response(200, ++asked < 2 ? R"({"status":"InProgress"})" : R"({"status":"Succeeded"})"));
  });
  const Ran made = run({"batchai", "cluster", "create", "-w", "lab", "-n", "c", "-s", "x", "-t", "1"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(Json::parse(made.out)["name"], "c");
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(run({"batchai", "cluster", "delete", "-w", "lab", "-n", "c", "-y"}).code, 0);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(run({"batchai", "cluster", "delete", "-w", "lab", "-n", "c", "-y", "--no-wait"}).code, 0);
  EXPECT_EQ(asked, 3);
  service.on("GET /operations/1", 200, R"({"status":"Failed","error":{"code":"X","message":"no capacity"}})");
  const Ran failed = run({"batchai", "cluster", "delete", "-w", "lab", "-n", "c", "-y"});
  EXPECT_EQ(failed.code, 1);
  EXPECT_EQ(failed.err, "error: no capacity\n");
}

TEST_F(BatchAi, ScalesAndTerminates) {
  service.on("PATCH " + clusters + "/c", 200, cluster_json("c"));
  EXPECT_EQ(run({"batchai", "cluster", "resize", "-w", "lab", "-n", "c", "-t", "0"}).code, 0);
  EXPECT_EQ(sent("PATCH " + clusters + "/c"),
            Json::parse(R"({"properties":{"scaleSettings":{"manual":{"targetNodeCount":0}}}})"));
  EXPECT_EQ(
      run({"batchai", "cluster", "auto-scale", "-w", "lab", "-n", "c", "--min", "0", "--max", "3"}).code, 0);
  EXPECT_EQ(
      sent("PATCH " + clusters + "/c"),
      Json::parse(
          R"({"properties":{"scaleSettings":{"autoScale":{"minimumNodeCount":0,"maximumNodeCount":3}}}})"));
  service.on("POST " + jobs + "/fit/terminate", 200, "");
  EXPECT_EQ(run({"batchai", "job", "terminate", "-w", "lab", "-e", "first", "-n", "fit", "-y"}).code, 0);
}

TEST_F(BatchAi, KeepsDefaultsAndGroups) {
  ASSERT_EQ(run({"group", "create", "--name", "myGroup", "--location", "eastus"}).code, 0);
  ASSERT_EQ(run({"configure", "--defaults", "group=myGroup", "workspace=lab"}).code, 0);
  service.on(
      "GET /subscriptions/default/resourceGroups/myGroup/providers/Microsoft.BatchAI/workspaces/lab/clusters",
      200, R"({"value":[]})");
  EXPECT_EQ(run({"batchai", "cluster", "list"}).out, "[]\n");
  EXPECT_EQ(run({"configure", "--list-defaults", "-o", "tsv"}).out,
            "group\taz-defaults.json\tmyGroup\nworkspace\taz-defaults.json\tlab\n");
  service.on("GET /subscriptions/default/providers/Microsoft.BatchAI/workspaces", 200,
             R"({"value":[{"id":"/subscriptions/default/resourcegroups/other/x","location":"west"}]})");
  EXPECT_EQ(run({"group", "list", "--query", "[].[name, location]", "-o", "tsv"}).out,
            "myGroup\teastus\nother\twest\n");
  EXPECT_EQ(run({"group", "show", "-n", "nobody"}).code, 3);
  EXPECT_EQ(run({"group", "show", "-n", "mygroup", "--query", "location", "-o", "tsv"}).out, "eastus\n");
  EXPECT_EQ(run({"configure", "--defaults", "group="}).code, 0);
  EXPECT_EQ(run({"configure", "-l", "-o", "quiet"}).out, "workspace\n");
  EXPECT_EQ(run({"configure", "--defaults", "colour=red"}).code, 2);
  EXPECT_EQ(run({"provider", "register", "-n", "Microsoft.BatchAI"}).code, 0);
  EXPECT_EQ(run({"provider", "show", "-n", "Microsoft.None"}).code, 3);
  EXPECT_EQ(run({"group", "delete", "-n", "nobody", "-y"}).code, 3);
  EXPECT_EQ(run({"group", "list", "--query", "[?name=='x"}).code, 2);
}

TEST_F(BatchAi, ListsWorkspacesExperimentsAndUsages) {
  const std::string all = "/subscriptions/s1/providers/Microsoft.BatchAI/";
  service.on(
      "GET " + all + "workspaces", 200,
      R"({"value":[{"id":"/subscriptions/s1/resourceGroups/g/providers/x/workspaces/w","name":"w","location":"eastus",)"
      R"("properties":{"provisioningState":"succeeded"}}]})");
  service.on(
      "GET " + all + "locations/local/usages", 200,
      R"({"value":[{"currentValue":2,"limit":-1,"name":{"value":"Clusters","localizedValue":"Clusters"}}]})");
  EXPECT_EQ(run({"batchai", "workspace", "list", "--subscription", "s1", "-o", "table"}).out,
            "Name    Resource Group    Location    State\n"
            "------  ----------------  ----------  ---------\n"
            "w       g                 eastus      succeeded\n");
  EXPECT_EQ(run({"batchai", "list-usages", "--subscription", "s1", "-o", "table"}).out,
            "Value       Usage    Limit\n"
            "--------  -------  -------\n"
            "Clusters        2       -1\n");
}

TEST_F(BatchAi, HelpStartsWithAnExample) {
  const std::vector<std::vector<std::string>> commands = {{"batchai"},
                                                          {"batchai", "workspace"},
                                                          {"batchai", "workspace", "create"},
                                                          {"batchai", "experiment", "delete"},
                                                          {"batchai", "cluster"},
                                                          {"batchai", "cluster", "create"},
                                                          {"batchai", "cluster", "node", "exec"},
                                                          {"batchai", "cluster", "file", "list"},
                                                          {"batchai", "job", "create"},
                                                          {"batchai", "job", "file", "stream"},
                                                          {"batchai", "job", "node", "list"},
                                                          {"batchai", "file-server", "create"},
                                                          {"batchai", "list-usages"},
                                                          {"storage"},
                                                          {"storage", "share", "create"},
                                                          {"storage", "file", "upload-batch"},
                                                          {"storage", "blob", "list"},
                                                          {"group", "create"},
                                                          {"configure"},
                                                          {"provider", "register"},
                                                          {"datastore"},
                                                          {"datastore", "upload"}};
  for (std::vector<std::string> words : commands) {
    words.push_back("--help");
    const Ran ran = run_cli(words);
    EXPECT_EQ(ran.code, 0);
    EXPECT_TRUE(ran.out.starts_with("Example:\n  slipway ")) << ran.out;
    EXPECT_EQ(ran.out.find("list-nodes"), std::string::npos) << "an old spelling is shown";
  }
}

TEST_F(BatchAi, FileErrorsHaveLines) {
  service.on("GET " + std::string(lab), 200, "{}");
  service.on("GET " + std::string(lab) + "/experiments/first", 200, "{}");
  service.on("GET " + jobs + "/fit", 404, R"({"error":{"code":"JobNotFound","message":"none"}})");
  service.on("GET " + clusters + "/nc6", 200, cluster_json("nc6"));
  service.on("PUT " + jobs + "/fit", 400,
             R"({"error":{"code":"InvalidRequestBody","message":"properties.nodeCount is 'two', and 1 more",)"
             R"("details":[{"target":"properties.nodeCount","message":"properties.nodeCount is 'two'"},)"
             R"({"target":"properties.inputDirectories[1].id","message":)"
             R"("line 1: properties.inputDirectories[1].id is required"}]}})");
  home.write("job.json",
             "{\n\"properties\": {\n\"nodeCount\": \"two\",\n\"stdOutErrPathPrefix\": \"/x\",\n"
             "\"inputDirectories\": [\n{\"id\": \"A\", \"path\": \"/a\"},\n{\"path\": \"/b\"}]}}\n");
  const std::string file = home.path("job.json");
  const Ran ran =
      run({"batchai", "job", "create", "-w", "lab", "-e", "first", "-n", "fit", "-c", "nc6", "-f", file});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find(file + ":3: properties.nodeCount is 'two', and 1 more"), std::string::npos)
      << ran.err;
  EXPECT_NE(ran.err.find(file + ":7: properties.inputDirectories[1].id is required"), std::string::npos)
      << ran.err;
}

}  // namespace
}  // namespace slipway::cli
