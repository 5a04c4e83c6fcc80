"""The environment of a task: mounts, preparation, secrets, kept logs, ssh between the nodes of a gang."""
import json
import os
import pathlib
import subprocess
import unittest

from harness import Service, wait_until
from test_contain import make_rootfs, may_mount

ROOT = "/mnt/batch/tasks/shared/LS_root"


def job(service, name="j", **task):
    task = {"name": "t", "mount_root": ROOT, "command": "true", **task}
    return service.write(f"{name}.json", json.dumps({"name": name, "pool": "lab", "tasks": [task]}))


class TaskEnvironment(unittest.TestCase):
    variables = {}

    def setUp(self):
        self.service = Service(variables=self.variables)
        self.addCleanup(self.service.close)
        self.service.ok("pool", "create", "lab", "--nodes", 2, "--cores-per-node", 1, "--memory-per-node", "64MiB",
                        "--overcommit")
        self.store = pathlib.Path(self.service.data) / "workspaces/default/datastores/ext"

    def run_job(self, path, fails=False):
        ran = self.service.run("job", "submit", path, "--wait")
        self.assertEqual(ran.code != 0, fails, ran.err)
        return ran

    def test_every_process_sees_the_mounts_and_its_output_is_kept_there(self):
        path = job(self.service, nodes=2, mounts=[{"at": "mounts/ext", "datastore": "ext"}],
                   folders=[f"{ROOT}/mounts/ext/out"], logs=f"{ROOT}/mounts/ext/logs",
                   texts={f"{ROOT}/jobs/hosts": "{hosts}"},
                   command=f"cat {ROOT}/jobs/hosts; echo $SLIPWAY_RANK > $SLIPWAY_MOUNTS/mounts/ext/out/$SLIPWAY_RANK; pwd")
        self.run_job(path)
        self.assertEqual({p.name: p.read_text() for p in (self.store / "out").iterdir()}, {"0": "0\n", "1": "1\n"})
        output = (self.store / "logs/stdout-1.txt").read_text()
        self.assertIn("127.64.0.1,127.64.0.2", output)
        self.assertEqual(self.service.run("logs", "j/t/1").out, output)
        self.assertIn("exited with code 0", (self.store / "logs/execution-lab-2.log").read_text())
        self.assertFalse(os.path.exists("/mnt/batch"), "the machine itself is not changed")

    def test_nothing_starts_before_every_node_is_prepared(self):
        path = job(self.service, nodes=2, mounts=[{"at": "s", "shared": True}],
                   prepare="[ $SLIPWAY_NODE = lab-2 ] && sleep 0.5; touch $SLIPWAY_MOUNTS/s/$SLIPWAY_NODE",
                   command=f"ls {ROOT}/s", logs=f"{ROOT}/logs")
        self.run_job(path)
        self.assertEqual(self.service.run("logs", "j/t/0").out, "lab-1\nlab-2\n")

    def test_failed_preparation_reports_its_node_and_last_lines(self):
        path = job(self.service, prepare="echo no such package >&2; exit 3")
        self.run_job(path, fails=True)
        shown = self.service.get("/v1/jobs/j")
        self.assertEqual((shown["state"], shown["end"], shown["exit_code"]), ("failed", "preparation_failed", 3))
        self.assertRegex(shown["reason"], "its preparation on node lab-[12] ended with exit code 3")
        self.assertIn("no such package", self.service.get("/v1/jobs/j/tasks/t")["last_lines"])

    def test_preparation_continues_after_the_agent_is_killed(self):
        path = job(self.service, mounts=[{"at": "s", "shared": True}],
                   prepare="touch $SLIPWAY_MOUNTS/s/began; until [ -e $SLIPWAY_MOUNTS/s/go ]; do sleep 0.05; done",
                   command="true")
        self.service.ok("job", "submit", path)
        shared = pathlib.Path(self.service.data) / "workspaces/default/jobs/job_1/_shared"
        wait_until(lambda: (shared / "began").exists(), what="the preparation")
        for agent in pathlib.Path(self.service.data).rglob("agent.pid"):
            os.kill(int(agent.read_text()), 9)
        (shared / "go").touch()
        self.assertEqual(self.service.run("job", "wait", "j").code, 0)

    def test_secrets_reach_only_the_process(self):
        path = job(self.service, secrets={"TOKEN": "hush-hush"}, prepare="[ ${#TOKEN} = 9 ]", command="[ ${#TOKEN} = 9 ]")
        self.run_job(path)
        for target in ("/v1/jobs/j", "/v1/jobs/j/tasks/t", "/v1/jobs/j/tasks/t/attempts", "/v1/events"):
            self.assertNotIn("hush-hush", json.dumps(self.service.get(target)))
        self.assertEqual(self.service.get("/v1/jobs/j")["spec"]["tasks"][0]["secrets"], {"TOKEN": ""})
        self.service.down()
        found = subprocess.run(["grep", "-rlas", "hush-hush", self.service.data], stdout=subprocess.PIPE, text=True)
        self.assertEqual(found.stdout, "")
        self.assertEqual(os.stat(pathlib.Path(self.service.data) / "secret.key").st_mode & 0o777, 0o600)

    def test_one_process_reaches_other_nodes_by_ssh(self):
        path = job(self.service, nodes=2, toolkit="ssh", mounts=[{"at": "x", "datastore": "ext"}],
                   process_environment={"HOSTS": "{hosts}"},
                   command='ssh ${HOSTS##*,} "echo done on \\$SLIPWAY_NODE; ls -d $SLIPWAY_MOUNTS/x"; ssh nowhere true')
        self.run_job(path, fails=True)
        out = self.service.run("logs", "j/t/launcher").out
        self.assertIn("done on lab-2", out)

    def test_a_container_sees_the_same_mounts(self):
        if not may_mount():
            self.skipTest("no mount namespaces here")
        rootfs = make_rootfs(os.path.join(self.service.base, "rootfs"))
        path = job(self.service, mounts=[{"at": "mounts/ext", "datastore": "ext"}], container={"rootfs": rootfs},
                   logs=f"{ROOT}/mounts/ext/logs",
                   command=["/bin/sh", "-c", f"cat /etc/marker > {ROOT}/mounts/ext/f; cat {ROOT}/mounts/ext/f"])
        self.run_job(path)
        self.assertEqual((self.store / "logs/stdout.txt").read_text(), "another root\n")
        self.assertEqual((self.store / "f").read_text(), "another root\n")

    def test_invalid_mounts_are_refused_with_a_hint(self):
        for task, message in (({"mounts": [{"at": "../x", "datastore": "a"}]}, "plain relative path"),
                            ({"mounts": [{"at": "x"}]}, "one thing to mount"),
                            ({"mounts": [{"at": "x", "path": "rel"}]}, "plain absolute path"),
                            ({"folders": ["/elsewhere/x"]}, "is not under its mount root"),
                            ({"logs": f"{ROOT}/../x"}, "is not under its mount root"),
                            ({"mount_root": "mnt"}, "mount_root 'mnt' is not a plain absolute path")):
            ran = self.service.run("job", "submit", job(self.service, **task))
            self.assertNotEqual(ran.code, 0, task)
            self.assertIn(message, ran.err)

    def test_a_mount_command_is_run_and_undone(self):
        if os.geteuid() != 0:
            self.skipTest("only root may mount")
        source = pathlib.Path(self.service.data) / "exported"
        source.mkdir()
        (source / "f").write_text("there\n")
        path = job(self.service, mounts=[{"at": "m", "command": f"mount --bind {source}"}], command=f"cat {ROOT}/m/f")
        self.run_job(path)
        self.assertEqual(self.service.run("logs", "j").out, "there\n")
        wait_until(lambda: str(self.service.data) not in pathlib.Path("/proc/self/mountinfo").read_text(),
                   what="the mount to be undone")
        self.service.ok("job", "delete", "j", "--yes")
        self.assertEqual((source / "f").read_text(), "there\n")
        failing = job(self.service, name="k", mounts=[{"at": "m", "command": "mount -t nosuch nas:/x"}], retries=0)
        self.service.ok("job", "submit", failing)
        wait_until(lambda: "mount -t nosuch nas:/x" in json.dumps(self.service.get("/v1/jobs/k/why")), what="the reason")


class WithoutNamespaces(TaskEnvironment):
    """Without mount namespaces the mounts are symbolic links, and the variables point to them."""

    variables = {"SLIPWAY_NO_NAMESPACES": "1"}

    # Neither uses a view of mounts: ssh reaches other nodes, and a container needs namespaces.
    test_one_process_reaches_other_nodes_by_ssh = None
    test_a_container_sees_the_same_mounts = None


if __name__ == "__main__":
    unittest.main()
