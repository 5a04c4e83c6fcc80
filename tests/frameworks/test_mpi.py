"""A program in C under mpirun, and one in Python that has no more than a host file."""

import unittest

from training import FrameworkCase


class Mpi(FrameworkCase):
    framework = "mpi"

    def assert_added(self, training):
        output = training.output("launcher")
        for rank in (0, 1):
            self.assertIn(f"rank {rank} of 2 on", output)
        self.assertIn("done: pi is 3.14159265", output)
        return output

    def test_adds(self):
        output = self.assert_added(self.run_whole("mpi.yaml", task="add"))
        for rank in (0, 1):
            self.assertIn(f"rank {rank} added 1.570796", output)

    def test_killed_rank(self):
        training = self.start("mpi.yaml", task="add")
        training.wait_for("launcher", r"round 1[05] ")
        training.kill_rank("pi", "1", "OMPI_COMM_WORLD_RANK")
        self.finish(training, attempts=2)
        self.assert_resumed(self.assert_added(training), "round")


class HostFile(FrameworkCase):
    framework = "torch"  # any Python would do

    def assert_fitted(self, training):
        output = [training.output(str(rank)) for rank in (0, 1)]
        for rank, text in enumerate(output):
            self.assertIn(f"rank {rank} of 2; the nodes are 127.", text)
            self.assertIn(f"done: rank {rank} has y = 3.00", text)
        return output[0]

    def test_fits(self):
        self.assert_loss_fell(self.assert_fitted(self.run_whole("hostfile.yaml")))

    def test_killed_rank(self):
        training = self.start("hostfile.yaml", STEPS=40_000)
        training.wait_for("0", r"step [3-9]000 ")
        training.kill_rank("average.py", "1", "RANK")
        self.finish(training, attempts=2)
        self.assert_resumed(self.assert_fitted(training))


if __name__ == "__main__":
    unittest.main()
