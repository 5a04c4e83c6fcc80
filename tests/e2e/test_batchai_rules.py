"""What Batch AI promises about jobs and clusters over time: ends, priorities, limits, lost nodes, scaling, who sees what."""
import json
import os
import subprocess
import unittest

from batchai import BASE, EXPERIMENT, GROUP, SUBSCRIPTION, VERSION, WORKSPACE, BatchAiCase, BatchAiService
from harness import wait_until

TEAM = "$AZ_BATCHAI_MOUNT_ROOT/team"
# Exits with the code given for its role (wk-1=3), waits for a signal without one. No process exits before all have started.
ROLES = """import os, signal, sys, time
ends = dict(word.split("=") for word in sys.argv[2:])
me = sys.argv[1] + "-" + os.environ["AZ_BATCHAI_TASK_INDEX"]
print(me, flush=True)
shared = os.environ["AZ_BATCHAI_SHARED_JOB_TEMP"]
open(shared + "/began-" + me, "w").close()
many = 3 if "TF_CONFIG" in os.environ else 2
while sum(name.startswith("began-") for name in os.listdir(shared)) < many: time.sleep(0.01)
if me in ends: sys.exit(int(ends[me]))
signal.pause()
"""


def gate(service, name):
    """A command that runs until it is let go, and how to let it."""
    path = os.path.join(service.base, "gate-" + name)
    return f"until [ -e {path} ]; do sleep 0.02; done", lambda: open(path, "w").close()


class JobCompletion(BatchAiCase):
    """Who decides how a job of several processes ends."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.s.cluster("c1", 2)
        cls.s.put("lab.file.team", "roles.py", ROLES)

    def tensorflow(self, name, ends):
        arguments = " ".join(f"{who}={code}" for who, code in ends.items())
        self.s.create(name, {"nodeCount": 2, "stdOutErrPathPrefix": TEAM, "tensorFlowSettings": {
            "pythonScriptFilePath": f"{TEAM}/roles.py", "parameterServerCount": 1, "workerCount": 2,
            "masterCommandLineArgs": "wk " + arguments, "workerCommandLineArgs": "wk " + arguments,
            "parameterServerCommandLineArgs": "ps " + arguments}})
        return self.s.wait_for_job(name)

    def assert_failed(self, job, code):
        self.assertEqual(self.error_of(job)[0], "JobFailed")
        self.assertEqual(job["executionInfo"]["exitCode"], code)
        wait_until(lambda: not [line for line in self.s.survivors().values() if "roles.py" in line], what="the end of the rest")

    def test_the_master_ends_the_job_and_parameter_servers_are_stopped(self):
        self.assert_succeeded(self.tensorflow("master", {"wk-0": 0, "wk-1": 0}))
        self.assertEqual(self.s.files("master")["stdout-ps-0.txt"], "ps-0\n")

    def test_the_masters_exit_code_is_the_jobs(self):
        self.assert_failed(self.tensorflow("master-4", {"wk-0": 4}), 4)

    def test_a_worker_that_fails_first_ends_the_job(self):
        self.assert_failed(self.tensorflow("worker-3", {"wk-1": 3}), 3)

    def test_a_parameter_server_that_fails_first_ends_the_job(self):
        self.assert_failed(self.tensorflow("server-5", {"ps-0": 5}), 5)

    def test_of_equal_ranks_the_first_failure_counts(self):
        self.s.create("rank-7", {"nodeCount": 2, "stdOutErrPathPrefix": TEAM, "pyTorchSettings": {
            "pythonScriptFilePath": f"{TEAM}/roles.py", "commandLineArgs": "rank rank-1=7", "communicationBackend": "gloo"}})
        self.assert_failed(self.s.wait_for_job("rank-7"), 7)

    def test_preparation_that_fails(self):
        self.s.custom("unprepared", "true", jobPreparation={"commandLine": "echo no network >&2; exit 6"})
        job = self.s.wait_for_job("unprepared")
        code, details = self.error_of(job)
        self.assertEqual((code, job["executionInfo"]["exitCode"]), ("JobPreparationFailed", 6))
        self.assertIn("no network", details["lastLines"])
        self.assertEqual(self.s.files("unprepared")["stderr-job_prep.txt"], "no network\n")

    def test_container_without_an_engine_fails_where_the_host_is_not_allowed(self):
        s = BatchAiService(variables={"SLIPWAY_BATCHAI_CONTAINERS": ""})
        self.addCleanup(s.close)
        s.cluster("c1", 1)
        s.custom("boxed", "true", containerSettings={"imageSourceRegistry": {"image": "lab/box:1"}})
        code, details = self.error_of(s.wait_for_job("boxed"))
        self.assertEqual((code, details["imageName"]), ("FailedStartingContainer", "lab/box:1"))
        self.assertIn("podman", details["Info"])

    @unittest.skipUnless(os.geteuid() == 0, "only root may mount")
    def test_failed_mount_reports_its_command_and_output(self):
        self.s.custom("unmounted", "true", mountVolumes={"unmanagedFileSystems": [
            {"mountCommand": "mount -t nosuch nas.lan:/x", "relativeMountPath": "x"}]})
        code, details = self.error_of(self.s.wait_for_job("unmounted"))
        self.assertEqual(code, "UnmanagedFileSystemMountError")
        self.assertIn("mount -t nosuch nas.lan:/x", details["Info"])
        self.assertIn("failed with exit code 32: mount: ", details["Info"])


class QueueOrder(BatchAiCase):
    """One node: who is next, and how a job is stopped."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.s.cluster("c1", 1)

    def hold(self, name):
        """A job that keeps the node until it is let go."""
        line, let_go = gate(self.s, name)
        self.s.custom(name, line)
        self.addCleanup(let_go)
        self.s.wait_for_job(name, "running")
        return let_go

    def test_priorities(self):
        let_go = self.hold("first")
        for name, priority in (("third", "low"), ("normal", "normal"), ("high", "high"), ("normal-2", "normal")):
            self.assertEqual(self.s.custom(name, "true", schedulingPriority=priority)["executionState"], "queued")
        self.assertIsNone(self.s.shown("high")["executionInfo"])
        let_go()
        order = sorted((self.s.wait_for_job(name)["executionInfo"]["startTime"], name)
                       for name in ("third", "normal", "high", "normal-2"))
        self.assertEqual([name for _, name in order], ["high", "normal", "normal-2", "third"])

    def test_max_wall_clock_time(self):
        self.s.custom("slow", "echo began; exec sleep 600", constraints={"maxWallClockTime": "PT1S"})
        job = self.s.wait_for_job("slow")
        self.assertEqual(self.error_of(job), ("JobTimedOut", {"maxWallClockTime": "PT1S"}))
        self.assertIsNone(job["executionInfo"]["exitCode"])
        self.assertEqual(self.s.files("slow")["stdout.txt"], "began\n")

    def test_terminate_queued_running_and_ended_jobs(self):
        let_go = self.hold("holds")
        self.s.custom("waits", "true")
        self.s.ok("batchai", "job", "terminate", "-n", "waits", "-y")
        waits = self.s.shown("waits")
        self.assertEqual(self.error_of(waits)[0], "JobTerminated")
        self.assertIsNone(waits["executionInfo"]["exitCode"])
        self.assertGreaterEqual(waits["executionInfo"]["endTime"], waits["executionInfo"]["startTime"])
        self.assertEqual(self.s.run("batchai", "job", "wait", "-n", "waits").code, 1)
        self.s.ok("batchai", "job", "terminate", "-n", "holds", "-y")
        holds = self.s.wait_for_job("holds")
        self.assertEqual(self.error_of(holds)[0], "JobTerminated")
        self.assertIsNone(holds["executionInfo"]["exitCode"])
        let_go()
        self.s.custom("done", "true")
        done = self.s.wait_for_job("done")
        self.s.ok("batchai", "job", "terminate", "-n", "done", "-y")
        self.assertEqual(self.s.shown("done"), done)


    def test_list_and_get_agree(self):
        self.s.custom("listed-well", 'echo "\\"horovodSettings\\":{"', environmentVariables=[{"name": "A", "value": 'ä "b" \\'}])
        self.s.custom("listed-ill", "exit 2")
        self.s.wait_for_job("listed-well")
        self.s.wait_for_job("listed-ill")
        self.hold("listed-now")
        self.s.custom("listed-waits", "true")
        path = f"{BASE}/experiments/{EXPERIMENT}/jobs"
        listed = {job["name"]: job for job in self.s.ask("GET", f"{path}?{VERSION}").json["value"]}
        for name in ("listed-well", "listed-ill", "listed-now", "listed-waits"):
            self.assertEqual(listed[name], self.s.ask("GET", f"{path}/{name}?{VERSION}").json)
        self.assertEqual(listed["listed-well"]["properties"]["toolType"], "custom")


class LostNodes(BatchAiCase):
    def setUp(self):
        # One of its own: a node that is lost again and again is left alone for a while.
        self.s = BatchAiService()
        self.addCleanup(self.s.close)

    @classmethod
    def setUpClass(cls):
        super(BatchAiCase, cls).setUpClass()

    def lose(self, name, times):
        """Lets the node under the job die so often, with all that runs on it."""
        for attempt in range(1, times + 1):
            lines = wait_until(lambda: (text := self.output(name)).count("began") == attempt and text, what=f"attempt {attempt}")
            self.assertEqual(lines, "began\n" * attempt)
            [keeper] = self.s.pids("keeper").values()
            self.s.kill(keeper)

    def output(self, name):
        segment = self.s.shown(name)["jobOutputDirectoryPathSegment"]
        path = self.s.store("lab.file.team", segment, "stdouterr/stdout.txt")
        return path.read_text() if path.exists() else ""

    def test_job_of_a_lost_node_is_requeued_and_appends_to_the_same_files(self):
        self.s.cluster("c1", 1)
        line, let_go = gate(self.s, "go")
        first = self.s.custom("again", f"echo began; {line}; echo $AZ_BATCHAI_PREV_OUTPUT_OUT",
                              outputDirectories=[{"id": "OUT", "pathPrefix": TEAM}])
        wait_until(lambda: self.output("again"), what="the first attempt")
        # More urgent work has the node first when it is back, so that the job can be seen waiting.
        urgent, let_urgent_go = gate(self.s, "urgent")
        self.s.custom("urgent", urgent, schedulingPriority="high")
        self.s.kill(*self.s.pids("keeper").values(), *self.s.pids("agent").values())
        self.s.wait_for_job("urgent", "running")
        waits = self.s.shown("again")
        self.assertEqual((waits["executionState"], waits["executionInfo"]), ("queued", None))
        let_urgent_go()
        wait_until(lambda: self.output("again").count("began") == 2, what="the second attempt")
        let_go()
        job = self.s.wait_for_job("again")
        self.assert_succeeded(job)
        self.assertEqual(job["jobOutputDirectoryPathSegment"], first["jobOutputDirectoryPathSegment"])
        files = self.s.files("again")
        self.assertEqual(files["stdout.txt"].count("began\n"), 2)
        self.assertIn(f"{job['jobOutputDirectoryPathSegment']}/outputs", files["stdout.txt"])
        self.assertIn("1.0.0.1:", files["execution.log"])
        self.assertIn("1.0.0.2:", files["execution.log"])

    def test_retries_are_used_up(self):
        self.s.cluster("c1", 1)
        self.s.custom("hopeless", "echo began; exec sleep 600")
        self.lose("hopeless", 5)
        job = self.s.wait_for_job("hopeless")
        code, details = self.error_of(job)
        self.assertEqual((code, details["attempts"]), ("JobNodesLost", "5"))
        self.assertTrue(details["nodeId"].startswith("c1-"))
        self.assertIsNone(job["executionInfo"]["exitCode"])


class ClusterSize(BatchAiCase):
    """Clusters that shrink under a job, and those that choose their size."""

    def cluster_of(self, name, option):
        path = self.s.write(f"{name}.json", json.dumps({"properties": {
            "vmSize": "STANDARD_D2", "userAccountSettings": {"adminUserName": "ops", "adminUserPassword": "pw-of-ops"},
            "scaleSettings": {"manual": {"targetNodeCount": 1, "nodeDeallocationOption": option}},
            "nodeSetup": {"mountVolumes": {"azureFileShares": [
                {"azureFileUrl": "https://lab.file.core.windows.net/team", "relativeMountPath": "team"}]}}}}))
        self.s.az("cluster", "create", "-n", name, "-f", path)
        self.s.wait_for_cluster(name, idle=1)

    def shrink(self, name, option):
        """The cluster without its node, while a job runs there; how to let the job go."""
        self.cluster_of(name, option)
        line, let_go = gate(self.s, name)
        self.s.custom(name, line, cluster=name)
        self.addCleanup(let_go)
        self.s.wait_for_job(name, "running")
        change = {"properties": {"scaleSettings": {"manual": {"targetNodeCount": 0, "nodeDeallocationOption": option}}}}
        answer = self.s.ask("PATCH", f"{BASE}/clusters/{name}?{VERSION}", body=change)
        self.assertEqual(answer.status, 200, answer)
        return let_go

    def test_requeue(self):
        let_go = self.shrink("requeue", "requeue")
        job = self.s.wait_for_job("requeue", "queued")
        self.assertIsNone(job["executionInfo"])
        let_go()
        self.s.az("cluster", "resize", "-n", "requeue", "-t", 1)
        self.assert_succeeded(self.s.wait_for_job("requeue"))

    def test_terminate(self):
        self.shrink("terminate", "terminate")
        job = self.s.wait_for_job("terminate")
        self.assertEqual(self.error_of(job)[0], "JobTerminated")
        self.s.wait_for_cluster("terminate", idle=0, running=0, leaving=0)

    def test_wait_for_the_job(self):
        let_go = self.shrink("waits", "waitforjobcompletion")
        self.s.wait_for_cluster("waits", leaving=1)
        self.assertEqual(self.s.shown("waits")["executionState"], "running")
        let_go()
        self.assert_succeeded(self.s.wait_for_job("waits"))
        self.assertEqual(self.s.wait_for_cluster("waits", leaving=0)["currentNodeCount"], 0)

    def test_autoscale_grows_for_jobs_and_shrinks_when_idle(self):
        workspace = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.BatchAI/workspaces/quick"
        tags = {"location": "local", "tags": {"slipway.idleTimeoutSeconds": "1"}}
        self.assertEqual(self.s.ask("PUT", f"{workspace}?{VERSION}", body=tags).status, 200)
        self.s.az("cluster", "create", "-w", "quick", "-n", "auto", "-s", "STANDARD_D2", "--min", 0, "--max", 2,
                  "--vm-priority", "lowpriority", "-u", "ops", "-p", "pw-of-ops")

        def cluster():
            return self.s.az("cluster", "show", "-w", "quick", "-n", "auto")

        shown = cluster()
        self.assertEqual((shown["currentNodeCount"], shown["allocationState"]), (0, "steady"))
        path = self.s.write("auto.json", json.dumps({"properties": {
            "nodeCount": 2, "stdOutErrPathPrefix": "$AZ_BATCHAI_MOUNT_ROOT", "customToolkitSettings": {"commandLine": "echo hi"}}}))
        self.s.az("job", "create", "-w", "quick", "-n", "auto", "-c", "auto", "-f", path)
        self.s.ok("batchai", "job", "wait", "-w", "quick", "-n", "auto")
        wait_until(lambda: cluster()["currentNodeCount"] == 0, what="nodes that go when they are idle", every=0.1)
        self.assertEqual(cluster()["vmPriority"], "lowpriority")
        # Output on no mount is on the node's disk, and is listed all the same.
        listed = self.s.az("job", "file", "list", "-w", "quick", "-j", "auto")
        self.assertIn(("stdout.txt", 3), [(file["name"], file.get("contentLength")) for file in listed])

    def test_failed_setup_task_reports_node_reason_and_last_lines(self):
        self.s.az("cluster", "create", "-n", "broken", "-s", "STANDARD_D2", "-t", 1, "-u", "ops", "-p", "pw-of-ops",
                  "--storage-account-name", "lab", "--afs-name", "team", "--afs-mount-path", "team",
                  "--setup-task", "echo no such disk >&2; exit 9", "--setup-task-output", TEAM)
        shown = self.s.wait_for_cluster("broken", unusable=1)
        [error] = shown["errors"]
        details = {one["name"]: one["value"] for one in error["details"]}
        self.assertEqual((error["code"], details["nodeId"], details["exitCode"]), ("SetupTaskFailed", "broken-1", "9"))
        self.assertIn("no such disk", details["lastLines"])
        listed = [file["name"] for file in self.s.az("cluster", "file", "list", "-c", "broken")]
        self.assertEqual(listed, ["stderr-broken-1.txt", "stdout-broken-1.txt"])
        self.s.az("cluster", "resize", "-n", "broken", "-t", 0)
        self.assertEqual(self.s.wait_for_cluster("broken", unusable=0, leaving=0, preparing=0)["currentNodeCount"], 0)


class AccessControl(BatchAiCase):
    """Who is let in, and what nobody is shown."""

    routes = [
        ("GET", "/providers/Microsoft.BatchAI/operations"),
        ("GET", f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.BatchAI/locations/local/usages"),
        ("GET", f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.BatchAI/workspaces"),
        ("GET", f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.BatchAI/workspaces"),
        *[(verb, BASE) for verb in ("PUT", "PATCH", "GET", "DELETE")],
        ("GET", f"{BASE}/experiments"),
        *[(verb, f"{BASE}/experiments/{EXPERIMENT}") for verb in ("PUT", "GET", "DELETE")],
        ("GET", f"{BASE}/experiments/{EXPERIMENT}/jobs"),
        *[(verb, f"{BASE}/experiments/{EXPERIMENT}/jobs/j") for verb in ("PUT", "GET", "DELETE")],
        *[("POST", f"{BASE}/experiments/{EXPERIMENT}/jobs/j/{action}")
          for action in ("terminate", "listOutputFiles", "listRemoteLoginInformation")],
        ("GET", f"{BASE}/clusters"),
        *[(verb, f"{BASE}/clusters/c1") for verb in ("PUT", "PATCH", "GET", "DELETE")],
        ("POST", f"{BASE}/clusters/c1/listRemoteLoginInformation"),
        ("GET", f"{BASE}/fileServers"),
        *[(verb, f"{BASE}/fileServers/nas") for verb in ("PUT", "GET", "DELETE")],
        *[("GET", f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.BatchAI/locations/local/{kind}/1")
          for kind in ("operationresults", "operationstatuses")],
    ]

    def test_no_access_without_a_token(self):
        for verb, path in self.routes:
            for token in (None, "nonsense"):
                answer = self.s.ask(verb, f"{path}?{VERSION}", body={} if verb in ("PUT", "PATCH") else None, token=token)
                self.assertEqual((answer.status, answer.json["error"]["code"]), (401, "AuthenticationFailed"), (verb, path))

    def test_another_workspace_sees_nothing_of_it(self):
        self.s.cluster("mine", 1)
        self.s.custom("secretive", "true", cluster="mine")
        self.s.wait_for_job("secretive")
        [link] = [file["downloadUrl"] for file in self.s.az("job", "file", "list", "-j", "secretive")
                  if file["name"] == "stdout.txt"]
        request = {"name": "ben", "role": "admin", "workspace": "elsewhere"}
        other = self.s.ask("POST", "/v1/tokens", body=request).json["token"]
        for path in (BASE, f"{BASE}/clusters/mine", f"{BASE}/experiments/{EXPERIMENT}",
                     f"{BASE}/experiments/{EXPERIMENT}/jobs/secretive"):
            self.assertEqual(self.s.ask("GET", f"{path}?{VERSION}", token=other).status, 404, path)
            self.assertEqual(self.s.ask("GET", f"{path}?{VERSION}").status, 200, path)
        listed = self.s.ask("GET", f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.BatchAI/workspaces?{VERSION}", token=other)
        self.assertEqual(listed.json["value"], [])
        # A link is a signature over one file; of another it opens nothing.
        path = link.split("/", 3)[3]
        self.assertEqual(self.s.ask("GET", "/" + path, token=None).status, 200)
        self.assertIn(self.s.ask("GET", "/" + path.replace("stdout.txt", "stderr.txt"), token=None).status, (400, 401, 403, 404))

    def test_secrets_are_in_no_answer_and_in_no_file(self):
        s = BatchAiService(variables={"AZURE_BATCHAI_STORAGE_KEY": "hush-account-key"})
        self.addCleanup(s.close)
        secrets = {name: f"hush-{name}-value" for name in ("password", "setup", "job", "registry", "server")}
        cluster = s.write("cluster.json", json.dumps({"properties": {
            "vmSize": "STANDARD_D2", "scaleSettings": {"manual": {"targetNodeCount": 1}},
            "userAccountSettings": {"adminUserName": "ops", "adminUserPassword": secrets["password"]},
            "nodeSetup": {
                "setupTask": {"commandLine": "[ ${#KEY} = 16 ]", "stdOutErrPathPrefix": TEAM,
                              "secrets": [{"name": "KEY", "value": secrets["setup"]}]},
                "mountVolumes": {"azureFileShares": [{
                    "azureFileUrl": "https://lab.file.core.windows.net/team", "relativeMountPath": "team",
                    "credentials": {"accountKey": "<AZURE_BATCHAI_STORAGE_KEY>"}}]}}}}))
        s.az("cluster", "create", "-n", "c1", "-f", cluster)
        s.az("file-server", "create", "-n", "nas", "-s", "STANDARD_D2", "--disk-count", 1, "--disk-size", 1, "--storage-sku",
             "Standard_LRS", "-u", "ops", "-p", secrets["server"])
        s.wait_for_cluster(idle=1)
        s.custom("hush", "[ ${#TOKEN} = 14 ]", secrets=[{"name": "TOKEN", "value": secrets["job"]}],
                 jobPreparation={"commandLine": "[ ${#TOKEN} = 14 ]"},
                 containerSettings={"imageSourceRegistry": {"image": "lab/box", "credentials": {
                     "username": "ci", "password": secrets["registry"]}}})
        self.assert_succeeded(s.wait_for_job("hush"))
        answers = [s.ask("GET", f"{path}?{VERSION}").body for path in (
            BASE, f"{BASE}/clusters", f"{BASE}/clusters/c1", f"{BASE}/fileServers", f"{BASE}/fileServers/nas",
            f"{BASE}/experiments/{EXPERIMENT}/jobs", f"{BASE}/experiments/{EXPERIMENT}/jobs/hush")]
        answers += [s.ask("GET", path).body for path in ("/v1/jobs", "/v1/jobs/hush", "/v1/jobs/hush/tasks/run", "/v1/pools",
                                                        "/v1/pools/c1", "/v1/nodes", "/v1/events", "/v1/datastores")]
        for answer in answers:
            self.assertNotIn(b"hush-", answer)
        s.down()
        found = subprocess.run(["grep", "-rlas", "hush-[a-z]*-", s.data], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(found.stdout, "")


if __name__ == "__main__":
    unittest.main()
