"""A minute of tools/torture."""

import os
import unittest

from torture import Torture


class ShortTorture(unittest.TestCase):
    def test_one_minute(self):
        print(Torture(60, int.from_bytes(os.urandom(4), "big")).run())


if __name__ == "__main__":
    unittest.main()
