"""@azure/arm-batchai 2.2.1, unmodified, runs the whole lifecycle of Batch AI's resources."""

import json
import os
import subprocess
import unittest

import batchai_clients
from harness import SlipwayCase

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "batchai_sdk", "conformance.js")


class JavaScript(SlipwayCase):
    @classmethod
    def setUpClass(cls):
        cls.modules = batchai_clients.javascript()

    def go_through(self, service, mode, steps):
        command = ["node", SCRIPT, self.modules, service.url, service.token, mode]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=280)
        except subprocess.TimeoutExpired as late:
            self.fail(f"not over in {late.timeout} s; its last step was {(late.stdout or b'').splitlines()[-1:]}")
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        for line in lines:
            with self.subTest(step=line["step"], title=line["title"]):
                self.assertTrue(line["ok"], line.get("why"))
        self.assertEqual(sorted(line["step"] for line in lines), steps, done.stderr[-2000:])
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])

    def test_the_whole_sequence(self):
        self.go_through(self.service(), "all", list(range(1, 35)))

    def test_the_same_where_everything_is_accepted_first(self):
        service = self.service(start=False)
        service.up(env={"SLIPWAY_BATCHAI_FORCE_202": "1"})
        self.go_through(service, "accepted", [35 + i / 10 for i in range(6)])


if __name__ == "__main__":
    unittest.main()
