"""Batch AI's command lines as its documents print them, with `az` for the program's name."""

import json
import os
import subprocess
import unittest

from batchai import BatchAiCase, BatchAiService
from harness import SLIPWAY, SlipwayCase, wait_until


class Published(BatchAiCase):
    def test_az_is_a_link(self):
        """az login; az group …: with a link of that name, as the guide has it."""
        link = os.path.join(self.s.base, "az")
        os.symlink(SLIPWAY, link)
        ran = subprocess.run([link, "login", "-u", "me", "-p", "x"], env=self.s.environment(), capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(f"The service is {self.s.url}; you are admin", ran.stderr)
        self.assertEqual(json.loads(ran.stdout)[0]["user"]["name"], "admin")

    def test_an_account_is_a_name_with_a_key(self):
        made = self.s.ok("storage", "account", "create", "-n", "batchaisample", "--sku", "Standard_LRS", "-g", "ml", "-l", "eastus").json
        self.assertEqual((made["name"], made["provisioningState"]), ("batchaisample", "Succeeded"))
        keys = self.s.ok("storage", "account", "keys", "list", "-n", "batchaisample", "-g", "ml").json
        self.assertEqual([key["keyName"] for key in keys], ["key1", "key2"])
        text = self.s.ok("storage", "account", "show-connection-string", "-n", "batchaisample", "-g", "ml").json["connectionString"]
        self.assertIn("AccountKey=" + keys[0]["value"], text)
        self.s.ok("storage", "share", "create", "-n", "logs", "--connection-string", text)
        self.s.ok("storage", "share", "create", "-n", "data", "--account-name", "batchaisample", "--account-key", keys[0]["value"])
        names = [store["name"] for store in self.s.get("/v1/datastores")["items"]]
        self.assertLessEqual({"batchaisample.file.logs", "batchaisample.file.data"}, set(names))

    def test_options_that_a_verb_does_not_need(self):
        self.s.cluster("spare", 0)
        ran = self.s.ok("batchai", "cluster", "delete", "-w", "main", "-e", "digits", "--name", "spare", "-y")
        self.assertIn("note:  -e is not used by slipway batchai cluster delete\n", ran.err)

    def test_deleting_needs_yes_without_a_terminal(self):
        self.s.ok("group", "create", "-n", "kept", "-l", "eastus")
        self.s.refused("group", "delete", "-n", "kept", says="--yes")
        self.assertEqual(self.s.ok("group", "exists", "-n", "kept").out.strip(), "true")
        self.s.ok("group", "delete", "-n", "kept", "--yes")

    def test_deleting_a_job_that_does_not_exist(self):
        ran = self.s.ok("batchai", "job", "delete", "-n", "nothing", "-y")
        self.assertIn("note:  there is no nothing: nothing was deleted", ran.err)

    def test_stream_file_of_a_gang_follows_all_its_files(self):
        self.s.cluster("gang", 2)
        # A parameter server that has not printed when the workers end would be stopped before it does.
        self.s.put("lab.file.team", "two.py",
                   "import glob, os, sys, time\nprint('to err', file=sys.stderr, flush=True)\n"
                   "open(f'{__file__}.{os.getpid()}', 'w').close()\nwhile len(glob.glob(__file__ + '.*')) < 3: time.sleep(0.01)\n")
        self.s.create("two", {"nodeCount": 2, "stdOutErrPathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/team",
                              "tensorFlowSettings": {"pythonScriptFilePath": "$AZ_BATCHAI_MOUNT_ROOT/team/two.py",
                                                     "pythonInterpreterPath": "python3", "workerCount": 2, "parameterServerCount": 1}}, "gang")
        ran = self.s.ok("batchai", "job", "stream-file", "-j", "two", "--name", "stderr.txt")
        self.assertRegex(ran.err, r"There is no stderr\.txt, but one of each process: stderr-ps-0\.txt, stderr-wk-0\.txt, stderr-wk-1\.txt\.")
        self.assertEqual(sorted(ran.out.splitlines()), ["[ps-0] to err", "[wk-0] to err", "[wk-1] to err"])


class Containers(SlipwayCase):
    BOX = {"imageSourceRegistry": {"image": "lab/box:1"}}

    def test_where_jobs_with_a_container_run_without_an_engine(self):
        s = BatchAiService(variables={"SLIPWAY_BATCHAI_CONTAINERS": ""})
        self.addCleanup(s.close)
        s.cluster("c1", 1)
        run = lambda name, line="true": (s.custom(name, line, containerSettings=self.BOX), s.wait_for_job(name))[1]
        failed = run("refused")
        [error] = failed["executionInfo"]["errors"]
        self.assertEqual(error["code"], "FailedStartingContainer")
        info = next(one["value"] for one in error["details"] if one["name"] == "Info")
        self.assertIn("podman, apptainer or docker", info)
        self.assertIn("slipway batchai cluster update -g ml -w main -n c1 --containers host", info)

        s.az("cluster", "update", "-n", "c1", "--containers", "host")
        self.assertEqual(run("cluster")["executionState"], "succeeded")
        s.az("cluster", "update", "-n", "c1", "--containers", "engine")
        s.az("workspace", "update", "-n", "main", "--containers", "host")
        self.assertEqual(run("not-here")["executionState"], "failed", "the cluster's own word comes first")
        s.az("cluster", "delete", "-n", "c1", "-y")
        s.cluster("c1", 1)
        self.assertEqual(run("workspace")["executionState"], "succeeded", "a new cluster of the name has no word of its own")
        s.az("workspace", "update", "-n", "main", "--containers", "engine")
        self.assertEqual(run("again")["executionState"], "failed")

        # The table of images.
        s.write("env/bin/tool", "#!/bin/sh\necho of the environment, $VIRTUAL_ENV\n")
        os.chmod(os.path.join(s.base, "env/bin/tool"), 0o755)
        s.az("image", "set", "--image", "lab/box", "--environment", os.path.join(s.base, "env"))
        self.assertEqual([row["image"] for row in s.az("image", "list")], ["lab/box"])
        self.assertEqual(run("table", "tool")["executionState"], "succeeded")
        self.assertEqual(s.files("table")["stdout.txt"], f"of the environment, {s.base}/env\n")
        s.az("image", "delete", "--image", "lab/box", "-y")
        self.assertEqual(run("without", "tool")["executionState"], "failed")


class Joined(SlipwayCase):
    def test_a_cluster_on_nodes_that_joined(self):
        s = BatchAiService()
        self.addCleanup(s.close)
        s.ok("pool", "create", "rack", "--provisioner", "none", "--tag", "size=Standard_NC12")
        s.ok("token", "create", "rack", "--role", "node", "--uses", 2, "--to", "join")
        agents = [s.spawn("node", "run", "--service", s.url, "--token-file", "join", "--pool", "rack", "--name", name,
                          "--folder", os.path.join(s.base, name), "--cores", 1) for name in ("big-1", "big-2")]
        s.wait_for_nodes(2, "rack")
        for size in ("rack", "STANDARD_NC12"):
            s.az("cluster", "create", "-n", "mine", "-s", size, "-t", 2, "-u", "ops", "-p", "pw", "--storage-account-name", "lab",
                 "--afs-name", "team", "--afs-mount-path", "team")
            cluster = s.wait_for_cluster("mine", idle=2)
            self.assertEqual((cluster["currentNodeCount"], cluster["allocationState"]), (2, "steady"))
            s.refused("batchai", "cluster", "create", "-n", "other", "-s", "rack", "-t", 1, "-u", "ops", "-p", "pw",
                      says="the nodes of pool rack are those of the cluster mine already")
            s.create(f"hello-{size.lower()}", {"nodeCount": 2, "customToolkitSettings": {"commandLine": "echo on $AZ_BATCHAI_NUM_GPUS"},
                                               "stdOutErrPathPrefix": "$AZ_BATCHAI_JOB_TEMP"}, "mine")
            done = s.wait_for_job(f"hello-{size.lower()}")
            self.assertEqual(done["executionState"], "succeeded", done)
            self.assertEqual(s.az("cluster", "resize", "-n", "mine", "-t", 1)["scaleSettings"]["manual"]["targetNodeCount"], 1)
            s.az("cluster", "delete", "-n", "mine", "-y")
            self.assertEqual(s.az("cluster", "list"), [])
            pool = s.get("/v1/pools/rack")
            self.assertEqual((pool["state"], pool["tags"]), ("steady", {"size": "Standard_NC12"}))
            s.wait_for_nodes(2, "rack")
        s.az("cluster", "create", "-n", "mine", "-s", "rack", "-t", 1, "-u", "ops", "-p", "pw")
        s.create("long", {"nodeCount": 1, "customToolkitSettings": {"commandLine": "sleep 1000"},
                          "stdOutErrPathPrefix": "$AZ_BATCHAI_JOB_TEMP"}, "mine")
        s.wait_for_job("long", "running")
        s.az("cluster", "delete", "-n", "mine", "-y")
        s.wait_for_job("long", "failed")
        wait_until(lambda: all(node["state"] == "idle" for node in s.get("/v1/nodes?pool=rack")["items"]), what="the nodes are free")
        for agent in agents:
            agent.terminate()
            agent.wait(60)


if __name__ == "__main__":
    unittest.main()
