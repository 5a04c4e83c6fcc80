"""Leases: the processes of two attempts of one task never run at the same time, whatever is stopped, cut or killed.

Every task keeps a ledger: a line each 20 ms with the time and its attempt. Two attempts overlap where a line of an
earlier one is younger than the first of a later one.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

from harness import SLIPWAY, SlipwayCase, blocker, is_alive, job, processes_of, shell, wait_until

LEASE = 2.0  # seconds: given up after 2.6


class Ledger:
    def __init__(self, path):
        self.path = path

    def task(self, **more):
        command = f'while :; do echo "$(date +%s%N) $SLIPWAY_ATTEMPT $SLIPWAY_NODE" >> {self.path}; sleep 0.02; done'
        return shell("one", command, **more)

    def lines(self):
        try:
            with open(self.path) as file:
                rows = [line.split() for line in file.read().splitlines()]
        except FileNotFoundError:
            return []
        return [(int(row[0]) / 1e9, int(row[1]), row[2]) for row in rows if len(row) == 3]

    def attempts(self):
        return sorted({attempt for _, attempt, _ in self.lines()})

    def overlap(self):
        """Seconds in which two attempts wrote."""
        lines, worst = self.lines(), 0.0
        for attempt in self.attempts()[1:]:
            first = min(when for when, of, _ in lines if of == attempt)
            worst = max(worst, max((when for when, of, _ in lines if of < attempt), default=0) - first)
        return worst


class LeaseCase(SlipwayCase):
    def agents(self, s, *names, prefix=(), service=None):
        """Agents that join a pool of this service as those of other machines do."""
        token = os.path.join(s.base, "join.token")
        if not os.path.exists(token):
            s.ok("token", "create", "joiner", "--role", "node", "--to", token)
        for name in names:
            folder = os.path.join(s.base, "far", name)
            os.makedirs(folder)
            with open(os.path.join(folder, "out"), "ab") as log:
                child = subprocess.Popen(
                    [*prefix, SLIPWAY, "node", "run", "--service", service or s.url, "--token-file", token, "--pool", "far", "--name", name,
                     "--folder", folder, "--cores", "1"],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", env=s.environment())
            self.addCleanup(self.stop_node, s, name, child)
        s.wait_for_nodes(len(names), "far")

    def stop_node(self, s, name, child):
        """Agent, keeper and guard at once: each would start the others again."""

        def gone():
            left = processes_of(os.path.join(s.base, "far", name))
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            child.poll()
            return not left

        wait_until(gone, what=f"the end of node {name}")
        child.wait()

    def pid(self, s, name, lock):
        return s.pid_in(os.path.join(s.base, "far", name, lock))

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
        wait_until(lambda: len(ledger.lines()) > lines + 20, what="it goes on")


class OneLiveAttempt(LeaseCase):
    def check_moved(self, s, ledger, submitted, node):
        self.wait_for_attempt(s, ledger, submitted, 2)
        self.assertLessEqual(ledger.overlap(), 0)
        task = s.task(submitted, "one")
        self.assertEqual(task["history"][0]["end"], "node_lost", task)
        self.assertEqual(task["retries_used"], 0)
        s.ok("job", "cancel", submitted)
        s.wait_for(submitted, "cancelled")

    def test_agent_that_is_stopped(self):
        s = self.far_pool()
        ledger, submitted, node = self.start(s)
        agent = self.pid(s, node, "agent.lock")
        os.kill(agent, signal.SIGSTOP)
        self.check_moved(s, ledger, submitted, node)
        os.kill(agent, signal.SIGCONT)
        s.wait_for_nodes(2, "far")
        self.assertLessEqual(ledger.overlap(), 0)

    def test_keeper_that_is_stopped_while_its_agent_is_killed(self):
        s = self.far_pool()
        ledger, submitted, node = self.start(s)
        keeper = self.pid(s, node, "keeper.lock")
        os.kill(keeper, signal.SIGSTOP)
        s.kill(self.pid(s, node, "agent.lock"))
        self.check_moved(s, ledger, submitted, node)
        self.assertFalse(is_alive(keeper))

    def test_order_that_comes_late_starts_nothing(self):
        """An agent that is stopped has an order in its socket when it continues; by then it runs elsewhere."""
        s = self.far_pool()
        agents = {name: self.pid(s, name, "agent.lock") for name in ("n1", "n2")}
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
        agent = self.pid(s, node, "agent.lock")
        os.kill(agent, signal.SIGSTOP)
        begun = time.time()
        wait_until(lambda: time.time() > begun + 2 * LEASE, what="twice the lease is over")
        self.assertGreater(ledger.lines()[-1][0], begun + 1.5 * LEASE, "it goes on meanwhile")
        os.kill(agent, signal.SIGCONT)
        s.wait_for_nodes(1, "far")
        lines = len(ledger.lines())
        wait_until(lambda: len(ledger.lines()) > lines, what="it still runs")
        self.assertEqual(ledger.attempts(), [1])


class NothingIsLost(LeaseCase):
    def check_kept(self, s, ledger, submitted):
        lines = len(ledger.lines())
        wait_until(lambda: len(ledger.lines()) > lines + 20, what="it goes on")
        self.assertEqual(ledger.attempts(), [1])
        self.assertEqual(s.task(submitted, "one")["attempts"], 1)

    def test_killed_agent_of_a_joined_node_is_restarted_by_its_keeper(self):
        s = self.far_pool()
        ledger, submitted, node = self.start(s)
        agent = self.pid(s, node, "agent.lock")
        s.kill(agent)
        wait_until(lambda: self.pid(s, node, "agent.lock") not in (0, agent), what="another agent")
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


class CutLink(LeaseCase):
    """The node in a network namespace of its own, whose link is taken down."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or not shutil.which("ip"):
            self.skipTest("needs root and ip to make a network namespace")
        number = random.randrange(1, 60000)
        self.space, self.here, there = f"slw{number}", f"sa{number}", f"sb{number}"
        net = f"10.{77 + number % 50}.{number // 250 % 250}"
        self.address = f"{net}.1"
        self.addCleanup(subprocess.run, ["ip", "netns", "del", self.space], capture_output=True)
        self.addCleanup(subprocess.run, ["ip", "link", "del", self.here], capture_output=True)
        for step in (
            f"ip netns add {self.space}", f"ip link add {self.here} type veth peer name {there}", f"ip link set {there} netns {self.space}",
            f"ip addr add {net}.1/24 dev {self.here}", f"ip link set {self.here} up", f"ip -n {self.space} addr add {net}.2/24 dev {there}",
            f"ip -n {self.space} link set {there} up", f"ip -n {self.space} link set lo up",
        ):
            done = subprocess.run(step.split(), capture_output=True, text=True)
            if done.returncode != 0:
                self.skipTest(f"network namespaces are not permitted here: {step}: {done.stderr.strip()}")

    def start_on_cut_node(self):
        """A task on n1, whose link is cut; n2 has been busy, and is free for it afterwards."""
        s = self.service(listen="0.0.0.0:0", arguments=["--insecure"])
        s.ok("pool", "create", "far", "--provisioner", "none", "--lease", f"{LEASE}s")
        self.agents(s, "n2")
        wait, release = blocker(s.base)
        busy = s.submit({**job(shell("busy", wait)), "pool": "far"})
        s.wait_for_task(busy, "busy", "running")
        self.agents(s, "n1", prefix=["ip", "netns", "exec", self.space], service=f"http://{self.address}:{s.port}")
        ledger, submitted, node = self.start(s)
        self.assertEqual(node, "n1")
        release()
        s.wait_for(busy, "succeeded")
        return s, ledger, submitted

    def cut(self, seconds):
        subprocess.run(["ip", "link", "set", self.here, "down"], check=True)
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() > begun + seconds, what="the link was cut so long")
        subprocess.run(["ip", "link", "set", self.here, "up"], check=True)

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
        wait_until(lambda: len(ledger.lines()) > lines + 100, what="it goes on")
        self.assertEqual(ledger.attempts(), [1])


if __name__ == "__main__":
    unittest.main()
