"""Horovod with TensorFlow under mpirun and over Gloo. Not among the others: its environment takes 17 minutes to compile."""

import unittest

from elastic_gang import ElasticGang
from equal_ranks import EqualRanks
from training import FrameworkCase


class Horovod(EqualRanks, FrameworkCase):
    framework = "horovod"
    example, program, numbers = "horovod.yaml", "horovod_train.py", ["OMPI_COMM_WORLD_RANK", "HOROVOD_RANK"]
    launcher_collects_output = True


class HorovodOverGloo(Horovod):
    environment = {"SLIPWAY_HOROVOD": "gloo"}


class HorovodElastic(ElasticGang, FrameworkCase):
    framework = "horovod"
    first, sign_of_a_newcomer = "launcher", "[2]<stdout>:a world of 3\n"  # its launcher speaks for all ranks
    how, gang = "horovod", {"toolkit": "horovod"}


if __name__ == "__main__":
    unittest.main()
