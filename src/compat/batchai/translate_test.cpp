#include "compat/batchai/translate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compat/batchai/examples_test.h"
#include "compat/batchai/script.h"

namespace slipway::batchai {
namespace {

const std::string root(mount_root);
const ResourceId resource{"lab", "ML", "main", "digits", "hello"};
const FileServers servers{{"lab/ml/main/nas", "nfs.main.nas"}};

PoolRecord pool() {
  PoolRecord pool;
  pool.name = "c1";
  pool.per_node.cores = 1000;
  pool.tags = {{tag::id, "lab/ml/main/c1"}, {tag::gpus, "4"}};
  pool.mounts = {{"mounts/nfs", MountKind::datastore, "nfs.main.nas", "", false}};
  return pool;
}

struct Translated {
  Sealer sealer = Sealer::for_now();
  PoolRecord of = pool();
  JobSpec job;
  const TaskSpec& task() const { return job.tasks.front(); }
  std::string script() const { return task().environment.at(std::string(run_variable)); }

  explicit Translated(const std::string& text, bool on_host = false) {
    auto body = accept_body(Body::job, text);
    EXPECT_TRUE(body.has_value()) << (body ? "" : body.error().message);
    complete_job(*body);
    auto spec = translate_job(*body, {resource, "uuid", of, on_host, servers, sealer});
    EXPECT_TRUE(spec.has_value()) << (spec ? "" : spec.error().message);
    job = std::move(*spec);
  }
};

bool has_mount(const TaskSpec& task, const Mount& wanted) {
  return std::find(task.mounts.begin(), task.mounts.end(), wanted) != task.mounts.end();
}

const std::string segment = "lab/ML/workspaces/main/experiments/digits/jobs/hello/uuid";
const std::string job_root = "jobs/main/digits/hello";

TEST(BatchAiJob, CommonFieldsOfTheTenExamples) {
  for (const std::string& example : examples) {
    SCOPED_TRACE(example);
    const Translated translated(sent(example));
    const JobSpec& job = translated.job;
    const TaskSpec& task = translated.task();
    EXPECT_EQ(job.name, "hello");
    EXPECT_EQ(job.pool, "c1");
    EXPECT_TRUE(job.is_patient);
    EXPECT_EQ(job.tags.at(tag::job), "lab/ml/main/digits/hello");
    EXPECT_EQ(job.tags.at(tag::experiment), "lab/ml/main/digits");
    EXPECT_TRUE(task.whole_nodes);
    EXPECT_EQ(task.retries, 0u);
    EXPECT_EQ(task.interruptions_max, 5u);
    EXPECT_EQ(task.mount_root, root);
    EXPECT_TRUE(task.logs.ends_with("/" + segment + "/stdouterr")) << task.logs;
    EXPECT_EQ(task.templates.front(),
              std::pair(root + "/" + job_root + "/hostfile", std::string("{mpi_hosts}")));
    EXPECT_EQ(task.environment.at("AZ_BATCHAI_MOUNT_ROOT"), root + "/mounts");
    EXPECT_EQ(task.environment.at("AZ_BATCHAI_JOB_MOUNT_ROOT"), root + "/" + job_root + "/mounts");
    EXPECT_EQ(task.environment.at("AZ_BATCHAI_JOB_TEMP_DIR"), root + "/" + job_root);
    EXPECT_EQ(task.environment.at("AZ_BATCHAI_STDOUTERR_DIR"), task.logs);
    EXPECT_EQ(task.process_environment.at("AZ_BATCHAI_NUM_GPUS"), "{gpus}");
    EXPECT_EQ(task.process_environment.at("AZ_BATCH_HOST_LIST"), "{hosts}");
    EXPECT_TRUE(has_mount(task, {job_root + "/shared", MountKind::shared, "", "", false}));
    EXPECT_TRUE(validate(job).has_value()) << validate(job).error().what;
    // A user's words are in no command.
    EXPECT_NE(translated.script().find("cd \"$AZ_BATCHAI_JOB_TEMP\""), std::string::npos);
    for (const RoleSpec& role : task.roles) EXPECT_EQ(role.command, command_for(run_variable));
    if (task.roles.empty()) {
      EXPECT_EQ(task.command, command_for(run_variable));
    }
  }
}

TEST(BatchAiJob, ToolkitsOfTheTenExamples) {
  struct Row {
    int example;
    Toolkit toolkit;
    std::uint32_t nodes, per_node;
    bool numbered;
    const char* index;
    const char* line;  // how the script ends
  };
  const Row rows[] = {
      {0, Toolkit::none, 1, 1, false, "0", "| tee $AZ_BATCHAI_OUTPUT_MODEL/run.log\n"},
      {3, Toolkit::horovod, 2, 4, false, "0",
       " $AZ_BATCHAI_JOB_MOUNT_ROOT/scripts/hvd/train.py --epochs 3\n"},
      {4, Toolkit::none, 2, 1, true, "{rank}", "--dist-url $AZ_BATCHAI_PYTORCH_INIT_METHOD\n"},
      {5, Toolkit::none, 2, 1, true, "{rank}", "--file_store_path $AZ_BATCHAI_SHARED_JOB_TEMP\n"},
      {6, Toolkit::none, 1, 1, false, "0",
       "cntk configFile=$AZ_BATCHAI_INPUT_CONFIG/net.cntk rootDir=. dataDir=$AZ_BATCHAI_INPUT_DATA "
       "outputDir=$AZ_BATCHAI_OUTPUT_MODEL\n"},
      {7, Toolkit::mpi, 2, 1, false, "0", "train.py -g -o $AZ_BATCHAI_OUTPUT_MODEL\n"},
      {8, Toolkit::mpi, 4, 1, false, "0", "--out $AZ_BATCHAI_OUTPUT_LABELS\n"},
      {9, Toolkit::ssh, 2, 1, false, "0",
       "cat $AZ_BATCHAI_MPI_HOST_FILE; echo $AZ_BATCH_HOST_LIST {index}\n"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.example);
    const Translated translated(sent(examples[row.example]));
    const TaskSpec& task = translated.task();
    EXPECT_EQ(task.toolkit, row.toolkit);
    EXPECT_EQ(task.nodes, row.nodes);
    EXPECT_EQ(task.processes_per_node, row.per_node);
    EXPECT_EQ(task.logs_numbered, row.numbered);
    EXPECT_EQ(task.process_environment.at("AZ_BATCHAI_TASK_INDEX"), row.index);
    EXPECT_TRUE(translated.script().ends_with(row.line)) << translated.script();
    EXPECT_EQ(task.resources.cores, 1000u / row.per_node);
  }
}

TEST(BatchAiJob, TensorFlow) {
  const Translated single(sent(examples[1]));
  ASSERT_EQ(single.task().roles.size(), 1u);
  EXPECT_EQ(single.task().roles[0].name, "worker");
  EXPECT_EQ(single.task().roles[0].log, "wk");
  EXPECT_EQ(single.task().roles[0].count, 1u);
  EXPECT_EQ(single.task().preparation.name, "job_prep");
  EXPECT_EQ(single.task().container.image, "example/tf:2");
  EXPECT_TRUE(has_mount(single.task(),
                        {job_root + "/mounts/logs", MountKind::datastore, "lab.file.logs", "", false}));

  const Translated several(sent(examples[2]));
  const TaskSpec& task = several.task();
  ASSERT_EQ(task.roles.size(), 2u);
  EXPECT_EQ(task.toolkit, Toolkit::tensorflow);
  EXPECT_EQ(task.roles[0].name, "ps");
  EXPECT_EQ(task.roles[1].count, 3u);
  EXPECT_TRUE(task.in_blocks);
  EXPECT_EQ(task.ports_from, 2222);
  EXPECT_EQ(task.roles[0].resources.cores, 500u);
  EXPECT_EQ(task.process_environment.at("AZ_BATCHAI_PS_HOSTS"), "{ps_hosts}");
  EXPECT_EQ(task.process_environment.at("AZ_BATCHAI_TASK_INDEX"), "{index}");
  EXPECT_TRUE(has_mount(task, {job_root + "/mounts/data", MountKind::datastore, "lab.blob.data", "", false}));
  const std::string logs = root + "/" + job_root + "/mounts/logs/" + segment;
  EXPECT_EQ(task.environment.at("AZ_BATCHAI_OUTPUT_EVENTS"), logs + "/outputs/events");
  EXPECT_EQ(task.environment.at("AZ_BATCHAI_INPUT_CODE"), root + "/" + job_root + "/mounts/data/code");
  EXPECT_EQ(std::count(task.folders.begin(), task.folders.end(), logs + "/outputs/models"), 1);
  EXPECT_NE(several.script().find("worker-0)\n"), std::string::npos);
}

TEST(BatchAiJob, VariablesAndSecrets) {
  const Translated translated(sent(examples[9]));
  const TaskSpec& task = translated.task();
  EXPECT_EQ(task.environment.at("LR"), "0.1");
  EXPECT_EQ(task.environment.at("RUN_DIR"), root + "/mounts/nfs/" + segment + "/outputs/m/run");
  EXPECT_EQ(translated.sealer.unseal(task.secrets.at("TOKEN"), "TOKEN").value(), "abc");
  EXPECT_EQ(translated.job.priority, 500);
  EXPECT_EQ(task.max_wall_time, 6h);
  for (const auto& [name, value] : translated.job.tags)
    EXPECT_EQ(value.find("\"abc\""), std::string::npos) << name;

  const Translated late(sent(R"({"properties":{"nodeCount":1,"customToolkitSettings":{"commandLine":"x"},
    "stdOutErrPathPrefix":"$AZ_BATCHAI_MOUNT_ROOT",
    "environmentVariables":[{"name":"PATH","value":"it's/bin:$PATH:${HOME}x"},{"name":"B","value":"$PATH"},
                            {"name":"AZ_BATCHAI_MOUNT_ROOT","value":"mine"},{"name":"AZ_BATCH_HOST_LIST","value":"h"}]}})"));
  EXPECT_FALSE(late.task().environment.contains("PATH"));
  EXPECT_NE(late.script().find(R"(export PATH='it'\''s/bin:'"${PATH-}"':'"${HOME-}"'x')"), std::string::npos)
      << late.script();
  EXPECT_NE(late.script().find(R"(export B="${PATH-}")"), std::string::npos);
  EXPECT_EQ(late.task().environment.at("AZ_BATCHAI_MOUNT_ROOT"), root + "/mounts");
  EXPECT_EQ(late.task().environment.at("AZ_BATCH_HOST_LIST"), "h");
  EXPECT_FALSE(late.task().process_environment.contains("AZ_BATCH_HOST_LIST"));
}

TEST(BatchAiJob, MountsOfFileServersAndCommands) {
  const Translated exports(sent(examples[3]));
  EXPECT_TRUE(has_mount(exports.task(),
                        {job_root + "/mounts/scripts", MountKind::datastore, "nfs.main.nas", "code", false}));
  const Translated commands(sent(examples[7]));
  EXPECT_TRUE(has_mount(commands.task(), {job_root + "/mounts/logs", MountKind::command,
                                          "mount -t nfs nas.lan:/logs", "", false}));
  // Without a suffix the outputs are the folder itself.
  EXPECT_EQ(commands.task().environment.at("AZ_BATCHAI_OUTPUT_MODEL"),
            root + "/" + job_root + "/mounts/logs/" + segment + "/outputs");
}

TEST(BatchAiJob, RejectsInvalidJobs) {
  struct Row {
    const char* rule;
    const char* properties;
    const char* target;
  };
  const Row rows[] = {
      {"a prefix is absolute", R"("stdOutErrPathPrefix":"logs","customToolkitSettings":{})",
       "properties.stdOutErrPathPrefix"},
      {"of known variables", R"("stdOutErrPathPrefix":"$NOWHERE/logs","customToolkitSettings":{})",
       "properties.stdOutErrPathPrefix"},
      {"and stays there",
       R"("stdOutErrPathPrefix":"$AZ_BATCHAI_MOUNT_ROOT/../..","customToolkitSettings":{})",
       "properties.stdOutErrPathPrefix"},
      {"a file server exists",
       R"("stdOutErrPathPrefix":"/x","customToolkitSettings":{},"mountVolumes":{"fileServers":[{"fileServer":{"id":"/subscriptions/lab/resourceGroups/ml/providers/Microsoft.BatchAI/workspaces/main/fileServers/no"},"relativeMountPath":"a"}]})",
       "properties.mountVolumes.fileServers[0].fileServer.id"},
      {"a placeholder is none",
       R"("stdOutErrPathPrefix":"/x","customToolkitSettings":{},"mountVolumes":{"azureFileShares":[{"azureFileUrl":"https://<AZURE_BATCHAI_STORAGE_ACCOUNT>.file.core.windows.net/logs","relativeMountPath":"a"}]})",
       "properties.mountVolumes.azureFileShares[0].azureFileUrl"},
      {"one process a GPU",
       R"("stdOutErrPathPrefix":"/x","customMpiSettings":{"commandLine":"x","processCount":5})",
       "properties.customMpiSettings.processCount"},
  };
  const Sealer sealer = Sealer::for_now();
  const PoolRecord of = pool();
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    auto body =
        accept_body(Body::job, sent(std::string(R"({"properties":{"nodeCount":1,)") + row.properties + "}}"));
    ASSERT_TRUE(body.has_value()) << body.error().message;
    complete_job(*body);
    const auto job = translate_job(*body, {resource, "uuid", of, false, servers, sealer});
    ASSERT_FALSE(job.has_value());
    EXPECT_EQ(job.error().target, row.target) << job.error().message;
  }
}

TEST(BatchAiJob, FailsWithAReasonWithoutAContainerEngine) {
  const Translated translated(sent(examples[2]), true);
  EXPECT_TRUE(translated.task().container.empty());
  const JobSpec job = without_engine(translated.job, "example/tf", "no node has podman");
  EXPECT_EQ(job.tags.at(tag::no_engine), "no node has podman");
  EXPECT_TRUE(job.tasks[0].roles.empty());
  EXPECT_TRUE(validate(job).has_value());
  EXPECT_NE(job.tasks[0].environment.at(std::string(run_variable)).find("exit 1"), std::string::npos);
}

TEST(BatchAiJob, NamesOfTheCore) {
  for (const auto& [name, wanted] :
       {std::pair("_x", "x"), {"job_7", "batchai-job_7"}, {"--", "x"}, {"a-b_c", "a-b_c"}}) {
    auto body = accept_body(Body::job, sent(examples[0]));
    complete_job(*body);
    ResourceId named = resource;
    named.name = name;
    const Sealer sealer = Sealer::for_now();
    const PoolRecord of = pool();
    const auto job = translate_job(*body, {named, "uuid", of, false, servers, sealer});
    ASSERT_TRUE(job.has_value());
    EXPECT_EQ(job->name, wanted);
  }
}

TEST(BatchAiCluster, EveryMountAndTheSetupTask) {
  auto body = accept_body(Body::cluster, R"({"properties":{"vmSize":"gpu4","vmPriority":"lowpriority",
   "scaleSettings":{"autoScale":{"minimumNodeCount":0,"maximumNodeCount":8,"initialNodeCount":1}},
   "userAccountSettings":{"adminUserName":"ops","adminUserSshPublicKey":"ssh-rsa AAAA ops","adminUserPassword":"pw!"},
   "nodeSetup":{
    "setupTask":{"commandLine":"$AZ_BATCHAI_MOUNT_ROOT/nfs/setup.sh 'a b'","stdOutErrPathPrefix":"$AZ_BATCHAI_MOUNT_ROOT/nfs/",
     "environmentVariables":[{"name":"MODE","value":"gpu"}],"secrets":[{"name":"KEY","value":"k3y"}]},
    "mountVolumes":{
     "fileServers":[{"fileServer":{"id":"/subscriptions/LAB/resourceGroups/ml/providers/microsoft.batchai/workspaces/main/fileServers/NAS"},"relativeMountPath":"nfs","mountOptions":"rw"}],
     "azureFileShares":[{"accountName":"lab","azureFileUrl":"https://lab.file.core.windows.net/share/sub","credentials":{"accountKey":"k3y"},"relativeMountPath":"afs"}],
     "azureBlobFileSystems":[{"accountName":"lab","containerName":"sets","credentials":{"accountKey":"k3y"},"relativeMountPath":"bfs"}],
     "unmanagedFileSystems":[{"mountCommand":"mount -t glusterfs gl1.lan:/gv0","relativeMountPath":"gfs"}]}}}})");
  ASSERT_TRUE(body.has_value()) << body.error().message;
  complete_cluster(*body);
  const Sealer sealer = Sealer::for_now();
  const ResourceId at{"lab", "ml", "main", "", "c1"};
  const auto request =
      translate_cluster(*body, {at, "uuid", "c1", {16'000, 1u << 30, 0}, 5s, servers, sealer});
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->autoscale->by, ScaleBy::demand);
  EXPECT_EQ(request->autoscale->max, 8u);
  EXPECT_EQ(request->low_priority, 1u);
  EXPECT_EQ(request->dedicated, 0u);
  EXPECT_EQ(request->cores_per_node, 2'000u);
  EXPECT_EQ(request->slots_per_node, 1u);
  EXPECT_EQ(request->idle_timeout, 5s);
  EXPECT_EQ(request->tags->at(tag::gpus), "4");
  const std::vector<Mount> mounts{
      {"mounts/afs", MountKind::datastore, "lab.file.share", "sub", false},
      {"mounts/bfs", MountKind::datastore, "lab.blob.sets", "", false},
      {"mounts/nfs", MountKind::datastore, "nfs.main.nas", "", false},
      {"mounts/gfs", MountKind::command, "mount -t glusterfs gl1.lan:/gv0", "", false}};
  EXPECT_EQ(*request->mounts, mounts);
  const StartTask& start = *request->start_task;
  EXPECT_EQ(start.logs, root + "/mounts/nfs/lab/ml/workspaces/main/clusters/c1/uuid");
  EXPECT_EQ(start.environment.at("MODE"), "gpu");
  EXPECT_EQ(sealer.unseal(start.secrets.at("KEY"), "KEY").value(), "k3y");
  EXPECT_NE(start.command.find(R"(setup.sh '\''a b'\'')"), std::string::npos) << start.command;
  for (const auto& [name, value] : *request->tags) {
    EXPECT_EQ(value.find("k3y"), std::string::npos) << name;
    EXPECT_EQ(value.find("pw!"), std::string::npos) << name;
  }
}

TEST(BatchAiCluster, Scaling) {
  struct Row {
    const char* scale;
    ScaleBy by;
    std::uint32_t nodes;
    std::optional<Deallocation> rule;
  };
  const Row rows[] = {{R"("manual":{"targetNodeCount":3,"nodeDeallocationOption":"terminate"})",
                       ScaleBy::hand, 3, Deallocation::terminate},
                      {R"("manual":{"targetNodeCount":0,"nodeDeallocationOption":"waitforjobcompletion"})",
                       ScaleBy::hand, 0, Deallocation::task_completion},
                      {R"("autoScale":{"minimumNodeCount":0,"maximumNodeCount":2,"initialNodeCount":0})",
                       ScaleBy::demand, 2, std::nullopt},
                      {R"("autoScale":{"minimumNodeCount":0,"maximumNodeCount":0,"initialNodeCount":0})",
                       ScaleBy::hand, 0, Deallocation::requeue}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.scale);
    const Value body = parse_stored(std::string(R"({"properties":{"scaleSettings":{)") + row.scale + "}}}");
    const PoolRequest request = translate_scale(body, {.dedicated = 5});
    EXPECT_EQ(request.autoscale->by, row.by);
    EXPECT_EQ(request.dedicated, row.nodes);
    EXPECT_EQ(request.deallocation, row.rule);
  }
}

TEST(BatchAiCluster, NodeClasses) {
  const std::pair<const char*, int> rows[] = {{"STANDARD_NC6", 1},   {"standard_nc12s_v3", 2},
                                              {"Standard_NC24r", 4}, {"STANDARD_D2_V2", 0},
                                              {"gpu2", 2},           {"cpu", 0},
                                              {"bigbox", -1}};
  for (const auto& [name, gpus] : rows)
    EXPECT_EQ(gpus_of_class(name) ? int(*gpus_of_class(name)) : -1, gpus) << name;
  EXPECT_EQ(family_of_class("STANDARD_NC6S_V3"), "NCv3");
  EXPECT_EQ(family_of_class("STANDARD_D2_V2"), "Dv2");
  EXPECT_EQ(family_of_class("gpu4"), "");
}

TEST(BatchAiLayout, Expansion) {
  const Environment known{{"A", "1"}, {"LONG_NAME", "x"}};
  struct Row {
    const char* text;
    const char* wanted;
    std::size_t unknown;
  };
  const Row rows[] = {{"$A/${A}/$LONG_NAME", "1/1/x", 0},
                      {"$AB", "$AB", 1},
                      {"${A", "${A", 0},
                      {"$", "$", 0},
                      {"$$A", "$1", 0},
                      {"a$5b$(x)", "a$5b$(x)", 0},
                      {"${A}B", "1B", 0},
                      {"${B}$A", "${B}1", 1}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const Expanded expanded = expand(row.text, known);
    EXPECT_EQ(expanded.text, row.wanted);
    EXPECT_EQ(expanded.unknown.size(), row.unknown);
  }
  EXPECT_EQ(join_path("/a/", "/b/"), "/a/b");
  EXPECT_EQ(join_path("/a", ""), "/a");
  EXPECT_EQ(join_path("", "b"), "b");
}

TEST(BatchAiLayout, TheInnermostMountHoldsAPath) {
  const std::vector<Mount> mounts{{"mounts", MountKind::scratch, "", "m", false},
                                  {"mounts/nfs", MountKind::datastore, "d", "", false}};
  EXPECT_EQ(find_mount(mounts, root + "/mounts/nfs/a/b")->mount->what, "d");
  EXPECT_EQ(find_mount(mounts, root + "/mounts/nfs/a/b")->path, "a/b");
  EXPECT_EQ(find_mount(mounts, root + "/mounts/nfsx/a")->path, "nfsx/a");
  EXPECT_FALSE(find_mount(mounts, "/elsewhere").has_value());
  EXPECT_EQ(parse_mounts(format_mounts(mounts)), mounts);
}

}  // namespace
}  // namespace slipway::batchai
