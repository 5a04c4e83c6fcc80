"""What a job leaves is found and fetched; several jobs are cancelled at once; events are chosen."""

import os
import unittest

from harness import SlipwayCase, job, read_line, shell


class Results(SlipwayCase):
    def setUp(self):
        self.s = self.service()
        self.s.pool("lab", 2)

    def read(self, *parts):
        with open(os.path.join(self.s.base, *parts)) as file:
            return file.read()

    def test_folders_and_patterns_are_fetched_and_what_is_there_is_not_fetched_again(self):
        s = self.s
        made = s.submit(job(shell("a", "mkdir -p $SLIPWAY_OUTPUTS/deep/er; cd $SLIPWAY_OUTPUTS; echo 1 > one.bin; echo 2 > two.bin;"
                                       " echo 3 > deep/er/three.txt; : > 'empty file'; head -c 3000000 /dev/zero > deep/large")))
        self.assertEqual(s.wait_for(made)["state"], "succeeded")
        to = s.base + "/got"
        said = s.ok("files", "get", f"{made}/a", "outputs", "-r", "--to", to).err
        self.assertIn("5 files", said)
        self.assertEqual(self.read("got/outputs/deep/er/three.txt"), "3\n")
        self.assertEqual(self.read("got/outputs/empty file"), "")
        self.assertEqual(os.path.getsize(to + "/outputs/deep/large"), 3000000)
        s.ok("files", "get", f"{made}/a", "outputs/*.bin", "--to", s.base + "/some")
        self.assertEqual(sorted(os.listdir(s.base + "/some/outputs")), ["one.bin", "two.bin"])
        s.ok("files", "get", f"{made}/a", "outputs/*", "-r", "--to", s.base + "/all")
        self.assertEqual(self.read("all/outputs/deep/er/three.txt"), "3\n")
        # A transfer that broke goes on where it was; what is whole is left alone.
        listed = {file["path"]: file for file in s.get(f"/v1/jobs/{made}/tasks/a/files?path=outputs/deep")["items"]}
        inode = os.stat(to + "/outputs/one.bin").st_ino
        stat = os.stat(to + "/outputs/deep/large")
        os.unlink(to + "/outputs/deep/large")
        part = f"{to}/outputs/deep/large.3000000-{stat.st_mtime_ns // 1000}.part"
        with open(part, "wb") as file:
            file.write(b"x" * 1000)
        self.assertEqual(listed["outputs/deep/large"]["size"], 3000000)
        s.ok("files", "get", f"{made}/a", "outputs", "-r", "--to", to)
        self.assertEqual(os.stat(to + "/outputs/one.bin").st_ino, inode)
        with open(to + "/outputs/deep/large", "rb") as file:
            self.assertEqual(file.read(1001), b"x" * 1000 + b"\0")
        self.assertFalse(os.path.exists(part))
        s.refused("files", "get", f"{made}/a", "outputs", "-r", code=2, says="--to")
        s.refused("files", "get", f"{made}/a", "outputs/*.no", "--to", to, says="no file")

    def test_outputs_of_all_tasks_of_a_job(self):
        s = self.s
        made = s.submit(job(shell("a", "echo $SLIPWAY_TASK > $SLIPWAY_OUTPUTS/model", count=2), shell("silent", "true")))
        self.assertEqual(s.wait_for(made)["state"], "succeeded")
        listed = s.ok("outputs", made, "-o", "json").json["items"]
        self.assertEqual([(one["task"], one["path"]) for one in listed], [("a[0]", "outputs/model"), ("a[1]", "outputs/model")])
        files = s.ok("files", "list", made + "/a", "outputs", "-o", "json").json["items"]
        self.assertEqual([(one["task"], one["path"]) for one in files], [("a[0]", "outputs/model"), ("a[1]", "outputs/model")])
        self.assertIn("a[1]", s.ok("files", "list", made + "/a").out)
        self.assertNotIn("TASK", s.ok("files", "list", made + "/a[0]").out)
        table = s.ok("outputs", made).out
        self.assertIn("outputs/model", table)
        s.ok("outputs", made, "--to", s.base + "/got")
        self.assertTrue(self.read("got/a.0/outputs/model"))
        self.assertTrue(self.read("got/a.1/outputs/model"))
        s.ok("outputs", made + "/a[1]", "--to", s.base + "/one")
        self.assertTrue(self.read("one/outputs/model"))
        self.assertIn("no outputs", s.ok("outputs", made + "/silent").err)

    def test_several_jobs_are_cancelled_at_once(self):
        s = self.s
        first, second, third = (s.submit(job(shell("a", "sleep 600"), name=name)) for name in ("x", "x", "y"))
        s.refused("job", "cancel", code=2, says="no job is named")
        s.refused("job", "cancel", first, "--all", code=2, says="exclude")
        s.refused("job", "cancel", "--name", "x", says="--yes")
        cancelled = s.ok("job", "cancel", "--name", "x", "--yes", "--reason", "not needed", "-o", "json").json["items"]
        self.assertEqual([one["id"] for one in cancelled], [first, second])
        self.assertIn("not needed", s.wait_for(first)["reason"])
        self.assertEqual(s.wait_for(second)["state"], "cancelled")
        self.assertNotIn(s.job(third)["state"], ("cancelled", "stopping"))
        fourth = s.submit(job(shell("a", "sleep 600")))
        array = s.submit(job(shell("sweep", "sleep 600", count=3), shell("tidy", "true", depends_on=["sweep"])))
        s.ok("job", "cancel", f"{array}/sweep")
        self.assertEqual(s.wait_for(array)["state"], "cancelled")
        self.assertEqual((s.job(array)["tasks"]["cancelled"], s.job(array)["tasks"]["skipped"]), (3, 1))
        refused = s.refused("job", "cancel", "job_999", third, fourth, says="job_999")
        self.assertIn(third, refused.out)
        self.assertEqual(s.wait_for(third)["state"], "cancelled")
        self.assertEqual(s.wait_for(fourth)["state"], "cancelled")
        self.assertIn("no job to cancel", s.ok("job", "cancel", "--all", "--yes").err)

    def test_a_held_job_waits_and_a_higher_priority_goes_first(self):
        s = self.s
        blocked = s.submit(job(shell("a", f"until [ -e {s.base}/go ]; do sleep 0.05; done", nodes=2)))
        s.wait_for(blocked, "running")
        held, low, high = (s.submit(job(shell("a", "true", nodes=2), name=name)) for name in ("held", "low", "high"))
        self.assertEqual(s.ok("job", "hold", "held", "-o", "json").json["held_by"], "admin")
        s.ok("job", "update", "high", "--priority", "7", "--max-parallel", "1")
        self.assertEqual((s.job(high)["priority"], s.job(high)["max_parallel_tasks"]), (7, 1))
        self.assertIn("held by admin", s.ok("job", "why", held).out)
        self.assertIn("held by admin", s.ok("job", "list").out)
        s.kill_service()
        s.up()
        open(s.base + "/go", "w").close()
        self.assertEqual(s.wait_for(low)["state"], "succeeded")
        self.assertLess(s.job(high)["started_at"], s.job(low)["started_at"])
        self.assertEqual(s.job(held)["state"], "queued")
        s.ok("job", "release", "held")
        self.assertEqual(s.wait_for(held)["state"], "succeeded")
        s.refused("job", "hold", "held", says="succeeded")
        s.refused("job", "update", low, code=2, says="nothing")
        s.refused("job", "update", low, "--priority", "5000", says="1000")
        self.assertEqual(s.ask("PATCH", f"/v1/jobs/{low}", body={}).status, 400)

    def test_run_reads_what_is_piped_in(self):
        s = self.s
        self.assertEqual(s.ok("run", "-i", "--", "tr", "a-z", "A-Z", input="hello\n").out, "HELLO\n")
        self.assertEqual(s.ok("run", "-i", "--nodes", "2", "--", "wc", "-c", input="x" * 200000).out.split().count("200000"), 2)
        os.makedirs(s.base + "/code")
        with open(s.base + "/code/count.sh", "w") as file:
            file.write("wc -l; ls -A\n")
        sent = s.ok("run", "-i", "--source", s.base + "/code", "--", "sh", "count.sh", input="a\nb\n").out.split()
        self.assertEqual((sent[0], "count.sh" in sent), ("2", True))
        self.assertEqual(s.run("run", "-i", "--retries", "1", "--", "sh", "-c", "cat; [ $SLIPWAY_ATTEMPT = 2 ]", input="again").code, 0)
        s.refused("run", "-i", "--detach", "--", "true", input="", code=2, says="exclude")
        self.assertEqual(s.ok("run", "--", "cat", input="not read").out, "")

    def test_run_returns_at_once_when_detached(self):
        started = self.s.ok("run", "--detach", "--name", "late", "--", "sh", "-c", "echo late").out.strip()
        self.assertEqual(self.s.wait_for(started)["state"], "succeeded")
        self.s.refused("run", "--gpus", "3", "--", "true", says="GPU")

    def test_events_are_chosen(self):
        s = self.s
        s.ok("pool", "create", "other", "--provisioner", "none")
        done = s.submit(job(shell("a", "true"), pool="lab"))
        s.wait_for(done)
        kinds = lambda *flags: [one["kind"] for one in s.ok("events", "-o", "json", *flags).json["items"]]
        self.assertEqual(set(kinds("--kind", "node")), {"node.joined"})
        self.assertEqual(kinds("--kind", "job.submitted", "--pool", "lab"), ["job.submitted"])
        self.assertEqual(kinds("--pool", "other"), ["pool.created"])
        everything = kinds()
        self.assertEqual(kinds("--tail", "2"), everything[-2:])
        self.assertEqual(kinds("--tail", "0"), [])
        self.assertEqual(kinds("--since", "1h"), everything)
        self.assertEqual(kinds("--since", "2199-01-01T00:00:00Z"), [])
        self.assertEqual(kinds("--job", done, "--tail", "1"), everything[-1:])
        s.refused("events", "--since", "yesterday", code=2, says="--since")
        followed = s.spawn("events", "-f", "--tail", "1", "--job", done)
        self.addCleanup(followed.kill)
        self.assertIn(b"job.succeeded", read_line(followed))
        self.assertEqual(s.ask("GET", "/v1/events?newest=true&follow=true").status, 400)
        self.assertEqual(s.ask("GET", "/v1/events?since=soon").status, 400)


if __name__ == "__main__":
    unittest.main()
