"""Logs in the order of arrival: both streams together, times, filters, arrays by their name, and how a failure is said."""

import unittest
import urllib.parse

from harness import SharedServiceCase, blocker, job, read_line, shell

# A pause in which the node sees that a stream has grown.
BOTH = "for i in 1 2 3; do echo out $i; sleep 0.05; echo err $i >&2; sleep 0.05; done"
BOTH_LINES = ["out 1", "err 1", "out 2", "err 2", "out 3", "err 3"]


class Order(SharedServiceCase):
    def test_both_streams_in_order(self):
        submitted = self.s.submit(job(shell("a", BOTH)))
        self.s.wait_for(submitted)
        self.assertEqual(self.s.ok("logs", submitted).out.splitlines(), BOTH_LINES)
        self.assertEqual(self.s.ok("logs", submitted, "-f").out.splitlines(), BOTH_LINES)
        self.assertEqual(self.s.ok("logs", submitted, "--stdout").out.splitlines(), ["out 1", "out 2", "out 3"])
        self.assertEqual(self.s.ok("logs", submitted, "--stderr").out.splitlines(), ["err 1", "err 2", "err 3"])
        self.assertEqual(self.s.ok("logs", submitted, "--tail", 3).out.splitlines(), BOTH_LINES[-3:])
        self.assertEqual(self.s.ok("logs", submitted, "--tail", 3, "-f").out.splitlines(), BOTH_LINES[-3:])
        self.assertEqual(self.s.refused("logs", submitted, "--stdout", "--stderr", code=2).code, 2)
        names = self.s.ok("files", "list", f"{submitted}/a", "-o", "quiet").out.split()
        self.assertFalse([name for name in names if "times" in name], "the list of times is no file of the user")

    def test_both_streams_while_they_grow(self):
        wait, release = blocker(self.s.base, "go-order")
        submitted = self.s.submit(job(shell("a", f"echo out; sleep 0.1; echo err >&2; sleep 0.1; echo again; {wait}; echo last >&2")))
        self.s.wait_for_task(submitted, "a", "running")
        follower = self.s.spawn("logs", submitted, "-f")
        self.assertEqual([read_line(follower) for _ in range(3)], [b"out\n", b"err\n", b"again\n"])
        self.assertEqual(self.s.ok("logs", submitted).out.splitlines(), ["out", "err", "again"])
        release()
        out, err = follower.communicate(timeout=60)
        self.assertEqual((follower.returncode, out), (0, b"last\n"), err)

    def test_times_and_filters(self):
        submitted = self.s.submit(job(shell("a", "echo first; echo loss 0.5 >&2; sleep 1.2; echo loss 0.25; echo done")))
        self.s.wait_for(submitted)
        self.assertEqual(self.s.ok("logs", submitted, "--grep", "^loss [0-9.]+$").out.splitlines(), ["loss 0.5", "loss 0.25"])
        self.assertEqual(self.s.ok("logs", submitted, "--grep", "loss", "--tail", 1).out, "loss 0.25\n")
        self.assertEqual(self.s.ok("logs", submitted, "--grep", "loss", "-f").out.splitlines(), ["loss 0.5", "loss 0.25"])
        self.s.refused("logs", submitted, "--grep", "(", code=2, says="regular expression")
        timed = [line.split(" ", 1) for line in self.s.ok("logs", submitted, "--timestamps").out.splitlines()]
        self.assertEqual([text for _, text in timed], ["first", "loss 0.5", "loss 0.25", "done"])
        times = [time for time, _ in timed]
        self.assertRegex(times[0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$")
        self.assertEqual(times, sorted(times))
        self.assertEqual(self.s.ok("logs", submitted, "--since", times[2]).out.splitlines(), ["loss 0.25", "done"])
        self.assertEqual(self.s.ok("logs", submitted, "--since", "1h").out.splitlines()[0], "first")
        self.s.refused("logs", submitted, "--since", "yesterday", code=2, says=["yesterday", "10m"])

    def test_processes_of_a_gang_in_order(self):
        submitted = self.s.submit(job(shell("a", "sleep 0.$((SLIPWAY_RANK * 2)); echo $SLIPWAY_RANK; sleep 0.5; echo $SLIPWAY_RANK >&2", nodes=2)))
        self.s.wait_for(submitted)
        self.assertEqual(self.s.ok("logs", submitted).out.splitlines(), ["[0] 0", "[1] 1", "[0] 0", "[1] 1"])

    def test_arrays_by_name(self):
        submitted = self.s.submit(job(shell("sweep", "echo $SLIPWAY_TASK_INDEX", count=12), shell("other", "echo other"), name="chain"))
        self.s.wait_for(submitted)
        expected = [f"[sweep.{i}] {i}" for i in range(12)]
        self.assertEqual(self.s.ok("logs", f"{submitted}/sweep").out.splitlines(), expected)
        self.assertEqual(self.s.ok("logs", "chain/sweep").out.splitlines(), expected)
        self.assertEqual(sorted(self.s.ok("logs", "chain/sweep", "-f").out.splitlines()), sorted(expected))
        self.assertEqual(self.s.ok("logs", "chain/sweep[7]").out, "7\n")
        self.assertEqual(self.s.ok("logs", "chain/sweep.7").out, "7\n")
        self.s.refused("logs", "chain/sweep.12", says="sweep.12")
        names = [f"sweep[{i}]" for i in range(12)]
        self.assertEqual([task["name"] for task in self.s.ok("task", "list", "chain/sweep", "-o", "json").json["items"]], names)
        self.assertNotIn("other", self.s.ok("task", "list", "chain/sweep").out)
        self.assertEqual([task["name"] for task in self.s.ok("task", "list", "chain/other", "-o", "json").json["items"]], ["other"])
        pages, after = [], ""
        while after is not None:
            page = self.s.get(f"/v1/jobs/{submitted}/tasks?name=sweep&limit=5" + (f"&after={urllib.parse.quote(after)}" if after else ""))
            pages.append([task["name"] for task in page["items"]])
            after = page["next"]
        self.assertEqual(sum(pages, []), names)
        self.s.refused("task", "list", "chain/nothing", says="nothing")
        # A newer job of the name is the one that is meant.
        newer = self.s.submit(job(shell("sweep", "echo new", count=1), name="chain"))
        self.s.wait_for(newer)
        self.assertEqual(self.s.ok("logs", "chain/sweep").out, "new\n")

    def test_a_failure_is_said_after_the_log(self):
        submitted = self.s.submit(job(shell("a", "echo before; exit 3")))
        self.s.wait_for(submitted)
        for command in (["logs", submitted], ["logs", f"{submitted}/a"], ["logs", submitted, "-f"]):
            ran = self.s.ok(*command)
            self.assertEqual(ran.out, "before\n")
            self.assertIn("failed with exit code 3", ran.err)
            self.assertIn(f"try:   slipway job why {submitted}", ran.err)
        good = self.s.submit(job(shell("a", "echo fine")))
        self.s.wait_for(good)
        self.assertEqual(self.s.ok("logs", good).err, "")


if __name__ == "__main__":
    unittest.main()
