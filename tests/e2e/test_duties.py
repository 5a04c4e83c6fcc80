"""What is to happen while a process runs and after it has ended, when agents are killed before, while and after.

Agents are killed with SIGKILL, alone (then they are restarted at once) or together with the service, so that
processes end while there is neither.
"""

import os
import pathlib
import random
import signal
import subprocess
import time
import unittest

from harness import SlipwayCase, blocker, job, shell, wait_until
from test_blob_sync import KEY, Azurite

ROOT = "/mnt/duties"


class DutiesCase(SlipwayCase):
    def setUp(self):
        super().setUp()
        self.s = self.service()
        self.s.pool("lab", 2)

    def start(self, command, name="t", **more):
        """A task that runs `command` when it may; gives the job and what lets it continue."""
        wait, release = blocker(self.s.base, f"go-{name}")
        submitted = self.s.submit({"name": f"j-{name}", "pool": "lab",
                                   "tasks": [{"name": "t", "command": f"{wait}; {command}", **more}]})
        self.s.wait_for_task(submitted, "t", "running")
        return submitted, release

    def kill_agents(self):
        """All of them; gives how many there were."""
        agents = list(self.s.pids("agent").values())
        self.s.kill(*agents)
        return len(agents)

    def kill_service_and_agents(self):
        self.s.kill_service()
        self.kill_agents()
        self.assertEqual(self.s.pids("agent"), {})

    def attempts(self, job):
        return self.s.get(f"/v1/jobs/{job}/tasks/t/attempts")["items"]

    def wait_for_end_on_node(self, path):
        """Nobody hears of the end of a process; its parent's shell has removed this file before."""
        wait_until(lambda: not os.path.exists(path), what="the process has ended")


class WhileItRuns(DutiesCase):
    def test_stall_timeout_fires_after_the_agent_was_killed(self):
        submitted = self.s.submit({"name": "j", "pool": "lab", "tasks": [
            {"name": "t", "command": "echo begun; exec sleep 1000", "silence_timeout": "2s", "stop_grace": 0}]})
        self.s.wait_for_task(submitted, "t", "running")
        self.assertGreater(self.kill_agents(), 0)
        shown = self.s.wait_for(submitted, "failed")
        self.assertEqual(shown["end"], "timed_out", shown)
        self.assertIn("2 s", shown["reason"])

    def test_wall_time_limit_holds_while_the_service_is_down(self):
        submitted = self.s.submit({"name": "j", "pool": "lab", "tasks": [
            {"name": "t", "command": "exec sleep 86399", "max_wall_time": "3s", "stop_grace": 0}]})
        self.s.wait_for_task(submitted, "t", "running")
        self.s.kill_service()
        running = lambda: [pid for pid, line in self.s.survivors().items() if "86399" in line]
        self.assertTrue(running())
        wait_until(lambda: not running(), what="its node ends it")
        self.s.up()
        shown = self.s.wait_for(submitted, "failed")
        self.assertEqual(shown["end"], "timed_out", shown)

    def test_eviction_deadline_holds_after_the_agent_was_killed(self):
        submitted = self.s.submit({"name": "j", "pool": "lab", "tasks": [
            {"name": "t", "command": "trap '' TERM; echo deaf; until [ -e never ]; do sleep 0.05; done", "interruptions_max": 1}]})
        wait_until(lambda: self.s.task(submitted, "t")["state"] == "running" and self.s.log(submitted, "t"), what="it ignores SIGTERM")
        (node,) = self.s.task(submitted, "t")["nodes"]
        self.s.ok("node", "evict", node, "--notice", "2s")
        self.s.wait_for_task(submitted, "t", "stopping")
        self.kill_service_and_agents()
        running = lambda: [pid for pid, line in self.s.survivors().items() if "until [ -e" in line]
        self.assertTrue(running())
        wait_until(lambda: not running(), what="the keeper ends it at the deadline")
        self.s.up()
        self.assertEqual(self.s.wait_for(submitted, "failed")["end"], "evicted")


class Afterwards(DutiesCase):
    def test_last_lines_of_a_process_that_ended_without_an_agent(self):
        done = self.s.write("there", "")
        submitted, release = self.start(f"echo a reason >&2; rm {done}; exit 3")
        self.kill_service_and_agents()
        release()
        self.wait_for_end_on_node(done)
        self.s.up()
        self.assertEqual(self.s.wait_for(submitted, "failed")["exit_code"], 3)
        self.assertEqual(self.s.task(submitted, "t")["last_lines"].strip(), "a reason")

    def test_last_lines_after_the_agent_was_replaced(self):
        submitted, release = self.start("echo a reason >&2; exit 3")
        self.kill_agents()
        self.s.wait_for_nodes(2)
        release()
        self.s.wait_for(submitted, "failed")
        self.assertEqual(self.s.task(submitted, "t")["last_lines"].strip(), "a reason")


class Mounts(DutiesCase):
    """A mount command is undone, whoever was killed since it was run."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root may mount")
        super().setUp()
        self.source = pathlib.Path(self.s.base) / "exported"
        self.source.mkdir()
        (self.source / "f").write_text("there\n")
        self.mounted = {"mount_root": ROOT, "mounts": [{"at": "m", "command": f"mount --bind {self.source}"}]}

    def is_mounted(self):
        return self.s.data in pathlib.Path("/proc/self/mountinfo").read_text()

    def check_undone(self):
        wait_until(lambda: not self.is_mounted(), what="the mount to be undone")
        self.assertEqual((self.source / "f").read_text(), "there\n")

    def test_after_the_agent_was_killed(self):
        submitted, release = self.start(f"cat {ROOT}/m/f", **self.mounted)
        self.assertTrue(self.is_mounted())
        self.kill_agents()
        release()
        self.s.wait_for(submitted, "succeeded")
        self.assertEqual(self.s.log(submitted, "t"), "there\n")
        self.check_undone()

    def test_after_it_ended_without_an_agent(self):
        done = self.s.write("there", "")
        submitted, release = self.start(f"rm {done}", **self.mounted)
        self.kill_service_and_agents()
        release()
        self.wait_for_end_on_node(done)
        self.assertTrue(self.is_mounted())
        self.s.up()
        self.s.wait_for(submitted, "succeeded")
        self.check_undone()

    def test_of_a_task_that_was_cancelled_before_it_started(self):
        """The node is prepared, and then neither service nor agent is there until the job is gone."""
        submitted = self.s.submit({"name": "j", "pool": "lab", "tasks": [
            {"name": "t", "command": "true", "mount_root": ROOT, "prepare": "exec sleep 1000",
             "mounts": [{"at": "m", "command": f"mount --bind {self.source}"}]}]})
        wait_until(self.is_mounted, what="the mount")
        self.kill_agents()
        self.s.ok("job", "cancel", submitted)
        self.s.wait_for(submitted, "cancelled")
        self.check_undone()

    def test_that_could_not_all_be_made(self):
        self.mounted["mounts"].append({"at": "n", "command": "mount -t nosuch nas:/x"})
        submitted = self.s.submit({"name": "j", "pool": "lab", "tasks": [
            {"name": "t", "command": "true", "interruptions_max": 1, **self.mounted}]})
        self.s.wait_for(submitted, "failed")
        self.check_undone()


class Outputs(DutiesCase):
    """What a task writes into a copy of a container is sent before its success is on record."""

    def setUp(self):
        super().setUp()
        self.store = Azurite(self.s.base)
        self.addCleanup(self.store.stop)
        self.store.ask("PUT", "/data?restype=container")
        key = self.s.write("key", KEY)
        self.s.ok("datastore", "create", "lab.blob.data", "--url", self.store.url(), "--key-file", key)
        os.remove(key)
        self.mounted = {"mounts": [{"at": "d", "datastore": "lab.blob.data"}]}

    def check_sent(self, job, **files):
        shown = self.s.wait_for(job)
        self.assertEqual(self.store.names(), files, "sent by the time the job has ended")
        self.assertEqual(shown["state"], "succeeded", shown)
        self.assertEqual(len(self.attempts(job)), 1)

    def test_after_the_agent_was_killed_while_it_ran(self):
        submitted, release = self.start("echo 1 > $SLIPWAY_MOUNTS/d/out", **self.mounted)
        found = subprocess.run(["grep", "-rlas", KEY, self.s.data], stdout=subprocess.PIPE, text=True)
        self.assertEqual(found.stdout, "", "the key is nowhere in clear")
        self.kill_agents()
        release()
        self.check_sent(submitted, out=2)

    def test_after_it_ended_without_an_agent(self):
        done = self.s.write("there", "")
        submitted, release = self.start(f"echo 1 > $SLIPWAY_MOUNTS/d/out; rm {done}", **self.mounted)
        self.kill_service_and_agents()
        release()
        self.wait_for_end_on_node(done)
        self.s.up()
        self.check_sent(submitted, out=2)

    def test_agents_killed_again_and_again(self):
        submitted, release = self.start(
            "for i in 1 2 3; do head -c 20000000 /dev/urandom > $SLIPWAY_MOUNTS/d/out$i; done", **self.mounted)
        release()
        killed = 0
        while killed < 12 and self.s.job(submitted)["state"] not in ("succeeded", "failed"):
            wait_until(lambda: len(self.s.pids("agent")) == 2, what="both agents")
            time.sleep(random.uniform(0, 0.3))  # how long they live, not a wait for something
            killed += self.kill_agents()
        self.assertGreaterEqual(killed, 2, "both, while the task ran or its outputs were sent")
        self.check_sent(submitted, out1=20000000, out2=20000000, out3=20000000)
        both = self.s.submit(job(shell("t", "true", nodes=2)))  # runs when both agents are back
        self.assertEqual(self.s.wait_for(both)["state"], "succeeded")

    def test_keeper_killed_while_they_are_sent(self):
        """The keeper runs what sends them; the next one says that it was lost, and it is run again."""
        submitted, release = self.start("echo 1 > $SLIPWAY_MOUNTS/d/out", **self.mounted)
        (node,) = self.s.task(submitted, "t")["nodes"]
        self.store.child.send_signal(signal.SIGSTOP)
        release()
        pushing = lambda: [pid for pid, line in self.s.survivors().items() if "sync-datastore push" in line]
        wait_until(pushing, what="a push")
        self.s.kill(self.s.keeper(node), self.s.agent(node))
        self.store.child.send_signal(signal.SIGCONT)
        self.check_sent(submitted, out=2)
        self.s.wait_for_nodes(2)

    def test_failed_push_uses_no_retry(self):
        submitted, release = self.start("echo 1 > $SLIPWAY_MOUNTS/d/out", retries=0, **self.mounted)
        self.store.stop()
        release()
        wait_until(lambda: len(self.attempts(submitted)) > 1, what="a second attempt")
        self.store.start()
        shown = self.s.wait_for(submitted)
        self.assertEqual(shown["state"], "succeeded", shown)
        first = self.attempts(submitted)[0]
        self.assertEqual(first["end"], "outputs_lost", first)
        self.assertIn("exited with code 0, but what it wrote was not sent: sending " + self.store.url(), first["detail"])
        self.assertEqual(self.s.task(submitted, "t")["retries_used"], 0)
        self.assertEqual(self.store.names(), {"out": 2})

    def test_failure_of_the_task_is_its_reason_also_without_a_store(self):
        submitted, release = self.start("exit 3", **self.mounted)
        self.store.stop()
        release()
        shown = self.s.wait_for(submitted, "failed")
        self.assertEqual((shown["end"], shown["exit_code"]), ("exited", 3))
        self.assertIn("what it wrote was not sent", shown["reason"])


if __name__ == "__main__":
    unittest.main()
