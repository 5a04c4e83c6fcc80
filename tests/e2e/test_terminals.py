"""Tables in terminals of 50, 80 and 200 columns, as tmux shows them: nothing wraps, and the reason is there."""

import os
import re
import shlex
import shutil
import subprocess
import unittest

from harness import SLIPWAY, SharedServiceCase, job, shell, wait_until

WIDTHS = (50, 80, 200)


class Terminal:
    """A terminal of so many columns in which commands are typed."""

    def __init__(self, s, columns):
        self.socket = os.path.join(s.base, f"tmux-{columns}")
        environment = {**s.environment(), "TERM": "xterm", "LANG": "C.UTF-8", "SLIPWAY_PAGER": ""}
        self.environment = environment
        self.shown = 0
        self.tmux("new-session", "-d", "-x", str(columns), "-y", "50", "env PS1='> ' bash --norc")
        wait_until(lambda: self.lines()[:1] == [">"], what="a prompt")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, *words], env=self.environment, capture_output=True, text=True, check=True).stdout

    def lines(self):
        return [line.rstrip() for line in self.tmux("capture-pane", "-p").rstrip("\n").split("\n")]

    def show(self, *words):
        """The lines a command puts on the screen."""
        self.shown += 1
        end = f"end {self.shown}"
        self.tmux("send-keys", f"clear; {shlex.join([SLIPWAY, *words])}; echo end' {self.shown}'", "Enter")
        seen = []

        def is_done():
            seen[:] = self.lines()
            return end in seen

        wait_until(is_done, what="the end of " + " ".join(words))
        return seen[:seen.index(end)]

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.environment, capture_output=True)


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class Tables(SharedServiceCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.done = cls.s.submit(job(shell("prepare-the-data", "true"), name="a-job-with-a-rather-long-name"))
        cls.failed = cls.s.submit(job(shell("a", "exit 3"), name="failed"))
        cls.s.wait_for(cls.done)
        cls.s.wait_for(cls.failed)
        cls.s.ok("token", "create", "somebody", "--role", "viewer", "--to", "token-of-somebody")
        cls.s.ok("datastore", "create", "faces")

    LISTS = [  # and what the reason, or the last column, begins with in one of its lines
        ("job list", "its task succeeded"), ("task list", "it exited with"), ("node list", ""), ("pool list", ""), ("events", "admin made pool"),
        ("token list", ""), ("pool history", "made by admin"), ("datastore list", ""),
    ]
    ABOUT = {"task list": "failed", "pool history": "lab"}

    def orders(self):
        """List → its columns in the order in which slipway help output says they are dropped."""
        told = self.s.ok("help", "output").out
        found = {}
        for line in told.split("\n"):
            if match := re.fullmatch(r"  ([a-z][a-z, -]*?) +([A-Z]+(?:, [A-Z]+)*)", line):
                found.update({name: match[2].split(", ") for name in match[1].split(", ")})
        return found

    def test_they_fit_by_dropping_columns_in_the_documented_order(self):
        orders = self.orders()
        for columns in WIDTHS:
            terminal = Terminal(self.s, columns)
            self.addCleanup(terminal.close)
            for name, reason in self.LISTS:
                words = [*name.split(), *([self.ABOUT[name]] if name in self.ABOUT else [])]
                with self.subTest(columns=columns, list=name):
                    shown = terminal.show(*words)
                    full = [line for line in self.s.ok(*words).out.split("\n") if line]
                    self.assertEqual(len(shown), len(full), f"a line wraps: {shown}")
                    self.assertTrue(any(reason in line for line in shown[1:]), shown)
                    titles = full[0].split()
                    dropped = [title for title in titles if title not in shown[0].split()]
                    self.assertNotIn(titles[-1] if reason else titles[0], dropped)
                    order = [title for title in orders.get(name, []) if title in titles]
                    self.assertEqual(set(order[:len(dropped)]), set(dropped), "not in the order of slipway help output")
                    if columns == 200:
                        self.assertEqual(dropped, [])

    def test_top_fits(self):
        for columns in WIDTHS:
            terminal = Terminal(self.s, columns)
            self.addCleanup(terminal.close)
            with self.subTest(columns=columns):
                shown = terminal.show("top", "--once")
                self.assertEqual(len(shown), len(self.s.ok("top").out.rstrip("\n").split("\n")), f"a line wraps: {shown}")
                self.assertTrue(any(line.startswith("lab-1") for line in shown), shown)


if __name__ == "__main__":
    unittest.main()
