"""Who runs jobs on one machine, kept apart: the users they run as, and what is closed to them."""

import contextlib
import glob
import os
import shutil
import stat
import subprocess
import tempfile
import unittest

from harness import SLIPWAY, Service, SlipwayCase, job, shell, wait_until

# What a job tries against another's: prints a line for each thing that worked.
ATTACK = r"""
import ctypes, glob, os, signal, sys
victim, folder, data = int(sys.argv[1]), sys.argv[2], sys.argv[3]
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
def attempt(name, work):
    try:
        if work() is not False:
            print("WORKED", name)
    except (OSError, ValueError) as error:
        print("refused", name, error)
attempt("see its environment", lambda: open(f"/proc/{victim}/environ").read())
attempt("see its memory", lambda: open(f"/proc/{victim}/mem", "rb").read(0))
attempt("see its working folder", lambda: os.listdir(f"/proc/{victim}/cwd/"))
attempt("signal it", lambda: os.kill(victim, 0))
attempt("kill it", lambda: os.kill(victim, signal.SIGTERM))
attempt("trace it", lambda: libc.ptrace(16, victim, None, None) == 0)
attempt("read its file", lambda: open(folder + "/wd/mine").read())
attempt("list its folder", lambda: os.listdir(folder + "/wd"))
attempt("read its output", lambda: open(folder + "/stdout.txt").read())
attempt("write into its folder", lambda: open(folder + "/outputs/x", "w"))
for name in ("token", "node-token", "secret.key", "slipway.db", "service.log"):
    attempt("read " + name, lambda: open(data + "/" + name).read(1))
attempt("list the code of others", lambda: os.listdir(data + "/blobs"))
attempt("list the nodes", lambda: os.listdir(data + "/nodes"))
attempt("become root", lambda: os.setuid(0))
print("done")
"""

ABOUT = "id -u; id -g; id -G; grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status; pwd; ls -ld . | cut -c1-10; echo $HOME"


class Isolation(SlipwayCase):
    def users(self, s):
        tokens = {}
        for user in ("ana", "ben"):
            answer = s.ask("POST", "/v1/tokens", body={"name": user, "role": "member"})
            self.assertEqual(answer.status, 201, answer)
            tokens[user] = answer.json["token"]
        return tokens

    def two_jobs(self, s):
        """A job of ana's that runs, and what one of ben's on the same node got of it."""
        tokens = self.users(s)
        s.pool("lab", 1, 2)
        victim = s.submit(job(shell("a", "echo secret > mine; echo ready $$; exec sleep 600", secrets={"KEY": "of-ana"},
                                    resources={"cores": 1}), pool="lab"), token=tokens["ana"])
        s.wait_for_task(victim, "a", "running")
        wait_until(lambda: "ready" in s.log(victim, "a"), what="ana's job says ready")
        folder = f"{s.data}/workspaces/default/jobs/{victim}/a"
        if not os.path.isdir(folder):
            folder = f"{s.data}/workspaces/default/jobs/{victim}/a.1"
        self.assertTrue(os.path.isdir(folder), folder)
        pid = self.pid_of(folder)
        code = s.write("attack.py", ATTACK)
        os.chmod(s.base, 0o755)
        attack = s.submit(job(shell("b", f"python3 {code} {pid} {folder} {s.data}", resources={"cores": 1}), pool="lab"),
                          token=tokens["ben"])
        ended = s.wait_for(attack)
        log = s.log(attack, "b")
        self.assertIn("done", log, (ended, log, s.log(attack, "b", stream="stderr")))
        self.assertEqual(s.task(victim, "a")["state"], "running")
        return tokens, victim, log

    def pid_of(self, folder):
        """Of the sleep that runs there."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/comm") as comm, open(f"/proc/{entry}/environ", "rb") as environment:
                    if comm.read().strip() == "sleep" and f"SLIPWAY_OUTPUTS={folder}/".encode() in environment.read():
                        found.append(int(entry))
            except OSError:
                continue
        self.assertEqual(len(found), 1, found)
        return found[0]


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class AsRoot(Isolation):
    RULES = ("--run-as", "ana=20001:20001", "--run-as", "ben=20002:20002")

    def service(self, *arguments):
        s = Service(arguments=arguments, start=False)
        self.addCleanup(s.close)
        os.chmod(s.base, 0o711)
        s.up()
        return s

    def test_two_users_cannot_read_signal_or_trace_each_other(self):
        s = self.service(*self.RULES)
        tokens, victim, log = self.two_jobs(s)
        self.assertNotIn("WORKED", log)
        about = s.submit(job(shell("who", ABOUT), pool="lab"), token=tokens["ana"])
        self.assertEqual(s.wait_for(about)["state"], "succeeded", s.log(about, "who", stream="stderr"))
        lines = s.log(about, "who").split("\n")
        self.assertEqual(lines[:3], ["20001", "20001", "20001"])
        status = dict(line.split(":\t") for line in lines[3:6])
        self.assertEqual(status["NoNewPrivs"], "1")
        self.assertEqual(int(status["CapEff"], 16), 0)
        self.assertEqual(int(status["CapBnd"], 16), 0)
        self.assertEqual(lines[7], "drwx------")
        self.assertEqual(s.ask("POST", f"/v1/jobs/{victim}/cancel", body={}).status, 200)
        s.wait_for(victim)

    def test_code_outputs_and_shared_folders_are_the_users(self):
        s = self.service(*self.RULES)
        tokens = self.users(s)
        s.pool("lab", 1, 2)
        folder = os.path.join(s.base, "code")
        os.makedirs(folder + "/inner")
        for name in ("run.sh", "inner/data"):
            with open(os.path.join(folder, name), "w") as file:
                file.write("#!/bin/sh\necho x >> inner/data && echo o > $SLIPWAY_OUTPUTS/o && echo s >> $SLIPWAY_SHARED/s "
                           "&& echo c > $SLIPWAY_CHECKPOINT_DIR/c && echo again > /dev/stderr && id -u\n")
        os.chmod(folder + "/run.sh", 0o755)
        token = s.write("ana.token", tokens["ana"] + "\n")
        file = s.write("job.yaml", "source: code\npool: lab\ntasks:\n- name: a\n  nodes: 1\n  processes_per_node: 2\n  command: ./run.sh\n")
        submitted = s.ok("job", "submit", file, "-o", "quiet", "--token-file", token).out.strip()
        ended = s.wait_for(submitted)
        self.assertEqual(ended["state"], "succeeded", s.log(submitted, "a", stream="stderr"))
        self.assertEqual(s.log(submitted, "a").strip(), "20001")
        self.assertEqual(s.log(submitted, "a", stream="stderr").strip(), "again")
        self.assertEqual(s.ask("GET", f"/v1/jobs/{submitted}/tasks/a/files/content?path=outputs/o").body, b"o\n")

    def viewed(self, s, token, mounts, command="cat /mnt/e2e/view/in/*", **more):
        """A job of one task with these mounts, when it has ended; and its output."""
        submitted = s.submit(job(shell("a", command, mount_root="/mnt/e2e/view", mounts=mounts, **more), pool="lab"), token=token)
        ended = s.wait_for(submitted)
        return ended, s.log(submitted, "a"), s.task(submitted, "a")

    def test_what_is_mounted_is_opened_with_the_rights_of_the_user(self):
        s = self.service(*self.RULES)
        token = self.users(s)["ana"]
        s.pool("lab", 1, 2)
        closed, opened = os.path.join(s.base, "closed"), os.path.join(s.base, "opened")
        for folder in (closed + "/inner", opened):
            os.makedirs(folder)
            with open(folder + "/file", "w") as file:
                file.write("content\n")
        os.chmod(closed, 0o700)
        for path in (closed + "/inner", closed + "/made", s.data, s.base, s.data + "/nodes"):
            ended, log, task = self.viewed(s, token, [{"at": "in", "path": path}])
            self.assertEqual(ended["state"], "failed", (path, log))
            self.assertNotIn("content", log)
            self.assertIn("mount", str(task), "and it is said why")
        self.assertFalse(os.path.exists(closed + "/made"), "nothing is made with the rights of the agent")
        ended, log, _ = self.viewed(s, token, [{"at": "in", "path": opened, "read_only": True}])
        self.assertEqual((ended["state"], log), ("succeeded", "content\n"))
        # A link in a datastore leads nowhere else, and what one job puts there is read by the next.
        s.ask("PUT", "/v1/datastores/d", body={}, token=token)
        ended, _, task = self.viewed(s, token, [{"at": "in", "datastore": "d"}],
                                     f"ln -s {s.data} /mnt/e2e/view/in/link && echo mine > /mnt/e2e/view/in/f")
        self.assertEqual(ended["state"], "succeeded", task)
        ended, log, _ = self.viewed(s, token, [{"at": "in", "datastore": "d", "folder": "link"}], "ls /mnt/e2e/view/in")
        self.assertEqual(ended["state"], "failed", log)
        ended, log, _ = self.viewed(s, token, [{"at": "in", "datastore": "d", "read_only": True}], "cat /mnt/e2e/view/in/f")
        self.assertEqual((ended["state"], log), ("succeeded", "mine\n"))

    def test_variables_of_a_job_reach_nothing_that_is_root(self):
        s = self.service(*self.RULES)
        token = self.users(s)["ana"]
        s.pool("lab", 1, 2)
        folder = os.path.join(s.base, "linker")
        os.makedirs(folder)
        os.chmod(folder, 0o777)
        # What the dynamic linker does for whoever is run with these is seen by who owns the files.
        linker = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": folder + "/of"}
        for mounts in ({}, {"mount_root": "/mnt/e2e/view", "mounts": [{"at": "in", "scratch": True}]}):
            task = shell("a", "echo $MINE; id -u", environment={**linker, "MINE": "kept", "SLIPWAY_VIEW": "/etc\n/\n"}, **mounts)
            submitted = s.submit(job(task, pool="lab"), token=token)
            self.assertEqual(s.wait_for(submitted)["state"], "succeeded", s.log(submitted, "a", stream="stderr"))
            self.assertEqual(s.log(submitted, "a"), "kept\n20001\n")
        owners = {os.stat(os.path.join(folder, name)).st_uid for name in os.listdir(folder)}
        self.assertEqual(owners, {20001})

    def test_a_job_cannot_name_the_program_that_makes_views(self):
        s = self.service(*self.RULES)
        token = self.users(s)["ana"]
        s.pool("lab", 1, 2)
        submitted = s.submit(job({"name": "a", "command": ["@slipway@", "node", "view", "--", "id", "-u"],
                                  "environment": {"SLIPWAY_VIEW": "/mnt/x\n/root\n"}}, pool="lab"), token=token)
        s.wait_for(submitted)
        self.assertNotIn("0\n", s.log(submitted, "a").replace("20001\n", ""))

    def test_workspaces_are_closed_to_each_other(self):
        s = self.service("--run-as", "ana=20001", "--run-as", "ml/=20003")
        ana = self.users(s)["ana"]
        eve = s.ask("POST", "/v1/tokens", body={"name": "eve", "role": "admin", "workspace": "ml"}).json["token"]
        pretender = s.ask("POST", "/v1/tokens", body={"name": "ana", "role": "member", "workspace": "ml"}, token=eve).json["token"]
        s.ask("PUT", "/v1/datastores/d", body={}, token=ana)
        self.assertEqual(s.ask("PUT", "/v1/datastores/d/content?path=f", body=b"of default\n", token=ana).status, 200)
        path = f"{s.data}/workspaces/default"
        reads = f"id -u; ls {path} {path}/datastores/d; cat {path}/datastores/d/f; ls {s.data}/workspaces"
        s.pool("lab", 1, 1)
        # Before a job of the workspace ran, and after.
        for _ in range(2):
            for token in (eve, pretender):
                self.assertEqual(s.ask("POST", "/v1/pools", body={"name": "own", "nodes": 1, "cores_per_node": 1, "overcommit": True},
                                       token=token).status in (201, 409), True)
                submitted = s.submit(job(shell("a", reads), pool="own"), token=token)
                wait_until(lambda: s.ask("GET", f"/v1/jobs/{submitted}", token=token).json["state"] == "failed", what="it has failed")
                log = s.ask("GET", f"/v1/jobs/{submitted}/tasks/a/logs", token=token).body
                self.assertEqual(log, b"20003\n")
            ended, log, task = self.viewed(s, ana, [{"at": "in", "datastore": "d"}, {"at": "s", "scratch": True}],
                                           "cat /mnt/e2e/view/in/f; stat -c %a:%u /mnt/e2e/view/s")
            self.assertEqual((ended["state"], log), ("succeeded", "of default\n755:20001\n"), task)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode) & 0o007, 0)
        scratch = glob.glob(path + "/jobs/*/_scratch/*")
        self.assertTrue(scratch)
        self.assertEqual({(stat.S_IMODE(os.stat(one).st_mode), os.stat(one).st_uid) for one in scratch}, {(0o700, 20001)})

    def test_whom_no_rule_names_runs_nothing(self):
        s = self.service("--run-as", "ana=20001")
        answer = s.ask("POST", "/v1/tokens", body={"name": "eve", "role": "member"})
        self.assertEqual(answer.status, 201, answer)
        refused = s.ask("POST", "/v1/jobs", body=job(shell("a", "true")), token=answer.json["token"])
        self.assertEqual(refused.status, 403, refused)
        self.assertIn("--run-as eve=UID", refused.json["hint"])
        s.pool("lab", 1)
        mine = s.submit(job(shell("a", "id -u"), pool="lab"))
        self.assertEqual(s.wait_for(mine)["state"], "succeeded")
        self.assertEqual(s.log(mine, "a"), "0\n", "the service's own admin runs as the service does")

    def test_a_folder_that_users_cannot_reach_is_said_at_the_start(self):
        s = Service(arguments=self.RULES, start=False)
        self.addCleanup(s.close)
        os.chmod(s.base, 0o700)
        s.refused("up", "--listen", "127.0.0.1:0", "--detach", *self.RULES, says=["chmod o+x", s.base])

    def test_c2_a_second_users_token_needs_run_as_or_trust(self):
        s = Service(arguments=[], start=False, trusting=False)
        self.addCleanup(s.close)
        s.up()
        refused = s.ask("POST", "/v1/tokens", body={"name": "ana", "role": "member"})
        self.assertEqual(refused.status, 403, refused)
        self.assertIn("--trust-members", refused.json["hint"])
        self.assertIn("--run-as", refused.json["hint"])
        for role in ("viewer", "node"):
            self.assertEqual(s.ask("POST", "/v1/tokens", body={"name": "x", "role": role}).status, 201, role)
        self.assertEqual(s.ask("POST", "/v1/tokens", body={"name": "admin", "role": "admin"}).status, 201, "the same user")


@unittest.skipUnless(os.geteuid() == 0, "becomes an ordinary user")
class AsOrdinaryUser(Isolation):
    def test_two_users_see_nothing_of_each_other_in_namespaces(self):
        probe = subprocess.run(["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups", "unshare", "-Urpf", "true"],
                               capture_output=True)
        if probe.returncode != 0:
            self.skipTest("ordinary users make no namespaces here")
        s = OrdinaryService(arguments=["--run-as", "ana=12345", "--run-as", "ben=12345"])
        self.addCleanup(s.close)
        s.up()
        tokens, victim, log = self.two_jobs(s)
        self.assertNotIn("WORKED", log)
        (node,) = s.get("/v1/nodes")["items"]
        self.assertTrue([note for note in node["notes"] if "run-as without root" in note], node["notes"])
        for command, field, value in (("kill -9 $$", "signal", 9), ("exit 7", "exit_code", 7)):
            ended = s.submit(job(shell("x", command), pool="lab"))
            self.assertEqual(s.wait_for(ended)["state"], "failed")
            self.assertEqual(s.task(ended, "x")[field], value)
        # What is shown to jobs is not what mounts make seen.
        for mount in ({"path": s.data}, {"path": s.base}, {"path": f"/proc/{s.pid}/cwd"}, {"datastore": "d", "folder": "link"}):
            s.ask("PUT", "/v1/datastores/d", body={}, token=tokens["ben"])
            os.makedirs(f"{s.data}/workspaces/default/datastores/d", exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.symlink(s.data, f"{s.data}/workspaces/default/datastores/d/link")
            stolen = s.submit(job(shell("a", f"find /mnt/e2e/view -name token | xargs cat", mount_root="/mnt/e2e/view",
                                        mounts=[{"at": "in", **mount}]), pool="lab"), token=tokens["ben"])
            self.assertEqual(s.wait_for(stolen)["state"], "failed", mount)
            self.assertNotIn("slipway_", s.log(stolen, "a"))
        self.assertEqual(s.ask("POST", f"/v1/jobs/{victim}/cancel", body={}).status, 200)
        s.wait_for(victim)


class OrdinaryService(Service):
    """A service of the user 12345, with a copy of the program that it can read."""

    def __init__(self, **options):
        super().__init__(start=False, **options)
        self.bin = tempfile.mkdtemp(prefix="slipway-bin-")
        shutil.copy(SLIPWAY, self.bin + "/slipway")
        os.chmod(self.bin, 0o755)
        os.chmod(self.base, 0o755)
        for folder in (self.base, self.home):
            os.chown(folder, 12345, 12345)

    def run(self, *args, **options):
        if args and args[0] == "up":
            done = subprocess.run(
                ["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups", self.bin + "/slipway", *map(str, args)],
                capture_output=True, cwd=self.base, env=self.environment(), stdin=subprocess.DEVNULL, timeout=60)
            from harness import Ran
            return Ran(args, done.returncode, done.stdout.decode(), done.stderr.decode())
        return super().run(*args, **options)

    def close(self):
        super().close()
        shutil.rmtree(self.bin, ignore_errors=True)


class Modes(SlipwayCase):
    def test_low_the_data_folder_and_the_database_are_closed_to_others(self):
        s = Service(start=False)
        self.addCleanup(s.close)
        os.makedirs(s.data, 0o755)
        s.up()
        self.assertEqual(stat.S_IMODE(os.stat(s.data).st_mode), 0o700)
        for name in ("slipway.db", "slipway.db-wal", "secret.key", "token", "node-token"):
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(s.data, name)).st_mode), 0o600, name)

    def test_m3_local_pools_work_in_every_workspace(self):
        s = self.service()
        token = s.ask("POST", "/v1/tokens", body={"name": "lena", "role": "admin", "workspace": "ml"}).json["token"]
        answer = s.ask("POST", "/v1/pools", body={"name": "own", "nodes": 1, "cores_per_node": 1, "overcommit": True}, token=token)
        self.assertEqual(answer.status, 201, answer)
        submitted = s.submit(job(shell("a", "echo in $SLIPWAY_NODE"), pool="own"), token=token)
        wait_until(lambda: s.ask("GET", f"/v1/jobs/{submitted}", token=token).json["state"] == "succeeded",
                   what="a job on a local node of workspace ml")
        self.assertEqual(s.get("/v1/nodes")["items"], [], "nothing of it is in workspace default")
        # The token of another workspace's nodes joins nothing there.
        node = s.ask("POST", "/v1/tokens", body={"name": "n", "role": "node", "workspace": "default"}).json["token"]
        headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                   "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
        self.assertEqual(s.ask("GET", "/v1/nodes/connect?workspace=ml", token=node, headers=headers).status, 403)


if __name__ == "__main__":
    unittest.main()
