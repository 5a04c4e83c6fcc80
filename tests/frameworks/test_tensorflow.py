"""TensorFlow: parameter servers as of TensorFlow 1 and as a strategy, and equal workers."""

import os
import re
import shutil
import tempfile
import unittest

from training import EXAMPLES, FrameworkCase, Training


class ParameterServerTheOldWay(FrameworkCase):
    framework = "tensorflow"

    def start_replicas(self, *flags):
        """The example, its script with more flags: an edited copy."""
        folder = tempfile.mkdtemp(dir=self.s.base)
        path = shutil.copytree(EXAMPLES, os.path.join(folder, "toolkits")) + "/tensorflow-ps.yaml"
        with open(path) as file:
            text = file.read()
        more = "".join(f"\n          - {flag}" for flag in flags)
        with open(path, "w") as file:
            file.write(text.replace("- --task_index={index}", "- --task_index={index}" + more))
        return self.start(path)

    def assert_both_contributed(self, training, least):
        for worker in (0, 1):
            output = training.output(f"worker-{worker}")
            found = re.search(rf"^worker {worker} did (\d+) local steps of (\d+)", output, re.MULTILINE)
            self.assertTrue(found, output)
            self.assertGreater(int(found[1]), least * int(found[2]), output)

    def assert_trained(self, training, least):
        output = training.output("worker-0")
        self.assert_loss_fell(output, to=0.9)
        self.assert_accuracy(output)
        self.assert_both_contributed(training, least)
        self.assertIn("serving parameters", training.output("ps-0"))

    def test_asynchronous(self):
        self.assert_trained(self.finish(self.start_replicas()), least=0.1)

    def test_synchronous(self):
        self.assert_trained(self.finish(self.start_replicas("--sync_replicas", "--train_steps=600")), least=0.9)

    def test_killed_worker(self):
        training = self.start_replicas()
        training.wait_for("worker-0", r"step [4-9]\d\d ")
        training.kill_role("mnist_replica.py", "worker", 1)
        self.finish(training, attempts=2)
        self.assert_resumed(training.output("worker-0"))
        self.assert_trained(training, least=0.1)

    def test_killed_worker_in_step(self):
        training = self.start_replicas("--sync_replicas", "--train_steps=800")
        training.wait_for("worker-0", r"step [2-4]\d\d ")
        training.kill_role("mnist_replica.py", "worker", 1)
        self.finish(training, attempts=2)
        self.assert_resumed(training.output("worker-0"))
        self.assert_trained(training, least=0.9)

    def test_killed_parameter_server(self):
        training = self.start_replicas()
        training.wait_for("worker-0", r"step [4-9]\d\d ")
        training.kill_role("mnist_replica.py", "ps", 0)
        self.finish(training, attempts=2)
        self.assert_resumed(training.output("worker-0"))
        self.assert_trained(training, least=0.1)


class ParameterServerStrategy(FrameworkCase):
    framework = "tensorflow"

    def assert_trained(self, training: Training):
        output = training.output("chief-0")
        self.assert_loss_fell(output, to=0.8)
        self.assert_accuracy(output)
        for worker in (0, 1):
            self.assertIn("this worker has done 100 steps", training.output(f"worker-{worker}"))
        self.assertIn("serving as ps 0", training.output("ps-0"))

    def test_trains(self):
        self.assert_trained(self.run_whole("tensorflow-parameter-server.yaml"))

    def test_killed_worker(self):
        training = self.start("tensorflow-parameter-server.yaml")
        training.wait_for("chief-0", r"step [3-5]00 ")
        training.kill_role("parameter_server.py", "worker", 1)
        self.finish(training, attempts=2)
        self.assert_resumed(training.output("chief-0"))
        self.assert_trained(training)


class MultiWorker(FrameworkCase):
    framework = "tensorflow"

    def assert_trained(self, training: Training):
        output = [training.output(f"worker-{worker}") for worker in (0, 1)]
        self.assert_loss_fell(output[0], to=0.8)
        for each in output:
            self.assert_accuracy(each)
        # Equal workers have equal models.
        self.assertEqual(*(each.strip().splitlines()[-1] for each in output))

    def test_trains(self):
        self.assert_trained(self.run_whole("tensorflow-multiworker.yaml"))

    def test_killed_worker(self):
        training = self.start("tensorflow-multiworker.yaml")
        training.wait_for("worker-1", r"step 1[05]0 ")
        training.kill_role("multiworker.py", "worker", 1)
        self.finish(training, attempts=2)
        for worker in (0, 1):
            self.assert_resumed(training.output(f"worker-{worker}"))
        self.assert_trained(training)


if __name__ == "__main__":
    unittest.main()
