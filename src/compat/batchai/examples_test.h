#pragma once
// The shapes of published Batch AI jobs, ten of them, as people wrote them.
#include <string>

namespace slipway::batchai {

inline const std::string examples[] = {
    R"({"properties":{"nodeCount":1,
 "customToolkitSettings":{"commandLine":"python3 $AZ_BATCHAI_INPUT_CODE/fit.py --out $AZ_BATCHAI_OUTPUT_MODEL | tee $AZ_BATCHAI_OUTPUT_MODEL/run.log"},
 "stdOutErrPathPrefix":"$AZ_BATCHAI_MOUNT_ROOT/team",
 "inputDirectories":[{"id":"CODE","path":"$AZ_BATCHAI_MOUNT_ROOT/team/code"}],
 "outputDirectories":[{"id":"MODEL","pathPrefix":"$AZ_BATCHAI_MOUNT_ROOT/team","pathSuffix":"models"}]}})",
    R"({"properties":{"nodeCount":1,
 "tensorFlowSettings":{"pythonScriptFilePath":"$AZ_BATCHAI_JOB_MOUNT_ROOT/scripts/digits/train.py"},
 "stdOutErrPathPrefix":"$AZ_BATCHAI_JOB_MOUNT_ROOT/logs",
 "jobPreparation":{"commandLine":"pip install tqdm"},
 "mountVolumes":{"azureFileShares":[
   {"azureFileUrl":"https://lab.file.core.windows.net/logs","relativeMountPath":"logs"},
   {"azureFileUrl":"https://lab.file.core.windows.net/scripts","relativeMountPath":"scripts"}]},
 "containerSettings":{"imageSourceRegistry":{"image":"example/tf:2"}}}})",
    R"({"properties":{"nodeCount":3,
 "tensorFlowSettings":{"parameterServerCount":1,"workerCount":3,
  "pythonScriptFilePath":"$AZ_BATCHAI_INPUT_CODE/replica.py",
  "masterCommandLineArgs":"--job_name=worker --ps_hosts=$AZ_BATCHAI_PS_HOSTS --task_index=$AZ_BATCHAI_TASK_INDEX --ckpt=$AZ_BATCHAI_OUTPUT_MODEL",
  "workerCommandLineArgs":"--job_name=worker --task_index=$AZ_BATCHAI_TASK_INDEX",
  "parameterServerCommandLineArgs":"--job_name=ps --task_index=$AZ_BATCHAI_TASK_INDEX"},
 "stdOutErrPathPrefix":"$AZ_BATCHAI_JOB_MOUNT_ROOT/logs",
 "inputDirectories":[{"id":"CODE","path":"$AZ_BATCHAI_JOB_MOUNT_ROOT/data/code"},{"id":"DATA","path":"$AZ_BATCHAI_JOB_MOUNT_ROOT/data/digits"}],
 "outputDirectories":[{"id":"MODEL","pathPrefix":"$AZ_BATCHAI_JOB_MOUNT_ROOT/logs","pathSuffix":"models"},{"id":"EVENTS","pathPrefix":"$AZ_BATCHAI_JOB_MOUNT_ROOT/logs","pathSuffix":"events"}],
 "mountVolumes":{"azureFileShares":[{"accountName":"lab","azureFileUrl":"https://lab.file.core.windows.net/logs","credentials":{"accountKey":"sesame"},"relativeMountPath":"logs"}],
  "azureBlobFileSystems":[{"accountName":"lab","containerName":"data","credentials":{"accountKey":"sesame"},"relativeMountPath":"data"}]},
 "containerSettings":{"imageSourceRegistry":{"image":"example/tf:1.8-gpu"}}}})",
    R"({"properties":{"nodeCount":2,
 "horovodSettings":{"pythonScriptFilePath":"$AZ_BATCHAI_JOB_MOUNT_ROOT/scripts/hvd/train.py","commandLineArgs":"--epochs 3","processCount":8},
 "jobPreparation":{"commandLine":"apt update; apt install -y mpi-default-bin mpi-default-dev; pip install horovod"},
 "stdOutErrPathPrefix":"$AZ_BATCHAI_JOB_MOUNT_ROOT/logs",
 "mountVolumes":{"fileServers":[{"fileServer":{"id":"/subscriptions/lab/resourceGroups/ml/providers/Microsoft.BatchAI/workspaces/main/fileServers/nas"},"relativeMountPath":"logs","mountOptions":"rw"},
  {"fileServer":{"id":"/subscriptions/lab/resourceGroups/ml/providers/Microsoft.BatchAI/workspaces/main/fileServers/nas"},"sourceDirectory":"code","relativeMountPath":"scripts"}]},
 "containerSettings":{"shmSize":"8gb","imageSourceRegistry":{"image":"example/tf:1.8-gpu"}}}})",
    R"({"properties":{"nodeCount":2,
 "pyTorchSettings":{"pythonScriptFilePath":"$AZ_BATCHAI_INPUT_CODE/ddp.py","communicationBackend":"gloo",
  "commandLineArgs":"--world-size 2 --rank $AZ_BATCHAI_TASK_INDEX --dist-backend $AZ_BATCHAI_PYTORCH_BACKEND --dist-url $AZ_BATCHAI_PYTORCH_INIT_METHOD"},
 "inputDirectories":[{"id":"CODE","path":"$AZ_BATCHAI_MOUNT_ROOT/nfs/code"}],
 "stdOutErrPathPrefix":"$AZ_BATCHAI_MOUNT_ROOT/nfs",
 "containerSettings":{"imageSourceRegistry":{"image":"example/pytorch:latest"}}}})",
    R"({"properties":{"nodeCount":2,
 "caffe2Settings":{"pythonScriptFilePath":"$AZ_BATCHAI_MOUNT_ROOT/nfs/code/shards.py",
  "commandLineArgs":"--num_shards 2 --shard_id $AZ_BATCHAI_TASK_INDEX --run_id 0 --file_store_path $AZ_BATCHAI_SHARED_JOB_TEMP"},
 "stdOutErrPathPrefix":"$AZ_BATCHAI_MOUNT_ROOT/nfs"}})",
    R"({"properties":{"nodeCount":1,
 "cntkSettings":{"configFilePath":"$AZ_BATCHAI_INPUT_CONFIG/net.cntk","commandLineArgs":"rootDir=. dataDir=$AZ_BATCHAI_INPUT_DATA outputDir=$AZ_BATCHAI_OUTPUT_MODEL"},
 "stdOutErrPathPrefix":"$AZ_BATCHAI_MOUNT_ROOT/external",
 "inputDirectories":[{"id":"CONFIG","path":"$AZ_BATCHAI_MOUNT_ROOT/external/cntk"},{"id":"DATA","path":"$AZ_BATCHAI_MOUNT_ROOT/external/digits"}],
 "outputDirectories":[{"id":"MODEL","pathPrefix":"$AZ_BATCHAI_MOUNT_ROOT/external","pathSuffix":"Models"}]}})",
    R"({"properties":{"nodeCount":2,
 "chainerSettings":{"pythonScriptFilePath":"$AZ_BATCHAI_JOB_MOUNT_ROOT/scripts/c/train.py","commandLineArgs":"-g -o $AZ_BATCHAI_OUTPUT_MODEL"},
 "stdOutErrPathPrefix":"$AZ_BATCHAI_JOB_MOUNT_ROOT/logs",
 "outputDirectories":[{"id":"MODEL","pathPrefix":"$AZ_BATCHAI_JOB_MOUNT_ROOT/logs"}],
 "mountVolumes":{"unmanagedFileSystems":[{"mountCommand":"mount -t nfs nas.lan:/logs","relativeMountPath":"logs"},{"mountCommand":"mount -t nfs nas.lan:/code","relativeMountPath":"scripts"}]},
 "containerSettings":{"imageSourceRegistry":{"serverUrl":"hub.lan:5000","image":"hub.lan:5000/chainermn","credentials":{"username":"ci","password":"s3cret"}}}}})",
    R"({"properties":{"nodeCount":4,
 "customMpiSettings":{"commandLine":"python -u $AZ_BATCHAI_INPUT_CODE/label.py --images $AZ_BATCHAI_INPUT_IMG --out $AZ_BATCHAI_OUTPUT_LABELS","processCount":4},
 "stdOutErrPathPrefix":"$AZ_BATCHAI_JOB_MOUNT_ROOT/logs",
 "inputDirectories":[{"id":"CODE","path":"$AZ_BATCHAI_JOB_MOUNT_ROOT/logs/code"},{"id":"IMG","path":"$AZ_BATCHAI_JOB_MOUNT_ROOT/logs/img"}],
 "outputDirectories":[{"id":"LABELS","pathPrefix":"$AZ_BATCHAI_JOB_MOUNT_ROOT/logs"}],
 "mountVolumes":{"azureFileShares":[{"azureFileUrl":"https://lab.file.core.windows.net/logs","relativeMountPath":"logs"}]}}})",
    R"({"properties":{"nodeCount":2,"schedulingPriority":"high","constraints":{"maxWallClockTime":"PT6H"},
 "environmentVariables":[{"name":"LR","value":"0.1"},{"name":"RUN_DIR","value":"$AZ_BATCHAI_OUTPUT_MODEL/run"}],
 "secrets":[{"name":"TOKEN","value":"abc"}],
 "customToolkitSettings":{"commandLine":"cat $AZ_BATCHAI_MPI_HOST_FILE; echo $AZ_BATCH_HOST_LIST {index}"},
 "stdOutErrPathPrefix":"$AZ_BATCHAI_MOUNT_ROOT/nfs",
 "inputDirectories":[{"id":"CODE","path":"$AZ_BATCHAI_MOUNT_ROOT/nfs/code"}],
 "outputDirectories":[{"id":"MODEL","pathPrefix":"$AZ_BATCHAI_MOUNT_ROOT/nfs","pathSuffix":"m"}]}})"};

// Of a file of the ten, what is sent: with its cluster.
inline std::string sent(std::string example) {
  return example.insert(
      example.find("\"nodeCount\""),
      R"("cluster":{"id":"/subscriptions/lab/resourceGroups/ml/providers/Microsoft.BatchAI/)"
      R"(workspaces/main/clusters/c1"},)");
}

}  // namespace slipway::batchai
