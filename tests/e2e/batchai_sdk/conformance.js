// Goes through the whole life of Batch AI's resources with Microsoft's own SDK, unmodified, and prints a line of JSON
// for each step: {"step": 4, "title": …, "ok": true} or with "why". Called as
//   node conformance.js FOLDER-WITH-NODE_MODULES URL TOKEN all|accepted
// where `accepted` is for a service that answers 202 wherever Batch AI did.
"use strict";
const http = require("http");
const path = require("path");
const assert = require("assert");

const traffic = []; // every request the SDK makes, with its answer
const plain = http.request;
http.request = function (...given) {
  const request = plain.apply(http, given);
  const entry = { method: request.method, path: request.path.split("?")[0], status: 0 };
  traffic.push(entry);
  request.on("response", (response) => (entry.status = response.statusCode));
  return request;
};

const [, , modules, url, token, mode] = process.argv;
const { BatchAIManagementClient } = require(path.join(modules, "node_modules/@azure/arm-batchai"));

const connect = (secret) =>
  new BatchAIManagementClient(
    { getToken: async () => ({ token: secret, expiresOnTimestamp: Date.now() + 3600e3 }) },
    "lab",
    { baseUri: url, longRunningOperationRetryTimeout: 0, noRetryPolicy: true }
  );
const client = connect(token);
const G = "ml";
const W = "main";
const E = "digits";
const root = `/subscriptions/lab/resourceGroups/${G}/providers/Microsoft.BatchAI/workspaces/${W}`;
const nfs = "$AZ_BATCHAI_MOUNT_ROOT/nfs";

let failures = 0;
async function step(number, title, work) {
  const began = Date.now();
  try {
    await work();
    console.log(JSON.stringify({ step: number, title, ok: true, ms: Date.now() - began }));
  } catch (error) {
    ++failures;
    console.log(JSON.stringify({ step: number, title, ok: false, why: String(error.stack || error) }));
  }
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
async function until(look, what, seconds = 60) {
  for (const end = Date.now() + seconds * 1000; ; await sleep(50)) {
    const value = await look();
    if (value) return value;
    if (Date.now() > end) throw new Error(`never happened: ${what}`);
  }
}
async function refused(work, status, code) {
  try {
    await work();
  } catch (error) {
    assert.strictEqual(error.statusCode, status, `${error.code}: ${error.message}`);
    if (code) assert.strictEqual(error.code, code);
    return error;
  }
  throw new Error(`should have been refused with ${status}`);
}
function read(link, headers = {}) {
  return new Promise((done, failed) => {
    const chunks = [];
    plain(link, { headers }, (response) => {
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => done({ status: response.statusCode, text: Buffer.concat(chunks).toString() }));
    })
      .on("error", failed)
      .end();
  });
}

const clusterBody = (more = {}) => ({
  vmSize: "STANDARD_NC6",
  userAccountSettings: { adminUserName: "ops", adminUserPassword: "s3cret!" },
  scaleSettings: { manual: { targetNodeCount: 2 } },
  nodeSetup: {
    mountVolumes: { fileServers: [{ fileServer: { id: `${root}/fileServers/nas` }, relativeMountPath: "nfs" }] },
    setupTask: { commandLine: "echo ready", stdOutErrPathPrefix: nfs },
  },
  ...more,
});
const jobBody = (commandLine, more = {}) => ({
  cluster: { id: `${root}/clusters/c1` },
  nodeCount: 1,
  stdOutErrPathPrefix: nfs,
  customToolkitSettings: { commandLine },
  outputDirectories: [{ id: "OUT", pathPrefix: nfs, pathSuffix: "o" }],
  ...more,
});
const final = ["succeeded", "failed"];
const order = ["queued", "running", "terminating", "succeeded", "failed"];
const ended = (name) =>
  until(async () => {
    const job = await client.jobs.get(G, W, E, name);
    return final.includes(job.executionState) && job;
  }, `the end of ${name}`);
const running = (name) =>
  until(async () => (await client.jobs.get(G, W, E, name)).executionState === "running", `${name} runs`);
const files = (name, options) => client.jobs.listOutputFiles(G, W, E, name, options);
async function text(name, file, outputdirectoryid = "stdouterr", directory = undefined) {
  const options = { outputdirectoryid, ...(directory ? { directory } : {}) };
  const found = (await files(name, options)).find((one) => one.name === file);
  assert(found, `${name} has no ${file}`);
  return (await read(found.downloadUrl)).text;
}
async function run(name, commandLine, more) {
  await client.jobs.create(G, W, E, name, jobBody(commandLine, more));
  return ended(name);
}
function failedWith(job, code, exitCode) {
  assert.strictEqual(job.executionState, "failed");
  assert.strictEqual(job.executionInfo.exitCode, exitCode);
  assert.strictEqual(job.executionInfo.errors.length, 1);
  assert.strictEqual(job.executionInfo.errors[0].code, code);
}
function since(mark, ...wanted) {
  const shown = traffic.slice(mark).map((one) => {
    const last = one.path.split("/").slice(-2);
    return `${one.method} ${one.status} ${last[0].startsWith("operation") ? last[0] : "resource"}`;
  });
  // The first look finds it under way; how many more follow is a matter of time.
  const less = shown.filter((one, i) => one !== shown[i - 1] || !one.includes("operationresults"));
  assert.deepStrictEqual(less, wanted, shown.join(", "));
}

// Parameter servers are stopped when the workers have ended, so nobody ends before all have printed.
const script = `
import json, os, sys, time
print(json.dumps({n: os.environ.get(n) for n in ("TF_CONFIG", "AZ_BATCHAI_PS_HOSTS", "AZ_BATCHAI_WORKER_HOSTS",
                                                 "AZ_BATCHAI_TASK_INDEX")}), flush=True)
print(*sys.argv[1:], flush=True)
shared = os.environ["AZ_BATCHAI_SHARED_JOB_TEMP"]
open(shared + "/" + "-".join(sys.argv[1:]), "w").close()
while len(os.listdir(shared)) < 4:
    time.sleep(0.01)
if "ps" in sys.argv:
    time.sleep(600)
`;

async function prepare() {
  await client.workspaces.create(G, W, { location: "local", tags: { "slipway.idleTimeoutSeconds": "1" } });
  await client.fileServers.create(G, W, "nas", {
    vmSize: "STANDARD_D2",
    sshConfiguration: { userAccountSettings: { adminUserName: "ops" } },
    dataDisks: { diskSizeInGB: 10, diskCount: 1, storageAccountType: "Standard_LRS" },
  });
}
const idle = (count) =>
  until(async () => {
    const cluster = await client.clusters.get(G, W, "c1");
    return cluster.allocationState === "steady" && cluster.nodeStateCounts.idleNodeCount === count && cluster;
  }, `${count} idle nodes`);

async function resources() {
  await step(1, "operations", async () => {
    const list = await client.operations.list();
    assert(list.length >= 1);
    assert.strictEqual(typeof list[0].display.provider, "string");
  });
  await step(2, "usages", async () => {
    const clusters = (await client.usages.list("local")).find((one) => one.name.value === "Clusters");
    assert.strictEqual(typeof clusters.currentValue, "number");
    assert.strictEqual(typeof clusters.limit, "number");
  });
  await step(3, "a workspace that is not there", () =>
    refused(() => client.workspaces.get(G, W), 404, "WorkspaceNotFound"));
  let made;
  await step(4, "a workspace", async () => {
    made = await client.workspaces.create(G, W, { location: "local", tags: { a: "b" } });
    assert.strictEqual(made.name, W);
    assert.strictEqual(made.type, "Microsoft.BatchAI/workspaces");
    assert.strictEqual(made.provisioningState, "succeeded");
    assert(made.creationTime instanceof Date);
    assert.strictEqual(made.tags.a, "b");
  });
  await step(5, "the same again", async () => {
    const again = await client.workspaces.create(G, W, { location: "local", tags: { a: "b" } });
    assert.deepStrictEqual(again.creationTime, made.creationTime);
  });
  await step(6, "its tags change", async () => {
    const tags = { team: "x", "slipway.idleTimeoutSeconds": "1" };
    const changed = await client.workspaces.update(G, W, { tags });
    assert.deepStrictEqual({ ...changed.tags }, tags);
  });
  await step(7, "workspaces in lists", async () => {
    for (const list of [await client.workspaces.list(), await client.workspaces.listByResourceGroup(G)])
      assert(list.some((one) => one.name === W));
  });
  await step(8, "a file server", async () => {
    await prepare();
    const server = await client.fileServers.get(G, W, "nas");
    assert.strictEqual(server.provisioningState, "succeeded");
    assert(server.mountSettings.mountPoint && server.mountSettings.fileServerInternalIP);
    assert.strictEqual(server.dataDisks.cachingType, "none");
  });
  await step(9, "a cluster", async () => {
    const cluster = await client.clusters.create(G, W, "c1", clusterBody());
    assert.strictEqual(cluster.vmPriority, "dedicated");
    assert(["steady", "resizing"].includes(cluster.allocationState));
    assert.strictEqual(Object.values(cluster.nodeStateCounts).filter((n) => typeof n === "number").length, 5);
    assert.strictEqual(cluster.userAccountSettings.adminUserPassword, undefined);
    assert.strictEqual(cluster.scaleSettings.manual.nodeDeallocationOption, "requeue");
    assert.match(cluster.nodeSetup.setupTask.stdOutErrPathSuffix, /^lab\/ml\/workspaces\/main\/clusters\/c1\/[-0-9a-f]{36}$/);
  });
  await step(10, "its nodes come", async () => {
    const cluster = await idle(2);
    assert.strictEqual(cluster.currentNodeCount, 2);
    assert.strictEqual(cluster.errors, undefined);
  });
  await step(11, "how to log in", async () => {
    const list = await client.clusters.listRemoteLoginInformation(G, W, "c1");
    assert.strictEqual(list.length, 2);
    for (const one of list) assert(one.nodeId && one.ipAddress && one.port > 0);
  });
  await step(12, "a page of clusters", async () => {
    const list = await client.clusters.listByWorkspace(G, W, { clustersListByWorkspaceOptions: { maxResults: 1 } });
    assert.strictEqual(list.length, 1);
    assert.strictEqual(list.nextLink, undefined);
  });
  await step(13, "an experiment", async () =>
    assert.strictEqual((await client.experiments.create(G, W, E)).provisioningState, "succeeded"));
}

async function jobs() {
  await step(14, "a job", async () => {
    const job = await client.jobs.create(
      G, W, E, "hello",
      jobBody("echo hi | tee $AZ_BATCHAI_OUTPUT_OUT/r.txt; echo $A $S", {
        environmentVariables: [{ name: "A", value: "1" }],
        secrets: [{ name: "S", value: "2" }],
      })
    );
    assert.strictEqual(job.toolType, "custom");
    assert.strictEqual(job.schedulingPriority, "normal");
    assert.strictEqual(job.constraints.maxWallClockTime, "P7D");
    assert(order.includes(job.executionState));
    assert(job.jobOutputDirectoryPathSegment);
    assert.strictEqual(job.secrets[0].value, undefined);
  });
  await step(15, "it moves forward and ends well", async () => {
    let last = 0;
    const job = await until(async () => {
      const seen = await client.jobs.get(G, W, E, "hello");
      const at = order.indexOf(seen.executionState);
      assert(at >= last, `from ${order[last]} back to ${seen.executionState}`);
      last = at;
      return final.includes(seen.executionState) && seen;
    }, "the end of hello");
    assert.strictEqual(job.executionState, "succeeded", JSON.stringify(job.executionInfo));
    assert.strictEqual(job.executionInfo.exitCode, 0);
    assert(job.executionInfo.endTime >= job.executionInfo.startTime);
    assert.strictEqual(job.executionInfo.errors, undefined);
  });
  await step(16, "what it printed", async () => {
    const list = await files("hello", { outputdirectoryid: "stdouterr" });
    const names = list.map((one) => one.name);
    assert(names.includes("stdout.txt") && names.includes("stderr.txt"), names.join());
    assert(names.some((name) => /^execution.*\.log$/.test(name)), names.join());
    const out = list.find((one) => one.name === "stdout.txt");
    assert.strictEqual(list.find((one) => one.name === "stderr.txt").contentLength, 0);
    assert.strictEqual(out.contentLength, 7);
    assert.deepStrictEqual(await read(out.downloadUrl), { status: 200, text: "hi\n1 2\n" });
    assert.deepStrictEqual(await read(out.downloadUrl, { Range: "bytes=3-" }), { status: 206, text: "1 2\n" });
    assert.strictEqual((await read(out.downloadUrl.replace("stdout.txt", "stderr.txt"))).status, 403);
  });
  await step(17, "what it wrote", async () => {
    const list = await files("hello", { outputdirectoryid: "OUT" });
    assert.deepStrictEqual(list.map((one) => [one.name, one.contentLength]), [["r.txt", 3]]);
  });
  await step(18, "a directory it does not have", () =>
    refused(() => files("hello", { outputdirectoryid: "NOPE" }), 400, "OutputDirectoryNotFound"));
  await step(19, "a folder inside", async () => {
    await run("folders", "mkdir $AZ_BATCHAI_OUTPUT_OUT/d; echo x > $AZ_BATCHAI_OUTPUT_OUT/d/x");
    const [folder] = await files("folders", { outputdirectoryid: "OUT" });
    assert.deepStrictEqual([folder.name, folder.fileType, folder.downloadUrl], ["d", "directory", undefined]);
    const [file] = await files("folders", { outputdirectoryid: "OUT", directory: "d" });
    assert.strictEqual(file.name, "x");
  });
  await step(20, "a job that fails", async () => failedWith(await run("fails", "false"), "JobFailed", 1));
  await step(21, "a preparation that fails", async () => {
    const job = await run("unprepared", "echo never", { jobPreparation: { commandLine: "false" } });
    failedWith(job, "JobPreparationFailed", 1);
    const names = (await files("unprepared", { outputdirectoryid: "stdouterr" })).map((one) => one.name);
    assert(names.includes("stdout-job_prep.txt"), names.join());
  });
  await step(22, "a job that is terminated", async () => {
    await client.jobs.create(G, W, E, "sleeps", jobBody("sleep 600"));
    await running("sleeps");
    await client.jobs.terminate(G, W, E, "sleeps");
    failedWith(await ended("sleeps"), "JobTerminated", undefined);
  });
  await step(23, "one that has ended", async () => {
    await client.jobs.terminate(G, W, E, "hello");
    assert.strictEqual((await client.jobs.get(G, W, E, "hello")).executionState, "succeeded");
  });
  await step(24, "the nodes of a job", async () => {
    await client.jobs.create(G, W, E, "two", jobBody("sleep 600", { nodeCount: 2 }));
    await running("two");
    assert.strictEqual((await client.jobs.listRemoteLoginInformation(G, W, E, "two")).length, 2);
    await client.jobs.terminate(G, W, E, "two");
    await ended("two");
  });
  await step(25, "ssh between them", async () => {
    const job = await run("reaches", "ssh ${AZ_BATCH_HOST_LIST##*,} echo done", { nodeCount: 2 });
    assert.strictEqual(job.executionState, "succeeded", JSON.stringify(job.executionInfo));
    assert.strictEqual(await text("reaches", "stdout.txt"), "done\n");
  });
}

async function tensorflow() {
  await step(26, "TensorFlow on three nodes", async () => {
    await client.clusters.create(G, W, "c3", clusterBody({ scaleSettings: { manual: { targetNodeCount: 3 } } }));
    await run("writes", `mkdir -p ${nfs}/code; cat > ${nfs}/code/replica.py <<'END'\n${script}\nEND`);
    await client.jobs.create(G, W, E, "tf", {
      ...jobBody("", { nodeCount: 3, customToolkitSettings: undefined }),
      cluster: { id: `${root}/clusters/c3` },
      inputDirectories: [{ id: "CODE", path: `${nfs}/code` }],
      tensorFlowSettings: {
        parameterServerCount: 1,
        workerCount: 3,
        pythonScriptFilePath: "$AZ_BATCHAI_INPUT_CODE/replica.py",
        pythonInterpreterPath: "python3",
        masterCommandLineArgs: "master $AZ_BATCHAI_TASK_INDEX",
        workerCommandLineArgs: "worker $AZ_BATCHAI_TASK_INDEX",
        parameterServerCommandLineArgs: "ps $AZ_BATCHAI_TASK_INDEX",
      },
    });
    const job = await ended("tf");
    assert.strictEqual(job.executionState, "succeeded", JSON.stringify(job.executionInfo));
    const names = (await files("tf", { outputdirectoryid: "stdouterr" })).map((one) => one.name);
    for (const name of ["wk-0", "wk-1", "wk-2", "ps-0"])
      for (const stream of ["stdout", "stderr"]) assert(names.includes(`${stream}-${name}.txt`), names.join());
    for (const [name, role, words] of [["wk-0", "worker", "master 0"], ["wk-2", "worker", "worker 2"], ["ps-0", "ps", "ps 0"]]) {
      const [first, second] = (await text("tf", `stdout-${name}.txt`)).split("\n");
      const seen = JSON.parse(first);
      const config = JSON.parse(seen.TF_CONFIG);
      assert.strictEqual(second, words);
      assert.deepStrictEqual(Object.keys(config), ["cluster", "task", "environment"]);
      assert.deepStrictEqual(config.task, { type: role, index: Number(name.slice(3)) });
      assert.strictEqual(config.cluster.ps.join(), seen.AZ_BATCHAI_PS_HOSTS);
      assert.strictEqual(config.cluster.worker.join(), seen.AZ_BATCHAI_WORKER_HOSTS);
      assert.strictEqual(config.cluster.worker.length, 3);
    }
    await client.clusters.deleteMethod(G, W, "c3");
  });
}

async function scaling() {
  await step(27, "a cluster that scales by itself", async () => {
    const scaleSettings = { autoScale: { minimumNodeCount: 0, maximumNodeCount: 2 } };
    const cluster = await client.clusters.update(G, W, "c1", { scaleSettings });
    assert.strictEqual(cluster.scaleSettings.manual, undefined);
    assert.strictEqual(cluster.scaleSettings.autoScale.initialNodeCount, 0);
    await until(async () => (await client.clusters.get(G, W, "c1")).currentNodeCount === 0, "no nodes left");
    assert.strictEqual((await run("wakes", "true")).executionState, "succeeded");
  });
  await step(28, "jobs in pages", async () => {
    const options = { jobsListByExperimentOptions: { maxResults: 2 } };
    let page = await client.jobs.listByExperiment(G, W, E, options);
    const names = page.map((one) => one.name);
    assert.strictEqual(page.length, 2);
    while (page.nextLink) {
      page = await client.jobs.listByExperimentNext(page.nextLink);
      names.push(...page.map((one) => one.name));
    }
    assert.strictEqual(new Set(names).size, names.length);
    assert(["hello", "fails", "sleeps", "wakes"].every((name) => names.includes(name)), names.join());
  });
}

async function removal() {
  await step(29, "deleting a job that runs", async () => {
    await client.jobs.create(G, W, E, "goes", jobBody("sleep 600"));
    await running("goes");
    await client.jobs.deleteMethod(G, W, E, "goes");
    await refused(() => client.jobs.get(G, W, E, "goes"), 404, "JobNotFound");
  });
  await step(30, "deleting one that is not there", () => client.jobs.deleteMethod(G, W, E, "nothing"));
  await step(33, "a job on a missing cluster", () =>
    refused(
      () => client.jobs.create(G, W, E, "lost", jobBody("true", { cluster: { id: `${root}/clusters/none` } })),
      404, "ClusterNotFound"
    ));
  await step(34, "a wrong token", async () => {
    const mark = traffic.length;
    await refused(() => connect("wrong").workspaces.list(), 401, "AuthenticationFailed");
    assert.strictEqual(traffic.length - mark, 1);
  });
  await step(31, "deleting the rest", async () => {
    await client.experiments.deleteMethod(G, W, E);
    await refused(() => client.experiments.get(G, W, E), 404, "ExperimentNotFound");
    await client.clusters.deleteMethod(G, W, "c1");
    await refused(() => client.clusters.get(G, W, "c1"), 404, "ClusterNotFound");
    await client.fileServers.deleteMethod(G, W, "nas");
    await refused(() => client.fileServers.get(G, W, "nas"), 404, "FileServerNotFound");
  });
  await step(32, "deleting a workspace with all in it", async () => {
    await prepare();
    await client.clusters.create(G, W, "c1", clusterBody());
    await client.experiments.create(G, W, E);
    await client.jobs.create(G, W, E, "within", jobBody("sleep 600"));
    await client.workspaces.deleteMethod(G, W);
    await refused(() => client.workspaces.get(G, W), 404, "WorkspaceNotFound");
    await refused(() => client.clusters.get(G, W, "c1"), 404);
    await refused(() => client.jobs.get(G, W, E, "within"), 404);
  });
}

async function accepted() {
  let mark;
  await step(35.0, "a file server, accepted", async () => {
    await prepare();
    await client.experiments.create(G, W, E);
  });
  await step(35.1, "a cluster, accepted", async () => {
    mark = traffic.length;
    const cluster = await client.clusters.create(G, W, "c1", clusterBody());
    since(mark, "PUT 202 resource", "GET 200 operationresults", "GET 200 resource");
    assert.strictEqual(cluster.provisioningState, "succeeded");
    assert.strictEqual(cluster.vmPriority, "dedicated");
    await idle(2);
  });
  await step(35.2, "a job, accepted", async () => {
    mark = traffic.length;
    const job = await client.jobs.create(G, W, E, "sleeps", jobBody("sleep 600"));
    since(mark, "PUT 202 resource", "GET 200 operationresults", "GET 200 resource");
    assert.strictEqual(job.toolType, "custom");
    await running("sleeps");
  });
  await step(35.3, "a termination, accepted", async () => {
    mark = traffic.length;
    await client.jobs.terminate(G, W, E, "sleeps");
    since(mark, "POST 202 resource", "GET 200 operationresults");
    failedWith(await ended("sleeps"), "JobTerminated", undefined);
  });
  await step(35.4, "a deletion, accepted", async () => {
    await client.jobs.create(G, W, E, "goes", jobBody("sleep 600"));
    await running("goes");
    mark = traffic.length;
    await client.jobs.deleteMethod(G, W, E, "goes");
    since(mark, "DELETE 202 resource", "GET 200 operationresults", "GET 204 operationstatuses");
    await refused(() => client.jobs.get(G, W, E, "goes"), 404, "JobNotFound");
  });
  await step(35.5, "the rest, accepted", () => client.workspaces.deleteMethod(G, W));
}

(async () => {
  if (mode === "accepted") {
    await accepted();
  } else {
    await resources();
    await jobs();
    await tensorflow();
    await scaling();
    await removal();
  }
  process.exit(failures ? 1 : 0);
})();
