"""Nodes that come to and go from a gang while it runs: its framework is notified, and the attempt continues."""

import json
import os
import uuid

from training import PATIENCE, wait_until

RANKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "elastic_ranks.py")


class ElasticGang:
    first = "0"  # the process of the first node
    sign_of_a_newcomer = "[2] a world of 3\n"  # in the log of the whole gang
    how = ""  # the argument of elastic_ranks.py
    gang = {}  # the toolkit's part of the task

    def worlds(self, job):
        """How large the gang was, one after another, as its first node's ranks saw it."""
        output = self.s.log(job, "train", process=self.first)
        return [int(line.rsplit(" ", 1)[1]) for line in output.splitlines() if "a world of" in line]

    def wait_for_world(self, job, size, after=0):
        def is_there():
            state = self.s.job(job)["state"]
            assert state in ("queued", "running"), self.s.run("logs", f"{job}/train", "--stderr")
            return self.worlds(job)[after:][-1:] == [size]

        wait_until(is_there, 3 * PATIENCE, what=f"a world of {size}", every=0.2)

    def test_nodes_come_and_go(self):
        pool = "e" + uuid.uuid4().hex[:6]
        go = os.path.join(self.s.base, pool)
        self.s.ok("pool", "create", pool, "--nodes", 2, "--cores-per-node", 1, "--overcommit")
        self.s.wait_for_nodes(2, pool)  # so that the oldest is the gang's first, which stays
        task = {
            "name": "train",
            "nodes": {"min": 1, "max": 3},
            "elastic": "framework",
            "command": ["python3", RANKS, self.how],
            "environment": {"PATH": self.path, "GO": go},
            **self.gang,
        }
        path = go + ".json"
        with open(path, "w") as file:
            json.dump({"name": "elastic", "pool": pool, "tasks": [task]}, file)
        job = self.s.ok("job", "submit", path, "-o", "quiet").out.strip()
        self.wait_for_world(job, 2)
        follower = self.s.spawn("logs", f"{job}/train", "-f")
        self.s.ok("pool", "resize", pool, "--nodes", 3)
        self.wait_for_world(job, 3)
        before = len(self.worlds(job))
        self.s.kill(self.s.keeper(self.s.task(job, "train")["nodes"][-1]))  # its processes die with it
        self.wait_for_world(job, 3, after=before)  # the node has another keeper by now, and is asked again
        self.s.ok("pool", "resize", pool, "--nodes", 1)
        self.wait_for_world(job, 1)
        with open(go, "w"):
            pass
        self.assertEqual(self.s.wait_for(job, timeout=2 * PATIENCE)["state"], "succeeded")
        self.assertIn(self.sign_of_a_newcomer, follower.communicate(timeout=PATIENCE)[0].decode())
        record = self.s.task(job, "train")
        self.assertEqual((record["attempts"], record["retries_used"]), (1, 0))
        events = self.s.ok("events", "--job", job).out
        self.assertGreaterEqual(events.count("attempt.node_joined"), 2, events)  # the second node may have come late
        self.assertEqual(events.count("attempt.node_left"), 3, events)
