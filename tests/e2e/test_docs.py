"""Every command block of the README and the guides does what it says there."""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import docs
from harness import ROOT, SLIPWAY, Service, SlipwayCase

GUIDES = sorted(os.path.basename(path) for path in glob.glob(os.path.join(ROOT, "docs/guide/*.md")))
STARTS = ("README.md", "README.zh-CN.md")


class Documents(SlipwayCase):
    def follow(self, path):
        s = Service(start=False)
        self.addCleanup(s.close)
        reader = docs.Reader(s)
        done = 0
        for block in docs.blocks(os.path.join(ROOT, path)):
            if not block.is_session and not block.is_list:
                reader.prepare(block)
                continue
            if block.why_not is not None:
                self.assertNotEqual(block.why_not, "", f"{path} line {block.line}: why is it not run?")
                continue
            if "slipway-train" in block.text and not reader.has_trainer:
                continue  # built without it
            if not s.pid and not any(command.startswith("slipway up") for command, _ in block.steps()):
                self.assertEqual(reader.run("slipway up --detach")[0], 0)
            with self.subTest(line=block.line):
                done += 1
                self.assertEqual(reader.follow(block), [])
        return done

    def test_chinese_readme_has_the_blocks_of_the_readme(self):
        texts = [[block.text for block in docs.blocks(os.path.join(ROOT, name)) if block.is_session or block.is_list] for name in STARTS]
        self.assertEqual(*texts)
        with open(os.path.join(ROOT, "README.md")) as file:
            self.assertIn("README.zh-CN.md", file.readline())

    def test_what_is_compared(self):
        """A form is as good as what it distinguishes."""
        same = [("job_7 ran 3.2 s at http://127.0.0.1:8470", "job_12  ran 1 min 4 s at http://127.0.0.1:40001"),
                ("a\n…\nz", "a\nb\nc\nz"), ("x … z", "x y y z"), ("job_2 running: 0 of 1 tasks done\nend", "end")]
        other = [("job_1 job_1", "job_1 job_2"), ("a", "b"), ("a\nb", "a"), ("3 tasks", "4 tasks"), ("a\n…\nz", "a\nb"), ("failed", "failed: x")]
        for expected, actual in same:
            self.assertTrue(docs.fits(docs.form(expected), docs.form(actual)), (expected, actual))
        for expected, actual in other:
            self.assertFalse(docs.fits(docs.form(expected), docs.form(actual)), (expected, actual))

    def test_figures_of_the_readme_are_those_of_the_benchmarks(self):
        with open(os.path.join(ROOT, "docs/benchmarks.md")) as file:
            measured = re.search(r"the binary, stripped[^|]*\| ([0-9.]+) MB", file.read())[1]
        for name in STARTS:
            with open(os.path.join(ROOT, name)) as file:
                self.assertIn(f"{measured} MB", file.read(), name + ": bench/run --only binary --docs puts it there")
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copy(SLIPWAY, folder)
            if subprocess.run(["strip", copy], capture_output=True).returncode != 0:
                self.skipTest("strip is not installed")
            size = os.path.getsize(copy) / 1e6
        self.assertLess(abs(size - float(measured)), 0.25 * size, f"it has {size:.1f} MB: bench/run --only binary --docs")


def add(path):
    name = "test_" + path.replace(".md", "").replace("docs/guide/", "").replace("-", "_").replace(".", "_").lower()

    def test(self):
        self.assertGreaterEqual(self.follow(path), 0)

    setattr(Documents, name, test)


for one in ("README.md", *(f"docs/guide/{name}" for name in GUIDES)):
    add(one)

if __name__ == "__main__":
    unittest.main()
