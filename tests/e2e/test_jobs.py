"""What jobs do: gangs, arrays, dependencies, retries, limits, code that travels, order, reasons."""

import glob
import hashlib
import os
import re
import signal
import subprocess
import unittest

from harness import SharedServiceCase, SlipwayCase, blocker, is_alive, job, shell, wait_until


class Jobs(SharedServiceCase):
    def run_job(self, *tasks, **more):
        submitted = self.s.submit(job(*tasks, **more))
        return submitted, self.s.wait_for(submitted)

    def test_a_gang_sees_its_ranks_and_addresses(self):
        submitted, ended = self.run_job(
            shell("gang", ["sh", "-c", "echo {rank} $SLIPWAY_RANK $SLIPWAY_WORLD_SIZE $SLIPWAY_LOCAL_RANK $SLIPWAY_NODE $SLIPWAY_NODES"], nodes=2)
        )
        self.assertEqual(ended["state"], "succeeded", ended)
        lines = [self.s.log(submitted, "gang", process=rank).split() for rank in (0, 1)]
        for rank, line in enumerate(lines):
            self.assertEqual(line[:4], [str(rank), str(rank), "2", "0"])
            self.assertRegex(line[5], r"^127\.64\.0\.\d+,127\.64\.0\.\d+$")
        self.assertNotEqual(lines[0][4], lines[1][4])
        self.assertEqual(self.s.task(submitted, "gang")["nodes"], [lines[0][4], lines[1][4]])

    def test_processes_per_node(self):
        submitted, ended = self.run_job(
            shell("gang", "echo $SLIPWAY_RANK $SLIPWAY_LOCAL_RANK $SLIPWAY_WORLD_SIZE $SLIPWAY_NODE", nodes=2, processes_per_node=2,
                  resources={"cores": 0.5})
        )
        self.assertEqual(ended["state"], "succeeded", ended)
        lines = [self.s.log(submitted, "gang", process=rank).split() for rank in range(4)]
        self.assertEqual([line[:3] for line in lines], [["0", "0", "4"], ["1", "1", "4"], ["2", "0", "4"], ["3", "1", "4"]])
        self.assertEqual(lines[0][3], lines[1][3])
        self.assertNotEqual(lines[1][3], lines[2][3])

    def test_one_failure_ends_the_gang_and_names_the_rank(self):
        submitted, ended = self.run_job(
            shell("gang", 'if [ "$SLIPWAY_RANK" = 1 ]; then exit 9; fi; exec sleep 1000', nodes=2, stop_grace=1)
        )
        self.assertEqual(ended["state"], "failed")
        task = self.s.task(submitted, "gang")
        (attempt,) = task["history"]
        self.assertEqual((attempt["end"], attempt["exit_code"], attempt["rank"]), ("exited", 9, 1))
        self.assertIn("rank 1", task["reason"])

    def test_an_array(self):
        submitted, ended = self.run_job(shell("sweep", "echo {index} $SLIPWAY_TASK_INDEX $SLIPWAY_TASK_NAME", count=5))
        self.assertEqual(ended["tasks"]["succeeded"], 5)
        for index in range(5):
            self.assertEqual(self.s.log(submitted, f"sweep[{index}]").split()[:2], [str(index), str(index)])

    def test_a_million_tasks_are_accepted(self):
        submitted = self.s.submit(job(shell("many", "true", count=1_000_000), priority=-1000))
        shown = self.s.job(submitted)
        self.assertEqual(shown["tasks"]["total"], 1_000_000)
        self.assertEqual(self.s.task(submitted, "many[999999]")["state"], "queued")
        self.s.ok("job", "cancel", submitted)
        self.assertEqual(self.s.wait_for(submitted)["state"], "cancelled")

    def test_dependencies_and_skipped(self):
        submitted, ended = self.run_job(
            shell("first", "echo 1 > $SLIPWAY_SHARED/x"), shell("second", "cat $SLIPWAY_SHARED/x", depends_on=["first"]),
            shell("bad", "exit 4"), shell("never", "true", depends_on=["bad"]), shell("nor", "true", depends_on=["never"], count=3),
        )
        self.assertEqual(ended["state"], "failed")
        states = {task["name"]: task["state"] for task in self.s.tasks(submitted)}
        self.assertEqual(states["second"], "succeeded")
        self.assertEqual([states["never"], states["nor[0]"], states["nor[2]"]], ["skipped"] * 3)
        self.assertEqual(self.s.log(submitted, "second"), "1\n")
        self.assertEqual(ended["tasks"]["skipped"], 4)
        self.assertIn("bad", ended["reason"])

    def test_retries(self):
        submitted, ended = self.run_job(shell("once", "mkdir $SLIPWAY_SHARED/x && exit 3; echo attempt $SLIPWAY_ATTEMPT", retries=2))
        self.assertEqual(ended["state"], "succeeded")
        task = self.s.task(submitted, "once")
        self.assertEqual([a["exit_code"] for a in task["history"]], [3, 0])
        self.assertEqual(task["retries_used"], 1)
        self.assertEqual(self.s.log(submitted, "once"), "attempt 2\n")
        submitted, ended = self.run_job(shell("always", "exit 3", retries=1))
        self.assertEqual(ended["state"], "failed")
        self.assertEqual([a["exit_code"] for a in self.s.task(submitted, "always")["history"]], [3, 3])

    def test_a_signal(self):
        submitted, ended = self.run_job(shell("one", "kill -TERM $$"))
        (attempt,) = self.s.task(submitted, "one")["history"]
        self.assertEqual((attempt["end"], attempt["signal"], attempt["exit_code"]), ("signalled", 15, None))

    def test_max_wall_time(self):
        submitted, ended = self.run_job(shell("slow", "sleep 1000", max_wall_time=0.5, stop_grace=1))
        self.assertEqual(ended["state"], "failed")
        self.assertEqual(self.s.task(submitted, "slow")["history"][0]["end"], "timed_out")

    def test_a_command_that_is_not_there(self):
        submitted, ended = self.run_job(shell("one", ["/no/such/program"]))
        self.assertEqual(ended["state"], "failed")
        self.assertEqual(self.s.task(submitted, "one")["history"][-1]["end"], "start_failed")
        self.assertIn("/no/such/program", self.s.task(submitted, "one")["reason"])

    def test_an_attempt_records_what_it_used(self):
        submitted, _ = self.run_job(shell("one", ["python3", "-c", "x = bytearray(50_000_000); sum(range(3_000_000))"]))
        (attempt,) = self.s.task(submitted, "one")["history"]
        self.assertGreater(attempt["memory_peak"], 40_000_000)
        self.assertGreater(attempt["cpu_time"], 0.01)
        self.assertTrue(attempt["started_at"] and attempt["ended_at"])

    def test_an_attempt_that_ended_at_once_has_its_start(self):
        for _ in range(3):
            submitted, _ = self.run_job(shell("gang", "exit 1", nodes=2))
            (attempt,) = self.s.task(submitted, "gang")["history"]
            self.assertIsNotNone(attempt["started_at"], attempt)

    def test_environment(self):
        submitted, ended = self.run_job(
            shell("one", "env; test -d \"$SLIPWAY_SHARED\" && echo shared=there", environment={"B": "task", "C": "x y=z"}), environment={"A": "job", "B": "job"}, name="envy")
        seen = dict(line.split("=", 1) for line in self.s.log(submitted, "one").splitlines() if "=" in line)
        self.assertEqual((seen["A"], seen["B"], seen["C"]), ("job", "task", "x y=z"))
        self.assertEqual(seen["SLIPWAY_JOB_ID"], submitted)
        self.assertEqual(seen["SLIPWAY_ATTEMPT"], "1")
        for name in ("TASK_NAME", "TASK_INDEX", "NODE", "NODES", "RANK", "WORLD_SIZE", "LOCAL_RANK", "SHARED", "OUTPUTS"):
            self.assertIn("SLIPWAY_" + name, seen)
        self.assertNotIn("SLIPWAY_HOME", seen)  # the service's own is not the task's business
        self.assertEqual(seen["shared"], "there")

    def test_working_directories_are_fresh(self):
        submitted, ended = self.run_job(shell("a", "ls -A | wc -l; touch x; pwd", count=2))
        outputs = [self.s.log(submitted, f"a[{i}]").split() for i in (0, 1)]
        self.assertEqual([o[0] for o in outputs], ["0", "0"])
        self.assertNotEqual(outputs[0][1], outputs[1][1])
        submitted, ended = self.run_job(shell("a", "pwd", workdir="/usr"))
        self.assertEqual(self.s.log(submitted, "a"), "/usr\n")

    def test_cancel(self):
        pid_file = os.path.join(self.s.base, "cancelled.pid")
        submitted = self.s.submit(job(shell("a", f"echo $$ > {pid_file}; exec sleep 1000"), shell("b", "true", depends_on=["a"])))
        self.s.wait_for_task(submitted, "a", "running")
        wait_until(lambda: os.path.exists(pid_file) and open_text(pid_file).strip())
        self.s.ok("job", "cancel", submitted)
        ended = self.s.wait_for(submitted)
        self.assertEqual(ended["state"], "cancelled")
        self.assertFalse(is_alive(int(open_text(pid_file))))
        self.assertEqual({t["name"]: t["state"] for t in self.s.tasks(submitted)}, {"a": "cancelled", "b": "cancelled"})
        self.assertEqual(self.s.task(submitted, "a")["history"][0]["end"], "cancelled")

    def test_by_name(self):
        submitted, _ = self.run_job(shell("a", "true"), name="unique")
        self.assertEqual(self.s.ok("job", "show", "unique", "-o", "quiet").out.strip(), submitted)
        self.run_job(shell("a", "true"), name="twice")
        newest, _ = self.run_job(shell("a", "true"), name="twice")
        self.assertEqual(self.s.ok("job", "show", "twice", "-o", "quiet").out.strip(), newest)

    def test_delete(self):
        submitted = self.s.submit(job(shell("a", "sleep 1000")))
        self.s.refused("job", "delete", submitted, "--yes", says=["cancel"])
        self.s.ok("job", "cancel", submitted)
        self.s.wait_for(submitted)
        folder = f"{self.s.data}/workspaces/default/jobs/{submitted}"
        self.assertTrue(os.path.isdir(folder))
        self.s.ok("job", "delete", submitted, "--yes")
        self.s.refused("job", "show", submitted, says=submitted)
        wait_until(lambda: not os.path.exists(folder), what="its files are gone")

    def test_set_changes_the_file(self):
        file = self.s.write("set.yaml", "tasks:\n  - name: a\n    command: 'echo $X'\n")
        submitted = self.s.ok("job", "submit", file, "--wait", "--set", "name=other", "--set", "priority=5",
                              "--set", "environment.X=hi").out.split()[0]
        shown = self.s.job(submitted)
        self.assertEqual((shown["name"], shown["priority"]), ("other", 5))
        self.assertEqual(self.s.log(submitted, "a"), "hi\n")


def open_text(path):
    with open(path) as file:
        return file.read()


class Order(SlipwayCase):
    def test_priority_then_age_and_why(self):
        s = self.service()
        s.pool("lab", 1)
        wait, release = blocker(s.base)
        first = s.submit(job(shell("block", wait)))
        s.wait_for_task(first, "block", "running")
        order = f"echo $NAME >> {s.base}/order"
        jobs = [s.submit(job(shell("t", order), priority=priority, environment={"NAME": name}, name=name))
                for name, priority in (("low", -5), ("old", 0), ("young", 0), ("high", 7))]
        why = s.get(f"/v1/jobs/{jobs[0]}/why")["answer"]
        self.assertRegex(why, r"task t needs one node with 1 (free )?core( free)?; pool lab has 1 node, 1 is busy with "
                         + first + r"/block .*started .* ago")
        table = s.ok("job", "why", jobs[0]).out
        self.assertIn("pool lab has 1 node", table)
        self.assertNotIn(" is : ", table)
        release()
        for one in jobs:
            s.wait_for(one)
        self.assertEqual(open_text(s.base + "/order").split(), ["high", "old", "young", "low"])

    def test_why_names_dependencies_and_drained_nodes(self):
        s = self.service()
        s.pool("lab", 1)
        s.ok("node", "drain", "lab-1")
        submitted = s.submit(job(shell("a", "true"), shell("b", "true", depends_on=["a"])))
        text = s.ok("job", "why", submitted).out
        self.assertIn("draining", text)
        self.assertIn("waits for a", text)
        s.ok("node", "resume", "lab-1")
        self.assertEqual(s.wait_for(submitted)["state"], "succeeded")
        self.assertIn("succeeded", s.ok("job", "why", submitted).out)

    def test_a_gang_is_not_starved(self):
        s = self.service()
        s.pool("lab", 2)
        # Of uneven length, so that both nodes are never free at once by luck.
        small = s.submit(job(shell("small", ["sh", "-c", "sleep 0.$((2 + {index} % 7))"], count=200)))
        s.wait_for_task(small, "small[0]", "running", "succeeded")
        gang = s.submit(job(shell("gang", "true", nodes=2), priority=1))
        self.assertEqual(s.wait_for(gang)["state"], "succeeded")
        self.assertGreater(s.job(small)["tasks"]["queued"], 0)
        s.ok("job", "cancel", small)
        s.wait_for(small)

    def test_the_first_submission_makes_a_pool(self):
        s = self.service()
        file = s.write("a.yaml", "tasks:\n  - name: a\n    command: nproc\n")
        ran = s.ok("job", "submit", file, "--wait")
        self.assertIn("pool local", ran.err)
        pool = s.get("/v1/pools/local")
        self.assertEqual((pool["nodes"]["target"], pool["cores_per_node"]), (1, os.cpu_count()))

    def test_jobs_that_name_no_pool_run_in_the_default_pool(self):
        s = self.service()
        s.refused("pool", "default", says="no pools")
        s.pool("zebra", 1)
        s.ok("pool", "create", "b", "--provisioner", "none")
        s.ok("pool", "create", "a", "--provisioner", "none")

        def pool_of_a_job():
            return s.job(s.submit(job(shell("t", "true"))))["pool"]

        self.assertEqual(s.ok("pool", "default").out, "zebra\n", "the first that was made")
        self.assertEqual(pool_of_a_job(), "zebra")
        self.assertEqual(s.ok("run", "--", "echo", "here").out, "here\n")
        s.ok("pool", "default", "b")
        self.assertEqual((pool_of_a_job(), s.ok("pool", "default", "-o", "json").json["name"]), ("b", "b"))
        self.assertEqual([pool["name"] for pool in s.get("/v1/pools")["items"] if pool["default"]], ["b"])
        s.refused("pool", "default", "nothing", says="nothing")
        s.kill_service()
        s.up()
        self.assertEqual(pool_of_a_job(), "b")
        s.ok("pool", "default", "zebra")
        s.kill_service()
        s.up()
        self.assertEqual(pool_of_a_job(), "zebra")
        s.ok("pool", "default", "a")
        s.ok("pool", "delete", "a", "--yes")
        self.assertEqual(pool_of_a_job(), "zebra")

    def test_a_pool_that_is_there_may_be_made_again_if_missing(self):
        s = self.service()
        for _ in range(2):
            self.assertEqual(s.ok("pool", "create", "p", "--nodes", 1, "--if-missing", "-o", "quiet").out, "p\n")
        self.assertEqual(s.ok("pool", "create", "p", "--nodes", 5, "--if-missing", "-o", "json").json["nodes"]["target"], 1)
        s.refused("pool", "create", "p", "--nodes", 1, says="exists already")


class Code(SlipwayCase):
    def setUp(self):
        self.s = self.service()
        self.s.pool("lab", 2)

    def submit(self, command="cat main.txt", extra=""):
        indented = command.replace("\n", "\n      ")
        file = self.s.write("job.yaml", f"source: ./code\n{extra}tasks:\n  - name: a\n    command: |\n      {indented}\n")
        return self.s.ok("job", "submit", file, "--wait").out.split()[0]

    def blobs(self):
        return {path for path in glob.glob(self.s.data + "/blobs/**", recursive=True) if os.path.isfile(path)}

    def test_a_snapshot_is_taken_at_submit_and_kept_for_resubmit(self):
        self.s.write("code/main.txt", "one\n")
        first = self.submit()
        self.s.write("code/main.txt", "two\n")
        again = self.s.ok("job", "resubmit", first).out.strip()
        self.s.wait_for(again)
        self.assertEqual(self.s.log(first, "a"), "one\n")
        self.assertEqual(self.s.log(again, "a"), "one\n")
        self.assertEqual(self.s.log(self.submit(), "a"), "two\n")

    def test_only_what_changed_is_sent_again(self):
        self.s.write("code/big.bin", os.urandom(3_000_000))
        self.s.write("code/main.txt", "one\n")
        self.submit()
        before = self.blobs()
        self.s.write("code/main.txt", "two\n")
        self.submit()
        new = self.blobs() - before
        self.assertEqual(len(new), 2, new)  # the file and the manifest
        self.assertLess(sum(os.path.getsize(path) for path in new), 10_000)

    def test_ignore_file_modes_and_links(self):
        self.s.write("code/main.txt", "one\n")
        self.s.write("code/.slipwayignore", "*.log\n/build/\n!keep.log\n")
        for name in ("a.log", "keep.log", "build/x", "sub/build/y", "sub/b.log"):
            self.s.write("code/" + name, "x")
        os.chmod(self.s.write("code/run.sh", "#!/bin/sh\necho ran\n"), 0o755)
        os.symlink("main.txt", self.s.base + "/code/link")
        submitted = self.submit("find . -type f -o -type l | sort\n./run.sh\ncat link")
        text = self.s.log(submitted, "a")
        self.assertEqual(text, "./.slipwayignore\n./keep.log\n./link\n./main.txt\n./run.sh\n./sub/build/y\nran\none\n")

    def test_links_that_lead_out_are_refused(self):
        self.s.write("code/main.txt", "one\n")
        for target in ("/etc/passwd", "../outside", "sub/../../outside"):
            link = self.s.base + "/code/bad"
            os.symlink(target, link)
            file = self.s.write("job.yaml", "source: ./code\ntasks:\n  - name: a\n    command: 'true'\n")
            self.s.refused("job", "submit", file, says=["bad"])
            os.unlink(link)
        self.assertEqual(self.s.get("/v1/jobs")["items"], [])

    def test_a_process_cannot_change_the_stored_code(self):
        self.s.write("code/main.txt", "one\n")
        first = self.submit("echo changed >> main.txt; chmod 777 main.txt; cat main.txt")
        self.assertEqual(self.s.log(first, "a"), "one\nchanged\n")
        again = self.s.ok("job", "resubmit", first).out.strip()
        self.s.wait_for(again)
        self.assertEqual(self.s.log(again, "a"), "one\nchanged\n")
        for path in self.blobs():
            if "incoming" not in path and len(os.path.basename(path)) >= 60:
                with open(path, "rb") as file:
                    digest = hashlib.sha256(file.read()).hexdigest()
                self.assertIn(os.path.basename(path), digest)

    def test_each_process_has_its_own_copy(self):
        self.s.write("code/main.txt", "one\n")
        file = self.s.write("job.yaml", "source: ./code\ntasks:\n  - name: a\n    count: 4\n    command: 'cat main.txt; echo two > main.txt'\n")
        submitted = self.s.ok("job", "submit", file, "--wait").out.split()[0]
        self.assertEqual([self.s.log(submitted, f"a[{i}]") for i in range(4)], ["one\n"] * 4)

    def test_run_with_source(self):
        self.s.write("code/main.txt", "one\n")
        self.assertEqual(self.s.ok("run", "--source", self.s.base + "/code", "--", "cat", "main.txt").out, "one\n")

    def test_too_much_code_names_the_largest_files(self):
        os.makedirs(self.s.base + "/code")
        for name, size in (("huge.bin", 2 << 30), ("small.bin", 1 << 20)):
            with open(self.s.base + "/code/" + name, "wb") as file:
                file.truncate(size)
        file = self.s.write("job.yaml", "source: ./code\ntasks:\n  - name: a\n    command: 'true'\n")
        self.s.refused("job", "submit", file, says=["huge.bin", "2 GiB"])

    def test_source_that_is_not_there(self):
        file = self.s.write("job.yaml", "source: ./nowhere\ntasks:\n  - name: a\n    command: 'true'\n")
        self.s.refused("job", "submit", file, says="nowhere")


if __name__ == "__main__":
    unittest.main()
