"""The training examples through a real service, and the quickstart as a newcomer runs it. No data set is needed."""

import os
import re
import signal
import subprocess
import tempfile
import unittest

from harness import ROOT, SLIPWAY, PATIENCE, SharedServiceCase, processes_of, wait_until

BINARIES = os.path.dirname(SLIPWAY)
os.environ["PATH"] = BINARIES + ":" + os.environ["PATH"]  # where the nodes' processes find slipway-train


def example(name, steps):
    """An example's text, cut down to a few steps."""
    with open(os.path.join(ROOT, "examples", name)) as file:
        return re.sub(r"--(epochs|steps)=\d+", f"--steps={steps}", file.read())


def made_up_cifar(folder):
    """Random pictures in CIFAR-10's binary form: a label, then 3072 bytes."""
    os.makedirs(os.path.join(folder, "cifar10"))
    for name in ("data_batch_1.bin", "test_batch.bin"):
        with open(os.path.join(folder, "cifar10", name), "wb") as file:
            for number in range(200):
                file.write(bytes([number % 10]) + os.urandom(3072))
    return folder


class Examples(SharedServiceCase):
    pool_nodes = 3

    def train(self, text, data, chief):
        """Runs an example to its end; returns the output of its chief."""
        ran = self.s.run("job", "submit", "-", "--wait", "-o", "quiet", "--set", f"environment.SLIPWAY_DATA={data}", input=text)
        job = ran.out.strip()
        self.assertEqual(ran.code, 0, f"{ran!r}\n{self.s.run('logs', f'{job}/train', '--stderr')!r}")
        model = self.s.ok("files", "get", f"{job}/train", "outputs/model.slipway", binary=True).out
        self.assertGreater(len(model), 100_000)
        return self.s.log(job, "train", process=chief)

    def test_parameter_server(self):
        output = self.train(example("mnist-ps.yaml", 300), "synthetic", chief=1)
        self.assertIn("data: synthetic", output)
        self.assertIn("2 workers", output)
        self.assertRegex(output, r"done: 300 steps.* test accuracy 9\d\.\d\d %")

    def test_all_reduce(self):
        output = self.train(example("mnist-allreduce.yaml", 60), "synthetic", chief=0)
        self.assertIn("2 workers", output)
        self.assertRegex(output, r"done: 60 steps.* test accuracy \d")

    def test_cifar(self):
        output = self.train(example("cifar-vgg.yaml", 1), made_up_cifar(os.path.join(self.s.base, "pictures")), chief=0)
        self.assertIn("data: cifar10", output)
        self.assertRegex(output, r"done: 1 steps")


class Quickstart(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="slipway-e2e-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SLIPWAY")}
        environment.update(TMPDIR=self.folder, SLIPWAY_DATA="synthetic")
        child = subprocess.Popen(
            [os.path.join(ROOT, "tools", "quickstart"), BINARIES],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that Ctrl-C reaches all that a terminal would send it to, and no more
        )
        self.addCleanup(child.stdout.close)
        return child

    def assert_nothing_is_left(self):
        wait_until(lambda: not processes_of(self.folder), 10, what=f"{processes_of(self.folder)} ended")
        self.assertEqual(os.listdir(self.folder), [])

    def test_trains_through_the_loss_of_a_worker(self):
        child = self.start()
        output, _ = child.communicate(timeout=2 * PATIENCE)
        self.assertEqual(child.returncode, 0, output)
        for words in (
            r"hello from rank 1 of 2",
            r"19 squared is 361",
            r"data: synthetic",
            r"epoch .* samples/s",
            r"kill -9 \d+: that was worker 1",
            r"attempt 1 failed, retrying.*rank 2 .* SIGKILL",
            r"resuming from step [1-9]",
            r"done: 3000 steps.* test accuracy 9\d\.\d\d %",
            r"slipway files get job_2/train outputs/model.slipway --to ",
            r"mlp on synthetic .* accuracy 9\d\.\d\d %",
            r"Try next:",
        ):
            self.assertRegex(output, words)
        self.assert_nothing_is_left()

    def test_ctrl_c_ends_all_of_it(self):
        child = self.start()
        for line in child.stdout:
            if line.startswith("epoch"):
                break
        os.killpg(child.pid, signal.SIGINT)
        output, _ = child.communicate(timeout=PATIENCE)
        self.assertEqual(child.returncode, 130, output)
        self.assert_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
