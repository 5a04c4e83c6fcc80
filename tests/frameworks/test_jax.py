"""JAX on two processes."""

import unittest

from equal_ranks import EqualRanks
from training import FrameworkCase


class Jax(EqualRanks, FrameworkCase):
    framework = "jax"
    example, program, numbers = "jax.yaml", "jax_train.py", ["JAX_PROCESS_ID"]


if __name__ == "__main__":
    unittest.main()
