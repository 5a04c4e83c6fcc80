"""Each command of the command line, with its exit code and its output forms."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import unittest

from harness import SLIPWAY, Service, SharedServiceCase, SlipwayCase, job, read_line, shell, wait_until


class Commands(SharedServiceCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.job = cls.s.submit(job(shell("good", "echo hello; echo oops >&2"), shell("bad", "exit 7"), name="mixed"))
        cls.s.wait_for(cls.job)

    def forms(self, *command, table=(), quiet=None, json_has=()):
        """Runs a command in its three forms."""
        shown = self.s.ok(*command)
        for words in table:
            self.assertIn(words, shown.out)
        self.assertNotIn("\x1b", shown.out)
        data = self.s.ok(*command, "-o", "json").json
        for name in json_has:
            self.assertIn(name, data["items"][0] if "items" in data else data)
        printed = self.s.ok(*command, "--output", "quiet").out
        if quiet is not None:
            self.assertEqual(printed.split("\n")[:-1], quiet)
        return data

    def test_status(self):
        data = self.forms("status", table=[self.s.url], quiet=[self.s.url], json_has=["version", "pid", "jobs"])
        self.assertEqual(data["pid"], self.s.pid)
        self.assertEqual(data, {**self.s.get("/v1/service"), "jobs": data["jobs"], "nodes": data["nodes"]})

    def test_version(self):
        self.forms("version", table=["slipway 0.1.0"], quiet=["0.1.0"], json_has=["version"])

    def test_pools(self):
        self.forms("pool", "list", table=["POOL", "lab"], quiet=["lab"], json_has=["name", "nodes"])
        data = self.forms("pool", "show", "lab", table=["overcommit", "2 wanted"], quiet=["lab"], json_has=["overcommit"])
        self.assertTrue(data["overcommit"])
        self.assertIn("yes", self.s.ok("pool", "show", "lab").out)

    def test_a_pool_is_made_resized_and_deleted(self):
        s = self.service()
        made = s.ok("pool", "create", "p", "--nodes", 1, "--cores-per-node", 1, "--memory-per-node", "256MiB", "-o", "json").json
        self.assertEqual((made["cores_per_node"], made["memory_per_node"], made["provisioner"]), (1, 256 << 20, "local"))
        s.refused("pool", "create", "p", "--nodes", 1, says="exists already")
        s.refused("pool", "create", "big", "--nodes", os.cpu_count() + 1, "--cores-per-node", 1, says="--overcommit")
        s.refused("pool", "resize", "p", "--nodes", os.cpu_count() + 1, says="--overcommit")
        s.wait_for_nodes(1, "p")
        self.assertEqual(s.ok("pool", "resize", "p", "--nodes", 4, "--overcommit", "-o", "json").json["nodes"]["target"], 4)
        s.wait_for_nodes(4, "p")
        self.assertEqual(s.ok("node", "list", "--pool", "p", "-o", "quiet").out.split(), ["p-1", "p-2", "p-3", "p-4"])
        s.ok("pool", "resize", "p", "--nodes", 1)
        wait_until(lambda: len(s.pids("keeper")) == 1, what="three nodes are gone")
        wait_until(lambda: len(s.get("/v1/nodes")["items"]) == 1 or
                   sum(n["state"] != "gone" for n in s.get("/v1/nodes")["items"]) == 1)
        s.ok("pool", "delete", "p", "--yes")
        s.refused("pool", "show", "p", says="p")
        wait_until(lambda: not s.pids("agent") and not s.pids("keeper"), what="its nodes are gone")

    def test_nodes(self):
        self.forms("node", "list", table=["NODE", "lab-1", "127.64.0."], quiet=["lab-1", "lab-2"], json_has=["state", "address"])
        self.forms("node", "show", "lab-1", table=["lab-1", "state"], quiet=["lab-1"], json_has=["cores", "used"])
        for node in self.s.get("/v1/nodes")["items"]:
            self.assertTrue(node["changed_at"] >= node["created_at"] > "2020", node)

    def test_drain_and_resume(self):
        self.assertIn("draining", self.s.ok("node", "drain", "lab-2").out)
        self.assertEqual(self.s.get("/v1/nodes/lab-2")["state"], "draining")
        self.s.ok("node", "drain", "lab-2")
        submitted = self.s.submit(job(shell("a", "echo $SLIPWAY_NODE", count=4)))
        self.s.wait_for(submitted)
        self.assertEqual({self.s.log(submitted, f"a[{i}]") for i in range(4)}, {"lab-1\n"})
        self.assertEqual(self.s.ok("node", "resume", "lab-2", "-o", "json").json["state"], "idle")

    def test_jobs(self):
        listed = self.s.ok("job", "list", "-o", "quiet").out.split()
        self.assertIn(self.job, listed)
        self.forms("job", "list", "--name", "mixed", table=["JOB", "mixed", "failed"], quiet=[self.job], json_has=["state"])
        self.assertEqual(self.s.ok("job", "list", "--state", "running", "-o", "quiet").out, "")
        data = self.forms("job", "show", self.job, table=["mixed", "failed"], quiet=[self.job], json_has=["spec", "tasks"])
        self.assertEqual(data, self.s.get(f"/v1/jobs/{self.job}"))
        self.forms("job", "why", self.job, table=["bad", "7"], quiet=[self.job], json_has=["answer"])

    def test_tasks(self):
        self.forms("task", "list", self.job, table=["TASK", "good", "exit code 7"], quiet=["good", "bad"], json_has=["attempts"])
        self.forms("task", "list", self.job, "--state", "failed", quiet=["bad"])
        self.forms("task", "show", f"{self.job}/bad", table=["exit code 7", "ATTEMPT"], quiet=[f"{self.job}/bad"], json_has=["history"])

    def test_logs_and_files(self):
        self.assertEqual(self.s.ok("logs", f"{self.job}/good", "--stdout").out, "hello\n")
        self.assertEqual(sorted(self.s.ok("logs", f"{self.job}/good").out.splitlines()), ["hello", "oops"])
        self.assertEqual(self.s.ok("logs", f"{self.job}/good", "--stderr").out, "oops\n")
        self.assertIn("hello", self.s.ok("logs", self.job).out)
        self.forms("files", "list", f"{self.job}/good", table=["stdout.txt"], json_has=["path", "size"])
        self.assertEqual(self.s.ok("files", "get", f"{self.job}/good", "stdout.txt").out, "hello\n")

    def test_events(self):
        data = self.forms("events", "--job", self.job, table=["EVENT", "job.submitted", "attempt.ended"], json_has=["id", "kind", "text"])
        self.assertEqual({event["job"] for event in data["items"]}, {self.job})
        self.assertEqual([e["id"] for e in data["items"]], sorted(e["id"] for e in data["items"]))
        self.s.ok("events")
        follower = self.s.spawn("events", "-f", "-o", "json")
        submitted = self.s.submit(job(shell("a", "true")))
        while json.loads(line := read_line(follower))["job"] != submitted:
            self.assertTrue(line)
        follower.send_signal(signal.SIGINT)
        follower.wait(30)

    def test_tokens(self):
        made = self.s.ok("token", "create", "ana", "--role", "viewer")
        self.assertRegex(made.out, r"^slipway_[0-9a-f]+\n$")
        self.assertIn("only this once", made.err)
        self.assertEqual(self.s.ok("token", "create", "ben", "-o", "json").json["role"], "member")
        data = self.forms("token", "list", table=["TOKEN", "ana", "viewer"], json_has=["id", "role"])
        (ana,) = [token["id"] for token in data["items"] if token["name"] == "ana"]
        self.assertNotIn(made.out.strip(), self.s.ok("token", "list", "-o", "json").out)
        self.s.ok("token", "revoke", ana, "--yes")

    def test_run_gives_the_exit_code_of_its_task(self):
        for command, code in ((["true"], 0), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137), (["sh", "-c", "kill -TERM $$"], 143)):
            self.assertEqual(self.s.run("run", "--", *command).code, code, command)
        self.assertEqual(self.s.run("run", "--", "/no/such/program").code, 1)
        self.assertEqual(self.s.run("run", "--nodes", 2, "--", "sh", "-c", "exit $((SLIPWAY_RANK * 3))").code, 3)

    def test_run_streams_and_stays_in_the_folder(self):
        ran = self.s.ok("run", "-e", "X=1", "-e", "Y=a b", "--", "sh", "-c", 'pwd; echo "$X $Y"; echo err >&2', cwd=self.s.base)
        self.assertEqual(ran.out, f"{self.s.base}\n1 a b\n")
        self.assertIn("err\n", ran.err)
        gang = self.s.ok("run", "--nodes", 2, "--", "sh", "-c", "echo $SLIPWAY_RANK")
        self.assertEqual(sorted(gang.out.splitlines()), ["[0] 0", "[1] 1"])
        data = self.s.ok("run", "-o", "json", "--", "echo", "hi").json
        self.assertEqual(data["state"], "succeeded")
        self.s.ok("run", "--retries", 1, "--", "sh", "-c", "[ $SLIPWAY_ATTEMPT = 2 ]")

    def test_interrupted_run_prints_how_to_resume(self):
        pidless = os.path.join(self.s.base, "interrupted")
        child = self.s.spawn("run", "--", "sh", "-c", f"echo begun; touch {pidless}; exec sleep 1000")
        self.assertEqual(read_line(child), b"begun\n")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
        text = err.decode()
        self.assertIn("slipway logs", text)
        self.assertIn("slipway job cancel", text)
        def list_running():  # its output may be there before its node has reported it as running
            return self.s.ok("job", "list", "--state", "running", "-o", "quiet").out.split()

        wait_until(list_running, what="a running job")
        (running,) = list_running()
        self.assertIn(running, text)
        self.s.ok("job", "cancel", running)
        self.s.wait_for(running)

    def test_submit_and_wait(self):
        good = self.s.write("good.yaml", "name: good\ntasks:\n  - name: a\n    command: 'true'\n")
        bad = self.s.write("bad.yaml", "name: bad\ntasks:\n  - name: a\n    command: 'false'\n")
        slow = self.s.write("slow.yaml", "name: slow\ntasks:\n  - name: a\n    command: sleep 1000\n")
        self.assertRegex(self.s.ok("job", "submit", good).out, r"^job_\d+\n$")
        self.assertEqual(self.s.run("job", "submit", good, "--wait").code, 0)
        self.assertEqual(self.s.run("job", "submit", bad, "--wait").code, 1)
        self.assertEqual(self.s.ok("job", "submit", good, "--wait", "-o", "json").json["state"], "succeeded")
        self.assertEqual(self.s.run("job", "submit", slow, "--wait", "--timeout", "200ms").code, 124)
        running = self.s.ok("job", "show", "slow", "-o", "quiet").out.strip()
        self.assertEqual(self.s.run("job", "wait", running, "--timeout", "100ms").code, 124)
        self.assertEqual(self.s.ok("job", "cancel", running, "-o", "quiet").out.strip(), running)
        self.assertEqual(self.s.run("job", "wait", running).code, 1)
        done = self.s.ok("job", "submit", good, "--wait", "-o", "quiet").out.strip()
        self.assertEqual(self.s.run("job", "wait", done).code, 0)
        self.assertEqual(self.s.run("job", "wait", done, running).code, 1)
        self.assertRegex(self.s.ok("job", "resubmit", done).out, r"^job_\d+\n$")
        self.assertRegex(self.s.ok("job", "submit", "-", input="tasks: [{name: a, command: 'true'}]").out, r"^job_\d+\n$")

    def test_delete(self):
        ended = self.s.submit(job(shell("a", "true")))
        self.s.wait_for(ended)
        self.assertNotEqual(self.on_a_terminal("job", "delete", ended, answer=b"n\n")[0], 0)
        self.s.ok("job", "show", ended)
        self.s.ok("job", "delete", ended, "--yes")
        self.assertNotIn(ended, self.s.ok("job", "list", "-o", "quiet").out.split())

    def on_a_terminal(self, *command, answer):
        """Runs a command with a terminal for its input and talk; gives its exit code and what the terminal showed."""
        mine, theirs = pty.openpty()
        child = subprocess.Popen([SLIPWAY, *command], stdin=theirs, stdout=theirs, stderr=theirs, env=self.s.environment())
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # EIO: the other side is closed
            while True:
                shown += os.read(mine, 4096)
                if b"[y/N]" in shown and answer:
                    os.write(mine, answer)
                    answer = b""
        os.close(mine)
        return child.wait(30), shown

    def test_completion(self):
        for name, check in (("bash", ["bash", "-n"]), ("zsh", None), ("fish", None)):
            script = self.s.ok("completion", name).out
            self.assertIn("slipway", script)
            self.assertIn("resubmit", script)
            if check:
                self.assertEqual(subprocess.run(check, input=script, text=True, capture_output=True).returncode, 0)
        self.s.refused("completion", "tcsh", code=2)

    def test_help_opens_with_an_example(self):
        for command in ([], ["up"], ["run"], ["job"], ["job", "submit"], ["pool", "create"], ["node", "run"], ["logs"], ["files", "get"],
                        ["events"], ["token", "create"], ["task", "list"], ["completion", "bash"]):
            self.assertTrue(self.s.ok(*command, "--help").out.startswith("Example:\n  "), command)

    def test_where_the_service_is(self):
        s = Service(start=False)
        self.addCleanup(s.close)
        s.ok("job", "list", "--service", self.s.url, "--token-file", self.s.data + "/token")
        s.ok("job", "list", env={"SLIPWAY_SERVICE": self.s.url, "SLIPWAY_TOKEN_FILE": self.s.data + "/token"})
        s.ok("job", "list", "--data", self.s.data)
        s.refused("job", "list", "--service", "http://127.0.0.1:9", "--token-file", self.s.data + "/token", code=3)


class UpAndDown(SlipwayCase):
    def test_up_prints_where_it_is(self):
        s = Service(start=False)
        self.addCleanup(s.close)
        up = s.up()
        self.assertIn(s.url, up.out)
        self.assertIn(s.data + "/token", up.out)
        self.assertEqual(os.stat(s.data).st_mode & 0o777, 0o700)
        s.down()
        self.assertEqual(s.run("status").code, 3)
        self.assertEqual(s.run("down").code, 3)
        self.assertEqual(s.survivors(), {})

    def test_up_in_the_foreground_ends_on_ctrl_c(self):
        s = Service(start=False)
        self.addCleanup(s.close)
        child = s.spawn("up", "--listen", "127.0.0.1:0")
        self.assertIn(b"slipway is up at", read_line(child))
        s.pool("lab", 2)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
        self.assertEqual(child.returncode, 0)
        wait_until(lambda: not s.survivors(), 10, "nothing is left")

    def test_data_folder_by_option(self):
        s = Service(start=False)
        self.addCleanup(s.close)
        other = s.base + "/with space/é"
        s.ok("up", "--data", other, "--listen", "127.0.0.1:0", "--detach")
        s.ok("run", "--data", other, "--", "true")
        s.ok("down", "--data", other)

    def test_a_relative_data_folder(self):
        s = Service(start=False)
        self.addCleanup(s.close)
        s.ok("up", "--data", "relative", "--listen", "127.0.0.1:0", "--detach")
        ran = s.run("run", "--data", "relative", "--", "pwd")
        s.ok("down", "--data", "relative")
        self.assertEqual(ran.out, s.base + "\n", ran)


if __name__ == "__main__":
    unittest.main()
