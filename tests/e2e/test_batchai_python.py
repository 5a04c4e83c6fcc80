"""azure-mgmt-batchai, 2.0.0 and 7.0.0 unmodified: a job from its workspace to its files."""

import os
import subprocess
import unittest

import batchai_clients
from harness import SlipwayCase

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "batchai_sdk", "lifecycle.py")
WORDS = ("workspace fileserver cluster nodes login experiment job ended succeeded listed read jobs refused "
         "deleted").split()


class Python(SlipwayCase):
    def run_lifecycle(self, version, service):
        interpreter = batchai_clients.python(version)
        done = subprocess.run([interpreter, SCRIPT, service.url, service.token], capture_output=True, text=True,
                              timeout=200)
        self.assertEqual(done.stdout.split("\n")[:-1], WORDS, done.stderr[-3000:])
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])

    def test_version_2(self):
        self.run_lifecycle("2.0.0", self.service())

    def test_version_7(self):
        self.run_lifecycle("7.0.0", self.service())

    def test_both_where_everything_is_accepted_first(self):
        for version in ("2.0.0", "7.0.0"):
            with self.subTest(version=version):
                service = self.service(start=False)
                service.up(env={"SLIPWAY_BATCHAI_FORCE_202": "1"})
                self.run_lifecycle(version, service)


if __name__ == "__main__":
    unittest.main()
