"""PyTorch's DistributedDataParallel, with processes started by Slipway and by torchrun."""

import unittest

from elastic_gang import ElasticGang
from equal_ranks import EqualRanks
from training import FrameworkCase


class Plain(EqualRanks, FrameworkCase):
    framework = "torch"
    example, program, numbers = "torch-ddp.yaml", "torch_ddp.py", ["RANK"]


class Torchrun(EqualRanks, FrameworkCase):
    framework = "torch"
    example, program, numbers = "torchrun.yaml", "torch_ddp.py", ["RANK"]


class TorchrunElasticExample(FrameworkCase):
    framework = "torch"

    def test_trains(self):
        training = self.run_whole("torchrun-elastic.yaml")
        self.assert_accuracy("\n".join(map(training.output, "012")))


class TorchrunElastic(ElasticGang, FrameworkCase):
    framework = "torch"
    how, gang = "torchrun", {"toolkit": "torch", "launcher": "torchrun"}


if __name__ == "__main__":
    unittest.main()
