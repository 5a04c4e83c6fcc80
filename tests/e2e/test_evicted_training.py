"""A run that loses nodes again and again learns the very same weights as one that nobody disturbs."""

import hashlib
import os
import unittest

from harness import SLIPWAY, Service

os.environ["PATH"] = os.path.dirname(SLIPWAY) + ":" + os.environ["PATH"]  # where the nodes' processes find slipway-train

STEPS = 10000

JOB = {
    "name": "train",
    "pool": "lab",
    "environment": {"SLIPWAY_DATA": "synthetic"},
    "tasks": [{
        "name": "train",
        "nodes": 4,
        "retries": 0,
        "resources": {"cores": 0.5},
        "command": f"exec slipway-train --distribute=allreduce --model=mlp --batch-size=25 --steps={STEPS} --seed=3 "
                   '--checkpoint-dir="$SLIPWAY_CHECKPOINT_DIR" --checkpoint-every=200steps',
    }],
}


class EvictedTraining(unittest.TestCase):
    def train(self, *more):
        """The weights at the end, and how often it was evicted."""
        with Service() as service:
            service.ok("pool", "create", "lab", "--dedicated", 2, "--low-priority", 2, "--cores-per-node", 0.5,
                       "--memory-per-node", "512MiB", *more)
            job = service.submit(JOB)
            ended = service.wait_for(job, timeout=280)
            said = service.run("logs", f"{job}/train", "--stderr")
            self.assertEqual(ended["state"], "succeeded", f"{ended} {said!r}")
            task = service.task(job, "train")
            self.assertEqual(task["retries_used"], 0)
            ends = {attempt["end"] for attempt in task["history"][:-1]}
            self.assertLessEqual(ends, {"evicted"}, task["history"])
            model = service.ok("files", "get", f"{job}/train", "outputs/model.slipway", binary=True).out
            return hashlib.sha256(model).hexdigest(), task["evictions"]

    def test_with_notice_and_without(self):
        undisturbed, none = self.train()
        self.assertEqual(none, 0)
        for notice in ("5s", "0s"):  # time to save itself; and none, so that it goes on from the last checkpoint
            with self.subTest(notice=notice):
                weights, evictions = self.train("--evict-every", "5s±2s", "--notice", notice, "--evict-seed", 5)
                self.assertGreater(evictions, 0)
                self.assertEqual(weights, undisturbed)


if __name__ == "__main__":
    unittest.main()
