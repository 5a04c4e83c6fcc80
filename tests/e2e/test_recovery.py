"""kill -9 of every process, in every order: nothing is lost, nothing runs twice, exit statuses are reported correctly."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

from harness import SLIPWAY, NeverHappened, SlipwayCase, blocker, is_alive, job, processes_of, read_line, shell, wait_until
from kill_rounds import Rounds


def read_pid(path):
    try:
        with open(path) as file:
            return int(file.read().strip() or 0)
    except (FileNotFoundError, ValueError):
        return 0


class KilledProcesses(SlipwayCase):
    def start_one(self, nodes=1, ending="exit 7", before="", **more):
        """A job whose task writes its pid, waits for a file and then ends; gives (service, job, pid, release)."""
        s = self.service()
        s.pool("lab", nodes)
        wait, release = blocker(s.base)
        pid_file = os.path.join(s.base, "pid")
        command = f"{before} echo $$ >> {s.base}/starts; echo $$ > {pid_file}.part; mv {pid_file}.part {pid_file}; {wait}; {ending}"
        submitted = s.submit(job(shell("one", command, **more)))
        pid = wait_until(lambda: read_pid(pid_file), what="the process")
        s.wait_for_task(submitted, "one", "running")
        return s, submitted, pid, release

    def starts(self, s):
        with open(os.path.join(s.base, "starts")) as file:
            return len(file.read().split())

    def history(self, s, submitted):
        return s.task(submitted, "one")["history"]

    def assert_one_end(self, s, submitted, code=7):
        self.assertEqual(s.wait_for(submitted)["state"], "failed" if code else "succeeded")
        history = self.history(s, submitted)
        self.assertEqual([(a["end"], a["exit_code"]) for a in history], [("exited", code)])
        self.assertEqual(self.starts(s), 1)

    def test_the_service_dies_and_processes_are_adopted(self):
        s, submitted, pid, release = self.start_one()
        s.kill_service()
        self.assertTrue(is_alive(pid))
        s.up()
        self.assertTrue(is_alive(pid), "the running process was touched")
        self.assertEqual(s.job(submitted)["state"], "running")
        s.wait_for_nodes(1, states=("busy",))
        release()
        self.assert_one_end(s, submitted)

    def test_exit_while_the_service_is_dead_is_reported(self):
        s, submitted, pid, release = self.start_one()
        s.kill_service()
        release()
        wait_until(lambda: not is_alive(pid), what="the process's end")
        s.up()
        self.assert_one_end(s, submitted)

    def test_an_agent_dies_and_comes_back_by_itself(self):
        s, submitted, pid, release = self.start_one()
        agent = s.agent("lab-1")
        s.kill(agent)
        self.assertTrue(is_alive(pid))
        wait_until(lambda: s.agent("lab-1") not in (0, agent), what="a new agent")
        s.wait_for_nodes(1, states=("busy",))
        self.assertTrue(is_alive(pid))
        release()
        self.assert_one_end(s, submitted)

    def test_exit_while_the_agent_is_dead_is_reported(self):
        s, submitted, pid, release = self.start_one()
        s.kill_service()  # so that nobody starts the agent again too early
        s.kill(s.agent("lab-1"))
        release()
        wait_until(lambda: not is_alive(pid), what="the process's end")
        s.up()
        self.assert_one_end(s, submitted)

    def test_signal_while_service_and_agents_are_dead_is_reported(self):
        s, submitted, pid, release = self.start_one(nodes=2)
        s.kill(s.pid, *s.pids("agent").values())
        self.assertTrue(is_alive(pid))
        os.kill(pid, signal.SIGSEGV)
        wait_until(lambda: not is_alive(pid), what="the process's end")
        s.up()
        s.wait_for(submitted, "failed")
        (attempt,) = self.history(s, submitted)
        self.assertEqual((attempt["end"], attempt["signal"], attempt["exit_code"]), ("signalled", 11, None))

    def test_job_continues_when_service_and_agents_are_killed_together(self):
        s, submitted, pid, release = self.start_one(nodes=2)
        s.kill(s.pid, *s.pids("agent").values())
        s.up()
        s.wait_for_nodes(2)
        self.assertTrue(is_alive(pid))
        self.assertEqual(s.job(submitted)["state"], "running")
        release()
        self.assert_one_end(s, submitted)

    def test_a_keeper_dies_and_its_tasks_run_again_without_a_retry(self):
        s, submitted, pid, release = self.start_one(ending="exit 0")
        s.kill(s.keeper("lab-1"))
        wait_until(lambda: not is_alive(pid), what="the end of the keeper's tree")
        wait_until(lambda: self.starts(s) == 2, what="the second attempt")
        release()
        s.wait_for(submitted, "succeeded")
        history = self.history(s, submitted)
        self.assertEqual([a["end"] for a in history], ["node_lost", "exited"])
        self.assertEqual(s.task(submitted, "one")["retries_used"], 0)

    def test_a_keeper_dies_with_daemons_below_it(self):
        s = self.service()
        s.pool("lab", 1)
        daemon = os.path.join(s.base, "daemon.pid")
        submitted = s.submit(
            job(shell("one", f"setsid sh -c 'setsid sh -c \"echo \\$\\$ > {daemon}; exec sleep 1000\" &' ; exec sleep 1000"))
        )
        pid = wait_until(lambda: read_pid(daemon), what="the daemon")
        s.wait_for_task(submitted, "one", "running")
        s.kill(s.keeper("lab-1"))
        wait_until(lambda: not is_alive(pid), what="the daemon's end")
        s.ok("job", "cancel", submitted)
        s.wait_for(submitted, "cancelled")

    def test_keeper_agent_and_service_die_together(self):
        s, submitted, pid, release = self.start_one(ending="exit 0")
        s.kill(s.pid, s.agent("lab-1"), s.keeper("lab-1"))
        s.up()
        wait_until(lambda: self.starts(s) == 2, what="the second attempt")
        self.assertFalse(is_alive(pid), "the first attempt still runs beside the second")
        release()
        s.wait_for(submitted, "succeeded")
        self.assertEqual([a["end"] for a in self.history(s, submitted)], ["node_lost", "exited"])
        self.assertEqual(s.task(submitted, "one")["retries_used"], 0)

    def test_what_was_acknowledged_is_there_after_a_kill(self):
        s = self.service()
        s.pool("lab", 1)
        wait, release = blocker(s.base)
        ids = [s.submit(job(shell("one", wait), name=f"n{i}")) for i in range(5)]
        s.kill_service()
        s.up()
        self.assertEqual(sorted(s.ok("job", "list", "-o", "quiet").out.split()), sorted(ids))
        release()
        for one in ids:
            self.assertEqual(s.wait_for(one)["state"], "succeeded")
            self.assertEqual(len(s.task(one, "one")["history"]), 1)

    def test_up_on_the_same_port_after_a_kill(self):
        s, submitted, pid, release = self.start_one()
        s.listen = f"127.0.0.1:{s.port}"
        s.kill_service()
        up = s.run("up", "--listen", s.listen, "--detach")
        if up.code != 0:
            with contextlib.suppress(NeverHappened, AssertionError):  # so that the test can clean up
                s.kill(*s.pids("agent").values())
                s.listen = "127.0.0.1:0"
                s.up()
        self.assertEqual(up.code, 0, up)
        release()
        self.assert_one_end(s, submitted)

    def test_agents_and_processes_inherit_no_descriptors(self):
        s, submitted, pid, release = self.start_one()
        s.kill(s.agent("lab-1"))  # the next is started while connections are open
        wait_until(lambda: s.agent("lab-1"), what="a new agent")
        s.wait_for_nodes(1, states=("busy",))
        sockets = lambda of: {link for link in self.links(of) if link.startswith(("socket:", "pipe:"))}
        service = sockets(s.pid)
        for name, other in (("agent", s.agent("lab-1")), ("keeper", s.keeper("lab-1")), ("task", pid)):
            self.assertEqual(sockets(other) & service, set(), f"the {name} holds the service's")
        self.assertEqual(sockets(pid) & (sockets(s.agent("lab-1")) | sockets(s.keeper("lab-1"))), set())
        release()
        self.assert_one_end(s, submitted)

    @staticmethod
    def links(pid):
        found = []
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
        return found

    def test_log_follower_continues_through_a_restart(self):
        s, submitted, pid, release = self.start_one(before="echo first;", ending="echo last; exit 0")
        follower = s.spawn("logs", submitted, "-f")
        s.listen = f"127.0.0.1:{s.port}"
        self.assertEqual(read_line(follower), b"first\n")
        s.kill_service()
        s.up()
        release()
        out, err = follower.communicate(timeout=60)
        self.assertEqual((follower.returncode, out), (0, b"last\n"), err)


class TaskTrees(SlipwayCase):
    def test_cancel_ends_daemons_too(self):
        s = self.service()
        s.pool("lab", 1)
        names = ["child", "session", "double"]
        pids = {name: os.path.join(s.base, name) for name in names}
        command = (
            f"sh -c 'echo $$ > {pids['child']}; exec sleep 1000' & "
            f"setsid sh -c 'echo $$ > {pids['session']}; exec sleep 1000' & "
            f"(setsid env -i sh -c 'trap \"\" TERM HUP; (echo $$ > {pids['double']}; while :; do sleep 1; done) & exit' &) ; "
            "trap '' TERM; while :; do sleep 1; done"
        )
        submitted = s.submit(job(shell("one", command, stop_grace=0.5)))
        for name in names:
            wait_until(lambda: read_pid(pids[name]), what=f"{name}'s pid")
        s.wait_for_task(submitted, "one", "running")
        s.ok("job", "cancel", submitted)
        s.wait_for(submitted, "cancelled")
        wait_until(lambda: not processes_of(s.base + "/child", s.base + "/data/workspaces"), 10, "the end of all of them")
        for name in ("child", "session"):
            self.assertFalse(is_alive(read_pid(pids[name])), name)

    def test_daemons_end_when_the_task_ends_by_itself(self):
        s = self.service()
        s.pool("lab", 1)
        daemon = os.path.join(s.base, "daemon.pid")
        command = f"(setsid sh -c 'echo $$ > {daemon}.part; mv {daemon}.part {daemon}; exec sleep 1000' &); until [ -e {daemon} ]; do sleep 0.02; done"
        submitted = s.submit(job(shell("one", command)))
        self.assertEqual(s.wait_for(submitted)["state"], "succeeded")
        wait_until(lambda: not is_alive(read_pid(daemon)), 20, "the daemon's end")

    def test_grace_between_term_and_kill(self):
        s = self.service()
        s.pool("lab", 1)
        ready = os.path.join(s.base, "ready")
        submitted = s.submit(
            job(shell("one", f"trap 'echo saved; exit 3' TERM; : > {ready}; while :; do sleep 0.05; done"))
        )
        wait_until(lambda: os.path.exists(ready))
        s.wait_for_task(submitted, "one", "running")
        s.ok("job", "cancel", submitted)
        s.wait_for(submitted, "cancelled")
        self.assertEqual(s.log(submitted, "one"), "saved\n")
        self.assertEqual(s.task(submitted, "one")["history"][0]["end"], "cancelled")


class LostNodes(SlipwayCase):
    def test_a_second_agent_with_the_same_name_is_refused(self):
        s = self.service()
        s.ok("pool", "create", "far", "--provisioner", "none")
        token = os.path.join(s.base, "join.token")
        s.ok("token", "create", "joiner", "--role", "node", "--uses", 100, "--to", token)
        join = ("node", "run", "--service", s.url, "--token-file", token, "--pool", "far", "--name", "far-1", "--folder")
        folder = os.path.join(s.base, "first")
        s.also.append(folder)
        first = s.spawn(*join, folder)
        s.wait_for_nodes(1, "far")
        second = s.run(*join, os.path.join(s.base, "second"), timeout=60)
        self.assertEqual(second.code, 1, second)
        self.assertIn("far-1", second.err)
        self.assertIn("already connected", second.err)
        self.assertEqual(s.get("/v1/nodes/far-1")["state"], "idle")
        first.terminate()
        first.wait(30)

    def test_a_second_agent_on_the_same_folder_is_refused(self):
        s = self.service()
        s.pool("lab", 1)
        ran = s.run(
            "node", "run", "--service", s.url, "--token-file", s.data + "/node-token", "--pool", "lab",
            "--name", "lab-1", "--folder", s.data + "/nodes/default.lab-1", timeout=60,
        )
        self.assertEqual(ran.code, 1, ran)
        self.assertIn(str(s.agent("lab-1")), ran.err)


class DownAndUp(SlipwayCase):
    def start_one(self):
        s = self.service()
        s.pool("lab", 1)
        wait, release = blocker(s.base)
        starts = os.path.join(s.base, "starts")
        submitted = s.submit(job(shell("one", f"echo $$ >> {starts}; {wait}; exit 9", stop_grace=1)))
        s.wait_for_task(submitted, "one", "running")
        pid = wait_until(lambda: read_pid(starts), what="the process")

        def count():
            with open(starts) as file:
                return len(file.read().split())

        return s, submitted, pid, release, count

    def test_down_ends_processes_and_up_queues_them_again(self):
        s, submitted, pid, release, starts = self.start_one()
        down = s.down()
        self.assertIn("queued again", down.err)
        self.assertFalse(is_alive(pid))
        self.assertEqual(s.survivors(), {})
        s.up()
        wait_until(lambda: starts() == 2, what="the second attempt")
        release()
        s.wait_for(submitted, "failed")
        task = s.task(submitted, "one")
        self.assertEqual(task["history"][-1]["exit_code"], 9)
        self.assertEqual(task["retries_used"], 0)
        self.assertIn(task["history"][0]["end"], ("evicted", "node_lost"))

    def test_down_keep_running_is_adopted(self):
        s, submitted, pid, release, starts = self.start_one()
        s.down("--keep-running")
        self.assertTrue(is_alive(pid))
        s.up()
        s.wait_for_nodes(1, states=("busy",))
        self.assertTrue(is_alive(pid))
        release()
        s.wait_for(submitted, "failed")
        self.assertEqual([a["exit_code"] for a in s.task(submitted, "one")["history"]], [9])
        self.assertEqual(starts(), 1)

    def test_keep_running_and_an_end_meanwhile(self):
        s, submitted, pid, release, starts = self.start_one()
        s.down("--keep-running")
        release()
        wait_until(lambda: not is_alive(pid), what="its end")
        s.up()
        s.wait_for(submitted, "failed")
        self.assertEqual([a["exit_code"] for a in s.task(submitted, "one")["history"]], [9])

    def test_down_right_after_a_start_leaves_nothing(self):
        s = self.service()
        s.ok("pool", "create", "lab", "--nodes", 2, "--cores-per-node", 1, "--overcommit")
        s.down()  # its agents have hardly been started
        wait_until(lambda: not s.survivors(), 10, f"the end of {s.survivors()}")
        s.up()
        s.wait_for_nodes(2)
        s.kill_service()
        s.up()
        s.down()  # its agents have not come back yet
        wait_until(lambda: not s.survivors(), 10, f"the end of {s.survivors()}")

    def test_down_ends_an_agent_that_does_not_answer_with_its_keeper(self):
        s = self.service()
        s.pool("lab", 1)
        s.kill(s.agent("lab-1"), sig=signal.SIGSTOP)
        s.down()
        wait_until(lambda: not s.survivors(), 10, f"the end of {s.survivors()}")

    def test_sigterm_of_the_service_is_an_orderly_down(self):
        s, submitted, pid, release, starts = self.start_one()
        service = s.pid
        os.kill(service, signal.SIGTERM)
        wait_until(lambda: not is_alive(service), what="the service's end")
        self.assertFalse(is_alive(pid))
        wait_until(lambda: not s.survivors(), 10, "the end of agents and keepers")


class JoinedNodes(SlipwayCase):
    """An agent in another network namespace, as if it were another machine."""

    def setUp(self):
        if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("unshare"):
            self.skipTest("needs root, ip and unshare to make a network namespace")
        number = random.randrange(1, 60000)
        self.net = f"slw{number}"
        self.addresses = (f"10.{77 + number % 50}.{number // 250 % 250}.1", f"10.{77 + number % 50}.{number // 250 % 250}.2")
        here, there = f"sa{number}", f"sb{number}"
        steps = [
            ["ip", "netns", "add", self.net],
            ["ip", "link", "add", here, "type", "veth", "peer", "name", there],
            ["ip", "link", "set", there, "netns", self.net],
            ["ip", "addr", "add", self.addresses[0] + "/24", "dev", here],
            ["ip", "link", "set", here, "up"],
            ["ip", "-n", self.net, "addr", "add", self.addresses[1] + "/24", "dev", there],
            ["ip", "-n", self.net, "link", "set", there, "up"],
            ["ip", "-n", self.net, "link", "set", "lo", "up"],
        ]
        self.addCleanup(subprocess.run, ["ip", "netns", "del", self.net], capture_output=True)
        self.addCleanup(subprocess.run, ["ip", "link", "del", here], capture_output=True)
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True)
            if done.returncode != 0:
                self.skipTest(f"network namespaces are not permitted here: {' '.join(step)}: {done.stderr.strip()}")

    def start(self, hidden):
        s = self.service(listen="0.0.0.0:0", arguments=["--insecure"])
        s.ok("pool", "create", "lab", "--provisioner", "none")
        # Outside the folder that is hidden, on a path the agent sees in both cases.
        folder = f"/tmp/slipway-remote-{self.net}"
        os.makedirs(folder)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        s.also.append(folder)
        token = os.path.join(folder, "join.token")
        s.ok("token", "create", "joiner", "--role", "node", "--uses", 100, "--to", token)
        agent = [
            SLIPWAY, "node", "run", "--service", f"http://{self.addresses[0]}:{s.port}", "--token-file", token,
            "--pool", "lab", "--name", "far", "--folder", os.path.join(folder, "node"), "--address", self.addresses[1],
            "--cores", "2",
        ]
        command = ["ip", "netns", "exec", self.net, *agent]
        if hidden:
            hide = f'mount -t tmpfs none {s.base} && exec "$@"'
            command = ["ip", "netns", "exec", self.net, "unshare", "-m", "sh", "-c", hide, "sh", *agent]

        def launch():
            with open(os.path.join(folder, "agent.out"), "ab") as log:
                self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                                              env={"PATH": os.environ["PATH"], "HOME": folder})

        def stop():
            child = self.child
            if child.poll() is None:
                child.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(20)
            if child.poll() is None:
                child.kill()
                child.wait()
            keeper = s.pid_in(os.path.join(folder, "node", "keeper.lock"))
            with contextlib.suppress(NeverHappened):
                wait_until(lambda: not keeper or not is_alive(keeper), 5)

        self.launch = launch
        launch()
        self.addCleanup(stop)
        try:
            s.wait_for_nodes(1)
        except NeverHappened:
            with open(os.path.join(folder, "agent.out")) as file:
                self.fail("the agent did not join: " + file.read())
        return s, folder

    def check_job(self, s, shares):
        node = s.get("/v1/nodes/far")
        self.assertEqual((node["local"], node["shares_storage"], node["address"]), (False, shares, self.addresses[1]))
        self.assertGreaterEqual(node["changed_at"], node["created_at"])
        source = os.path.join(s.base, "code")
        os.makedirs(source)
        with open(os.path.join(source, "hello.txt"), "w") as file:
            file.write("hello from far\n")
        go = f"/tmp/slipway-remote-{self.net}/go"
        # Ten thousand lines, seen while it runs, ranges and tail of them, an output file, and stderr.
        command = (f"cat hello.txt; seq 10000; echo oops >&2; echo result > $SLIPWAY_OUTPUTS/result.txt; "
                   f"until [ -e {go} ]; do sleep 0.05; done; echo $SLIPWAY_NODES")
        file = s.write("remote.yaml", f"name: remote\nsource: ./code\ntasks:\n  - name: one\n    command: |\n      {command}\n")
        submitted = s.ok("job", "submit", file).out.strip()
        wait_until(lambda: "10000" in s.log(submitted, "one"), what="its output while it runs")
        follower = s.spawn("logs", submitted, "-f", "--stdout")
        open(go, "w").close()
        self.assertEqual(s.wait_for(submitted)["state"], "succeeded")
        out, err = follower.communicate(timeout=60)
        self.assertEqual(follower.returncode, 0, err)
        expected = "hello from far\n" + "".join(f"{i}\n" for i in range(1, 10001)) + self.addresses[1] + "\n"
        self.assertEqual(out.decode(), expected)
        self.assertEqual(s.ok("logs", submitted, "--stdout").out, expected)
        self.assertEqual(s.ok("logs", submitted, "--stderr").out, "oops\n")
        self.assertEqual(s.ok("logs", submitted, "--tail", 2, "--stdout").out, "10000\n" + self.addresses[1] + "\n")
        self.assertEqual(s.ok("files", "get", f"{submitted}/one", "outputs/result.txt").out, "result\n")
        self.assertIn("outputs", s.ok("files", "list", f"{submitted}/one", "-o", "quiet").out)
        ranged = s.ask("GET", f"/v1/jobs/{submitted}/tasks/one/logs", headers={"Range": "bytes=6-9"})
        self.assertEqual(ranged.body, b"from")
        self.assertEqual(ranged.status, 206)

    def test_with_a_shared_file_system(self):
        s, folder = self.start(hidden=False)
        self.check_job(s, shares=True)

    def test_with_storage_of_its_own(self):
        s, folder = self.start(hidden=True)
        self.check_job(s, shares=False)

    def test_run_needs_a_folder(self):
        s, folder = self.start(hidden=True)
        s.refused("run", "--", "true", code=2, says=["--source", "--workdir"])
        self.assertEqual(s.ok("run", "--workdir", "/tmp", "--", "pwd").out, "/tmp\n")

    def test_an_agent_killed_and_started_again_reports_the_end(self):
        s, folder = self.start(hidden=True)
        s.ok("pool", "show", "lab")
        wait, release = blocker(folder, "go2")
        submitted = s.submit(job(shell("one", f"echo $$ >> {folder}/starts; {wait}; exit 4")))
        s.wait_for_task(submitted, "one", "running")
        self.child.kill()
        self.child.wait()
        self.launch()
        s.wait_for_nodes(1)
        release()
        s.wait_for(submitted)
        with open(os.path.join(folder, "starts")) as file:
            starts = len(file.read().split())
        history = s.task(submitted, "one")["history"]
        self.assertEqual(len(history), starts)
        # Where the restart took longer than lost_after it was lost and ran again; the end is true all the same.
        self.assertEqual((history[-1]["end"], history[-1]["exit_code"]), ("exited", 4))


class KillRounds(unittest.TestCase):
    def test_twenty_rounds(self):
        Rounds(20, int.from_bytes(os.urandom(4), "big")).run()


if __name__ == "__main__":
    unittest.main()
