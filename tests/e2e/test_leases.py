"""Leases: the processes of two attempts of one task never run at the same time, whatever is stopped, cut or killed.

Every task keeps a ledger (ledger.py).
"""

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from harness import SlipwayCase, blocker, is_alive, job, shell, wait_until
from ledger import FarNode, Ledger, Link

LEASE = 2.0  # seconds: given up after 2.6


class LeaseCase(SlipwayCase):
    def agents(self, s, *names, **options):
        for name in names:
            self.nodes[name] = FarNode(s, name, **options)
            self.addCleanup(self.nodes[name].stop)
        s.wait_for_nodes(len(self.nodes), "far")

    def setUp(self):
        super().setUp()
        self.nodes = {}

    def far_pool(self, *more, nodes=("n1", "n2"), **options):
        s = self.service(**options)
        s.ok("pool", "create", "far", "--provisioner", "none", "--lease", f"{LEASE}s", *more)
        self.agents(s, *nodes)
        return s

    def start(self, s, pool="far", **more):
        ledger = Ledger(os.path.join(s.base, "ledger"))
        submitted = s.submit({**job(ledger.task(**more)), "pool": pool})
        s.wait_for_task(submitted, "one", "running")
        wait_until(ledger.lines, what="the first line")
        (node,) = s.task(submitted, "one")["nodes"]
        return ledger, submitted, node

    def wait_for_attempt(self, s, ledger, submitted, number):
        wait_until(lambda: number in ledger.attempts(), what=f"a line of attempt {number}")
        lines = len(ledger.lines())
        wait_until(lambda: len(ledger.lines()) > lines + 20, what="it continues")


class OneLiveAttempt(LeaseCase):
    def check_moved(self, s, ledger, submitted, node):
        self.wait_for_attempt(s, ledger, submitted, 2)
        self.assertLessEqual(ledger.overlap(), 0)
        task = s.task(submitted, "one")
        self.assertEqual(task["history"][0]["end"], "node_lost", task)
        self.assertEqual(task["retries_used"], 0)
        s.ok("job", "cancel", submitted)
        s.wait_for(submitted, "cancelled")

    def test_agent_keeper_and_guard_killed_and_the_node_started_again(self):
        s = self.far_pool()
        ledger, submitted, node = self.start(s, daemon=True)
        self.nodes[node].stop()
        left = len(ledger.lines())
        wait_until(lambda: len(ledger.lines()) > left, what="the daemon of the task lives on")
        self.nodes[node].start()  # as systemd does
        self.check_moved(s, ledger, submitted, node)

    def test_agent_that_is_stopped(self):
        s = self.far_pool()
        ledger, submitted, node = self.start(s)
        agent = self.nodes[node].agent()
        os.kill(agent, signal.SIGSTOP)
        self.check_moved(s, ledger, submitted, node)
        os.kill(agent, signal.SIGCONT)
        s.wait_for_nodes(2, "far")
        self.assertLessEqual(ledger.overlap(), 0)

    def test_keeper_that_is_stopped_while_its_agent_is_killed(self):
        s = self.far_pool()
        ledger, submitted, node = self.start(s)
        keeper = self.nodes[node].keeper()
        os.kill(keeper, signal.SIGSTOP)
        s.kill(self.nodes[node].agent())
        self.check_moved(s, ledger, submitted, node)
        self.assertFalse(is_alive(keeper))

    def test_order_that_comes_late_starts_nothing(self):
        """An agent that is stopped has an order in its socket when it continues; by then it runs elsewhere."""
        s = self.far_pool()
        agents = {name: self.nodes[name].agent() for name in ("n1", "n2")}
        for agent in agents.values():
            os.kill(agent, signal.SIGSTOP)
        ledger = Ledger(os.path.join(s.base, "ledger"))
        submitted = s.submit({**job(ledger.task()), "pool": "far"})
        wait_until(lambda: s.task(submitted, "one")["nodes"], what="it is placed on a node that is stopped")
        (first,) = s.task(submitted, "one")["nodes"]
        (other,) = set(agents) - {first}
        wait_until(lambda: s.get(f"/v1/nodes/{first}")["state"] == "lost", what="the node is given up")
        os.kill(agents[other], signal.SIGCONT)
        wait_until(ledger.lines, what="it runs on the other node")
        os.kill(agents[first], signal.SIGCONT)
        s.wait_for_nodes(2, "far")
        self.assertEqual({node for _, _, node in ledger.lines()}, {other})
        self.assertLessEqual(ledger.overlap(), 0)

    def test_task_without_another_node_is_adopted_when_its_node_returns(self):
        s = self.far_pool("--lost-after", "60s", nodes=("n1",))
        ledger, submitted, node = self.start(s)
        agent = self.nodes[node].agent()
        os.kill(agent, signal.SIGSTOP)
        begun = time.time()
        wait_until(lambda: time.time() > begun + 2 * LEASE, what="twice the lease is over")
        self.assertGreater(ledger.lines()[-1][0], begun + 1.5 * LEASE, "it continues meanwhile")
        os.kill(agent, signal.SIGCONT)
        s.wait_for_nodes(1, "far")
        lines = len(ledger.lines())
        wait_until(lambda: len(ledger.lines()) > lines, what="it still runs")
        self.assertEqual(ledger.attempts(), [1])


class NothingIsLost(LeaseCase):
    def check_kept(self, s, ledger, submitted):
        lines = len(ledger.lines())
        wait_until(lambda: len(ledger.lines()) > lines + 20, what="it continues")
        self.assertEqual(ledger.attempts(), [1])
        self.assertEqual(s.task(submitted, "one")["attempts"], 1)

    def test_killed_agent_of_a_joined_node_is_restarted_by_its_keeper(self):
        s = self.far_pool()
        ledger, submitted, node = self.start(s)
        agent = self.nodes[node].agent()
        s.kill(agent)
        wait_until(lambda: self.nodes[node].agent() not in (0, agent), what="another agent")
        wait_until(lambda: s.get(f"/v1/nodes/{node}")["state"] == "busy", what="the node is back")
        self.check_kept(s, ledger, submitted)

    def test_local_agent_that_is_stopped_is_restarted_and_its_task_runs_on(self):
        s = self.service()
        s.ok("pool", "create", "lab", "--nodes", 2, "--cores-per-node", 1, "--overcommit", "--lease", f"{LEASE}s")
        s.wait_for_nodes(2)
        ledger, submitted, node = self.start(s, pool="lab")
        agent = s.agent(node)
        os.kill(agent, signal.SIGSTOP)
        wait_until(lambda: s.agent(node) not in (0, agent), what="another agent")
        wait_until(lambda: s.get(f"/v1/nodes/{node}")["state"] == "busy", what="the node is back")
        self.check_kept(s, ledger, submitted)

    def test_service_that_is_stopped_loses_no_node(self):
        s = self.service()
        s.ok("pool", "create", "lab", "--nodes", 4, "--cores-per-node", 1, "--overcommit", "--lease", f"{LEASE}s")
        s.wait_for_nodes(4)
        wait = "until [ -e go ]; do sleep 0.05; done"
        submitted = s.submit(job(shell("many", f"cd {s.base}; {wait}", count=4)))
        for index in range(4):
            s.wait_for_task(submitted, f"many[{index}]", "running")
        os.kill(s.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        wait_until(lambda: time.monotonic() > stopped + 3 * LEASE, what="the service was stopped for three leases")
        os.kill(s.pid, signal.SIGCONT)
        open(os.path.join(s.base, "go"), "w").close()
        self.assertEqual(s.wait_for(submitted)["state"], "succeeded")
        for index in range(4):
            self.assertEqual(s.task(submitted, f"many[{index}]")["attempts"], 1)


class EvictionBeforeReconnect(LeaseCase):
    def test_attempts_do_not_overlap(self):
        s = self.service()
        s.ok("pool", "create", "lab", "--nodes", 2, "--cores-per-node", 1, "--overcommit")
        s.wait_for_nodes(2)
        ledger, submitted, node = self.start(s, pool="lab", stop_grace=0)
        s.kill_service()
        s.up()
        s.ok("node", "evict", node, "--notice", "0s")
        self.wait_for_attempt(s, ledger, submitted, 2)
        self.assertLessEqual(ledger.overlap(), 0)

    def test_notice_reaches_a_task_whose_node_is_not_back_yet(self):
        s = self.service()
        s.ok("pool", "create", "lab", "--nodes", 2, "--cores-per-node", 1, "--overcommit")
        s.wait_for_nodes(2)
        ledger = Ledger(os.path.join(s.base, "ledger"))
        task = ledger.task()
        task["command"] = "trap '' TERM; " + task["command"]  # it uses all of its notice
        submitted = s.submit(job(task))
        wait_until(ledger.lines, what="the first line")
        (node,) = s.task(submitted, "one")["nodes"]
        agent = s.agent(node)
        os.kill(agent, signal.SIGSTOP)  # so that it is not back when the node is evicted
        s.kill_service()
        s.up()
        s.ok("node", "evict", node, "--notice", "5s", "--reason", "the rack is needed")
        evicted_at = time.time()
        os.kill(agent, signal.SIGCONT)
        notice = wait_until(lambda: glob.glob(f"{s.data}/workspaces/*/jobs/{submitted}/*/eviction"), what="the notice")[0]
        with open(notice) as file:
            self.assertIn("the rack is needed", file.read())
        self.wait_for_attempt(s, ledger, submitted, 2)
        self.assertLessEqual(ledger.overlap(), 0)
        last = max(when for when, attempt, _ in ledger.lines() if attempt == 1)
        self.assertGreater(last, evicted_at + 3, "it had its notice")


class FullDisk(LeaseCase):
    """Nothing can be saved, but nodes are heard: their leases are renewed and their tasks run on."""

    def test_tasks_of_joined_nodes_run_on(self):
        folder = tempfile.mkdtemp(prefix="slipway-e2e-full-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", folder], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"mount is not permitted here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], capture_output=True)
        s = self.far_pool(data=os.path.join(folder, "data"))
        s.also.append(folder)
        ledger, submitted, node = self.start(s)
        with contextlib.suppress(OSError), open(folder + "/filler", "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        body = job(shell("a", "true", environment={"X": "y" * 20_000}), name="refused")
        wait_until(lambda: s.ask("POST", "/v1/jobs", body=body).status == 503, what="nothing can be saved")
        begun = time.time()
        wait_until(lambda: ledger.lines()[-1][0] > begun + 3 * LEASE, what="it runs on for three leases")
        self.assertTrue(s.get("/v1/service")["degraded"])
        os.unlink(folder + "/filler")
        wait_until(lambda: s.get("/v1/service")["degraded"] is None, what="it can save again")
        s.wait_for_nodes(2, "far")
        lines = len(ledger.lines())
        wait_until(lambda: len(ledger.lines()) > lines + 100, what="it continues")
        self.assertEqual(ledger.attempts(), [1])
        self.assertEqual(s.task(submitted, "one")["attempts"], 1)
        s.ok("job", "cancel", submitted)
        s.wait_for(submitted, "cancelled")
        for node_there in self.nodes.values():
            node_there.stop()
        s.close()  # while its folder is there
        s.close = lambda: None


class CutLink(LeaseCase):
    """The node in a network namespace of its own, whose link is taken down."""

    def setUp(self):
        super().setUp()
        self.link = Link()
        self.addCleanup(self.link.remove)
        if self.link.problem:
            self.skipTest(self.link.problem)

    def start_on_cut_node(self):
        """A task on n1, whose link is cut; n2 has been busy, and is free for it afterwards."""
        s = self.service(listen="0.0.0.0:0", arguments=["--insecure"])
        s.ok("pool", "create", "far", "--provisioner", "none", "--lease", f"{LEASE}s")
        self.agents(s, "n2")
        wait, release = blocker(s.base)
        busy = s.submit({**job(shell("busy", wait)), "pool": "far"})
        s.wait_for_task(busy, "busy", "running")
        self.agents(s, "n1", prefix=self.link.prefix, address=self.link.address)
        ledger, submitted, node = self.start(s)
        self.assertEqual(node, "n1")
        release()
        s.wait_for(busy, "succeeded")
        return s, ledger, submitted

    def cut(self, seconds):
        self.link.cut()
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() > begun + seconds, what="the link was cut so long")
        self.link.mend()

    def test_long_cut_moves_the_task_and_attempts_do_not_overlap(self):
        s, ledger, submitted = self.start_on_cut_node()
        self.cut(3 * LEASE)
        self.wait_for_attempt(s, ledger, submitted, 2)
        s.wait_for_nodes(2, "far")
        self.assertLessEqual(ledger.overlap(), 0)

    def test_short_cut_changes_nothing(self):
        s, ledger, submitted = self.start_on_cut_node()
        self.cut(LEASE / 4)
        lines = len(ledger.lines())
        wait_until(lambda: len(ledger.lines()) > lines + 100, what="it continues")
        self.assertEqual(ledger.attempts(), [1])


if __name__ == "__main__":
    unittest.main()
