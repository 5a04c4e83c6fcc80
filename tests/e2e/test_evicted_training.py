"""A run that loses nodes again and again learns the very same weights as one that nobody disturbs."""

import glob
import hashlib
import os
import unittest

from harness import SLIPWAY, Service, wait_until

os.environ["PATH"] = os.path.dirname(SLIPWAY) + ":" + os.environ["PATH"]  # where the nodes' processes find slipway-train

STEPS = 160  # about one a second where oneDNN has no kernel for these convolutions (AVX2 only)
EVICTIONS = 3

JOB = {
    "name": "train",
    "pool": "lab",
    "tasks": [{
        "name": "train",
        "nodes": 4,
        "retries": 0,
        "resources": {"cores": 0.5},
        "command": f"exec slipway-train --data=synthetic --distribute=allreduce --model=cnn --batch-size=25 --steps={STEPS} "
                   '--seed=3 --checkpoint-dir="$SLIPWAY_CHECKPOINT_DIR" --checkpoint-every=20steps',
    }],
}


def steps_saved(service, job):
    """The newest checkpoint's step."""
    files = glob.glob(os.path.join(service.data, "workspaces/default/jobs", job, "_checkpoints/train/step-*.ckpt"))
    return max((int(os.path.basename(file)[5:-5]) for file in files), default=0)


class EvictedTraining(unittest.TestCase):
    def train(self, notice=None):
        """The weights at the end; with a notice, nodes are taken away each time the run has got further."""
        with Service() as service:
            service.ok("pool", "create", "lab", "--dedicated", 2, "--low-priority", 2, "--cores-per-node", 0.5,
                       "--memory-per-node", "512MiB")
            job = service.submit(JOB)
            for number in range(EVICTIONS if notice else 0):
                before = steps_saved(service, job)
                wait_until(lambda: steps_saved(service, job) > before, what="a further checkpoint")
                low = [node["name"] for node in service.get("/v1/nodes?pool=lab")["items"] if node["low_priority"]]
                service.ok("node", "evict", sorted(low)[number % len(low)], "--notice", notice)
                wait_until(lambda: service.task(job, "train")["evictions"] == number + 1, what="an eviction")
                service.wait_for_task(job, "train", "running")
            ended = service.wait_for(job, timeout=280)
            output = service.run("logs", f"{job}/train", "--stderr")
            self.assertEqual(ended["state"], "succeeded", f"{ended} {output!r}")
            task = service.task(job, "train")
            self.assertEqual((task["retries_used"], task["evictions"]), (0, EVICTIONS if notice else 0))
            self.assertLessEqual({attempt["end"] for attempt in task["history"][:-1]}, {"evicted"})
            model = service.ok("files", "get", f"{job}/train", "outputs/model.slipway", binary=True).out
            return hashlib.sha256(model).hexdigest()

    def test_with_notice_and_without(self):
        undisturbed = self.train()
        for notice in ("20s", "0s"):  # time to save itself; and none, so that it continues from the last checkpoint
            with self.subTest(notice=notice):
                self.assertEqual(self.train(notice), undisturbed)


if __name__ == "__main__":
    unittest.main()
