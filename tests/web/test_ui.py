"""The web UI in a real Chromium (ui.mjs), against services of its own."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import packages
from harness import Service, SlipwayCase, job, shell

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ui.mjs")


class Ui(SlipwayCase):
    @classmethod
    def setUpClass(cls):
        cls.chromium = packages.chromium()
        cls.modules = packages.modules()

    def world(self):
        """A service with a pool, a job in which a task failed, and an array."""
        s = self.service()
        s.pool("lab", 2)
        first = s.submit(job(shell("fetch", "for i in 1 2 3; do echo fetched $i; done"),
                             shell("check", "echo 'ValueError: bad shape' >&2; exit 3", depends_on=["fetch"]),
                             shell("report", "echo done", depends_on=["check"]), name="chain", pool="lab"))
        s.wait_for(first, "failed")
        second = s.submit({"name": "many", "pool": "lab", "tasks": [{"name": "fit", "count": 70, "command": "true"}]})
        s.wait_for(second, "succeeded")
        return s

    def drive(self, s, scenario, answers=None, **parameters):
        """Runs a scenario; `answers` do what it asks for."""
        given = {"url": s.url, "token": s.token, "chromium": self.chromium, **parameters}
        child = subprocess.Popen(["node", SCRIPT, self.modules, scenario, json.dumps(given)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        steps = 0
        try:
            for line in child.stdout:
                said = json.loads(line)
                if "ask" in said:
                    child.stdin.write(f"{answers[said['ask']]() or ''}\n")
                    child.stdin.flush()
                    continue
                steps += 1
                with self.subTest(step=said["step"]):
                    self.assertTrue(said["ok"], said.get("why"))
            errors = child.stderr.read()
            self.assertEqual((child.wait(timeout=60) != 0, errors), (False, ""), errors)
            self.assertGreater(steps, 1)
        finally:
            if child.poll() is None:
                child.kill()
            for stream in (child.stdin, child.stdout, child.stderr):
                stream.close()

    def sleeper(self, s):
        return lambda: s.submit(job(shell("main", "sleep 600"), name="sleeper", pool="lab"))

    def test_signing_in(self):
        s = self.world()
        self.drive(s, "signing_in", link=s.ok("ui", "--print").out.strip())

    def test_empty_service(self):
        s = self.service()
        self.drive(s, "empty", {"make a pool": lambda: s.pool("lab", 1)})

    def test_faces_of_every_view(self):
        s = self.world()
        viewer = s.ok("token", "create", "eve", "--role", "viewer", "-o", "json").json["token"]
        self.drive(s, "faces", viewer=viewer)

    def test_main_flow(self):
        s = self.world()
        go = s.write("go", "")
        os.unlink(go)

        def let_it_end():
            with open(go, "w"):
                pass

        self.drive(s, "flow", {"let it end": let_it_end, "submit one that sleeps": self.sleeper(s)}, go=go)

    def test_service_killed_and_back_while_open(self):
        s = self.world()
        s.listen = f"127.0.0.1:{s.port}"  # the page asks where it was
        self.drive(s, "restart", {"kill the service": s.kill_service, "start it again": lambda: s.up() and None,
                                  "submit one that sleeps": self.sleeper(s)})

    def test_keyboard_alone(self):
        self.drive(self.world(), "keyboard")

    def test_axe_finds_nothing(self):
        self.drive(self.world(), "axe")

    def test_large_logs_tables_and_arrays(self):
        s = self.world()
        last = 120_000_000
        large = s.submit(job(shell("write", f"seq 1 {last}"), name="large", pool="lab"))
        small = s.submit(job(shell("write", "seq 1 40000; echo a needle; seq 1 40000; echo Needle and NEEDLE; echo ValueError: x; seq 1 9"),
                             name="small", pool="lab"))
        s.wait_for(large, "succeeded", timeout=240)
        s.wait_for(small, "succeeded")
        array = s.submit({"name": "wide", "pool": "lab", "max_parallel_tasks": 1,
                          "tasks": [{"name": "cell", "count": 100_000, "command": "sleep 600"}]})
        self.drive(s, "large", large=large, small=small, array=array, last=str(last))

    def test_nothing_gets_in_and_prefixes_work(self):
        s = self.world()
        markup = s.submit({"name": "markup", "pool": "lab", "tags": {"note": "<b>tag</b>"}, "tasks": [
            {"name": "main", "command": "echo '<img src=x onerror=\"document.title=1\"><script>alert(1)</script>'"}]})
        s.wait_for(markup)
        self.drive(s, "safety", markup=markup)


if __name__ == "__main__":
    unittest.main()
