"""PyTorch's DistributedDataParallel, with processes started by Slipway and by torchrun."""

import unittest

from equal_ranks import EqualRanks
from training import FrameworkCase


class Plain(EqualRanks, FrameworkCase):
    framework = "torch"
    example, program, numbers = "torch-ddp.yaml", "torch_ddp.py", ["RANK"]


class Torchrun(EqualRanks, FrameworkCase):
    framework = "torch"
    example, program, numbers = "torchrun.yaml", "torch_ddp.py", ["RANK"]


if __name__ == "__main__":
    unittest.main()
