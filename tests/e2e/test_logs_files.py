"""Logs and files: read through the service while they grow, from any byte, and never from outside."""

import os
import socket
import tempfile
import threading
import unittest
import urllib.parse

from harness import SharedServiceCase, blocker, job, read_line, shell, wait_until


class Logs(SharedServiceCase):
    def test_follow_ends_with_the_process(self):
        wait, release = blocker(self.s.base, "go-follow")
        submitted = self.s.submit(job(shell("a", f"echo one; {wait}; echo two; printf three")))
        followers = [self.s.spawn("logs", submitted, "-f") for _ in range(3)]
        for follower in followers:
            self.assertEqual(read_line(follower), b"one\n")
        release()
        for follower in followers:
            out, err = follower.communicate(timeout=60)
            self.assertEqual((follower.returncode, out), (0, b"two\nthree"), err)

    def test_follow_before_it_starts(self):
        wait, release = blocker(self.s.base, "go-before")
        first = self.s.submit(job(shell("a", wait, nodes=2)))
        self.s.wait_for_task(first, "a", "running")
        second = self.s.submit(job(shell("b", "echo at last")))
        follower = self.s.spawn("logs", second, "-f")
        release()
        out, err = follower.communicate(timeout=60)
        self.assertEqual((follower.returncode, out), (0, b"at last\n"), err)

    def test_many_follow_what_is_just_placed(self):
        # The events of a start come faster than a follower's questions are answered; none may be answered twice.
        for number in range(10):
            wait, release = blocker(self.s.base, f"go-many-{number}")
            first = self.s.submit(job(shell("a", wait, nodes=2)))
            self.s.wait_for_task(first, "a", "running")
            second = self.s.submit(job(shell("b", "echo at last")))
            followers = [self.s.connect() for _ in range(20)]
            for follower in followers:
                follower.request("GET", f"/v1/jobs/{second}/tasks/b/logs?follow=true", headers={"Authorization": "Bearer " + self.s.token})
            release()
            for follower in followers:
                answer = follower.getresponse()
                self.assertEqual((answer.status, answer.read()), (200, b"at last\n"))
                follower.close()

    def test_follow_from_the_very_start_is_live(self):
        # A follower that comes between the placement and the first byte must not wait for the end.
        for number in range(15):
            wait, release = blocker(self.s.base, f"go-live-{number}")
            follower = self.s.spawn("run", "--", "sh", "-c", f"echo begun; {wait}")
            try:
                self.assertEqual(read_line(follower), b"begun\n")
            finally:
                release()
            follower.communicate(timeout=60)

    def test_follow_of_a_task_that_never_runs(self):
        submitted = self.s.submit(job(shell("a", "false"), shell("b", "true", depends_on=["a"])))
        follower = self.s.spawn("logs", f"{submitted}/b", "-f")
        out, err = follower.communicate(timeout=60)
        self.assertEqual(out, b"", err)

    def test_from_any_byte(self):
        submitted = self.s.submit(job(shell("a", "seq 1000")))
        self.s.wait_for(submitted)
        whole = "".join(f"{i}\n" for i in range(1, 1001)).encode()
        path = f"/v1/jobs/{submitted}/tasks/a/logs"
        for header, expected in (("bytes=0-9", whole[:10]), ("bytes=100-", whole[100:]), ("bytes=-7", whole[-7:])):
            answer = self.s.ask("GET", path, headers={"Range": header})
            self.assertEqual((answer.status, answer.body), (206, expected))
            self.assertRegex(answer.headers["Content-Range"], rf"^bytes \d+-\d+/{len(whole)}$")
        self.assertEqual(self.s.ask("GET", path, headers={"Range": "bytes=99999-"}).status, 416)
        self.assertEqual(self.s.ask("GET", path + "?offset=3890").body, whole[3890:])
        self.assertEqual(self.s.ask("GET", path + "?offset=3890&follow=true").body, whole[3890:])
        self.assertEqual(self.s.ask("GET", path).headers["X-Slipway-Attempt"], "1")

    def test_tail(self):
        submitted = self.s.submit(job(shell("a", "seq 1000; printf end")))
        self.s.wait_for(submitted)
        for lines, expected in ((0, ""), (1, "end"), (3, "999\n1000\nend"), (5000, None)):
            out = self.s.ok("logs", submitted, "--tail", lines).out
            self.assertEqual(out, expected if expected is not None else self.s.ok("logs", submitted).out)
        self.assertEqual(self.s.ok("logs", submitted, "--tail", 2, "-f").out, "1000\nend")

    def test_stderr_attempts_and_ranks(self):
        # Both have written before one fails, for the failure of one ends the other.
        both = "here=$SLIPWAY_SHARED/$SLIPWAY_ATTEMPT; touch $here-$SLIPWAY_RANK; until [ -e $here-0 -a -e $here-1 ]; do sleep 0.02; done"
        submitted = self.s.submit(job(shell("a", f"echo out $SLIPWAY_RANK; echo err $SLIPWAY_ATTEMPT >&2; {both}; [ $SLIPWAY_ATTEMPT = 2 ]", nodes=2, retries=3)))
        self.s.wait_for(submitted)
        self.assertEqual(self.s.ok("logs", f"{submitted}/a/1", "--stdout").out, "out 1\n")
        self.assertEqual(self.s.ok("logs", f"{submitted}/a/0", "--stderr").out, "err 2\n")
        self.assertEqual(self.s.ok("logs", f"{submitted}/a/0", "--stderr", "--attempt", 1).out, "err 1\n")
        both = self.s.ok("logs", submitted, "--stdout").out.splitlines()
        self.assertEqual(sorted(line.split("] ")[-1] for line in both), ["out 0", "out 1"])
        self.s.refused("logs", f"{submitted}/a/2", says="2")
        self.s.refused("logs", f"{submitted}/a", "--attempt", 9, says="9")

    def test_a_line_of_ten_mebibytes(self):
        submitted = self.s.submit(job(shell("a", "head -c 10485760 /dev/zero | tr '\\0' x; echo; echo end")))
        follower = self.s.spawn("logs", submitted, "-f")
        out, err = follower.communicate(timeout=120)
        self.assertEqual(follower.returncode, 0, err)
        self.assertEqual(out, b"x" * 10485760 + b"\nend\n")
        self.assertEqual(self.s.ok("logs", submitted, "--tail", 1).out, "end\n")
        self.assertEqual(len(self.s.ok("logs", submitted, "--tail", 2).out), 10485760 + 5)

    def test_bytes_that_are_not_text(self):
        submitted = self.s.submit(job(shell("a", "printf '\\000\\377\\376ok\\n'")))
        self.s.wait_for(submitted)
        self.assertEqual(self.s.run("logs", submitted, binary=True).out, b"\0\377\376ok\n")

    def test_a_slow_follower_does_not_hold_up_others(self):
        submitted = self.s.submit(job(shell("a", "head -c 50000000 /dev/zero; sleep 1000")))
        self.s.wait_for_task(submitted, "a", "running")
        request = (f"GET /v1/jobs/{submitted}/tasks/a/logs?follow=true HTTP/1.1\r\nHost: localhost\r\n"
                   f"Authorization: Bearer {self.s.token}\r\n\r\n").encode()
        slow = []
        for _ in range(20):
            one = socket.create_connection(("127.0.0.1", self.s.port))
            one.sendall(request)  # and never reads
            slow.append(one)
        wait_until(lambda: int(self.s.ask("GET", f"/v1/jobs/{submitted}/tasks/a/logs", headers={"Range": "bytes=0-0"})
                               .headers.get("Content-Range", "0/0").split("/")[1]) == 50000000)
        self.assertEqual(len(self.s.ask("GET", f"/v1/jobs/{submitted}/tasks/a/logs").body), 50000000)
        with open(f"/proc/{self.s.pid}/status") as file:
            resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
        self.assertLess(resident, 200_000, "KiB: copies pile up in memory")
        for one in slow:
            one.close()
        self.s.ok("job", "cancel", submitted)
        self.s.wait_for(submitted)


class Files(SharedServiceCase):
    pool_nodes = 1

    def test_list_and_get(self):
        submitted = self.s.submit(job(shell("a", "mkdir -p $SLIPWAY_OUTPUTS/deep; echo model > $SLIPWAY_OUTPUTS/deep/m.bin; echo x > here")))
        self.s.wait_for(submitted)
        task = f"{submitted}/a"
        self.assertLessEqual({"outputs", "stdout.txt", "stderr.txt", "wd"}, set(self.s.ok("files", "list", task, "-o", "quiet").out.split()))
        self.assertEqual(self.s.ok("files", "list", task, "outputs/deep", "-o", "quiet").out.split(), ["outputs/deep/m.bin"])
        self.assertEqual(self.s.ok("files", "get", task, "outputs/deep/m.bin").out, "model\n")
        to = os.path.join(self.s.base, "got")
        self.s.ok("files", "get", task, "outputs/deep/m.bin", "--to", to)
        with open(to) as file:
            self.assertEqual(file.read(), "model\n")
        self.s.refused("files", "get", task, "outputs/nothing", says="nothing")
        self.s.refused("files", "get", task, "outputs", says="outputs")
        (listed,) = self.s.ok("files", "list", task, "outputs/deep", "-o", "json").json["items"]
        self.assertEqual((listed["kind"], listed["size"]), ("file", 6))

    def test_tasks_that_write_nothing_leave_nothing(self):
        submitted = self.s.submit(job(shell("a", 'test "$SLIPWAY_TASK_INDEX" != 7 || echo seven', count=20)))
        self.s.wait_for(submitted)
        folder = os.path.join(self.s.data, "workspaces/default/jobs", submitted)
        self.assertEqual([name for name in os.listdir(folder) if not name.startswith("_")], ["a[7].1"],
                         "only the task that wrote something has a folder, from its end on")
        self.assertEqual(self.s.log(submitted, "a[7]"), "seven\n")
        self.assertEqual(self.s.log(submitted, "a[7]", tail=1), "seven\n")
        for query in ({}, {"tail": 5}, {"offset": 3}, {"follow": "true"}, {"stream": "stderr"}):
            self.assertEqual(self.s.log(submitted, "a[6]", **query), "", query)
        task = f"{submitted}/a[6]"
        listed, written = (self.s.ok("files", "list", f"{submitted}/a[{i}]", "-o", "json").json["items"] for i in (6, 7))
        shape = [(item["path"], item["kind"]) for item in written]
        self.assertEqual([(item["path"], item["kind"]) for item in listed], shape, "reads see no difference")
        self.assertEqual([item["path"] for item in listed], ["outputs", "stderr.txt", "stdout.txt", "wd"])
        self.assertEqual({item["size"] for item in listed}, {0})
        for path in ("outputs", "wd", "checkpoint"):
            self.assertEqual(self.s.ok("files", "list", task, path, "-o", "json").json["items"], [])
        self.assertEqual(self.s.ok("files", "get", task, "stdout.txt").out, "")
        self.s.refused("files", "get", task, "outputs/nothing", says="nothing")

    def test_a_job_that_writes_nothing_leaves_nothing(self):
        alone = self.s.submit(job(shell("t", "true")))
        with tempfile.TemporaryDirectory() as here:
            given = self.s.submit(job(shell("t", "true", workdir=here)))
            for submitted in (alone, given):
                self.s.wait_for(submitted, "succeeded")
                folder = os.path.join(self.s.data, "workspaces/default/jobs", submitted)
                wait_until(lambda: not os.path.exists(folder), what=f"{folder} to be removed")
                self.assertEqual(self.s.log(submitted, "t"), "")
                listed = self.s.ok("files", "list", f"{submitted}/t", "-o", "quiet").out.split()
                self.assertEqual(listed, ["outputs", "stderr.txt", "stdout.txt"] + ["wd"] * (submitted == alone))
                for path in ["outputs", "checkpoint"]:
                    self.assertEqual(self.s.ok("files", "list", f"{submitted}/t", path, "-o", "json").json["items"], [])

    def test_what_tasks_share_and_save_remains(self):
        submitted = self.s.submit(job(shell("a", "true"), shell("b", "echo 1 > $SLIPWAY_CHECKPOINT_DIR/step; echo 2 > $SLIPWAY_SHARED/x")))
        self.s.wait_for(submitted, "succeeded")
        folder = os.path.join(self.s.data, "workspaces/default/jobs", submitted)
        wait_until(lambda: os.listdir(folder + "/_checkpoints") == ["b"], what="the empty one of the other task to be removed")
        self.assertEqual(sorted(os.listdir(folder)), ["_checkpoints", "_shared"])
        self.assertEqual(os.listdir(folder + "/_shared"), ["x"])

    def test_gangs_that_write_nothing_leave_two_folders(self):
        submitted = self.s.submit(job(shell("a", 'test "$SLIPWAY_RANK" != 1 || echo one', processes_per_node=3, resources={"cores": 0.1})))
        self.s.wait_for(submitted)
        folder = os.path.join(self.s.data, "workspaces/default/jobs", submitted, "a.1")
        self.assertEqual(sorted(os.listdir(folder)), ["outputs", "stdout-1.txt"])
        task = f"{submitted}/a"
        self.assertEqual(self.s.ok("logs", f"{task}/1").out, "one\n")
        self.assertEqual(self.s.ok("logs", f"{task}/2").out, "")
        self.assertEqual(self.s.ok("files", "get", task, "stdout-2.txt").out, "")
        self.s.refused("files", "get", task, "stdout-3.txt", says="stdout-3.txt")
        listed = self.s.ok("files", "list", task, "-o", "json").json["items"]
        self.assertEqual([(item["path"], item["size"]) for item in listed],
                         [("outputs", 0), *((f"stderr-{i}.txt", 0) for i in range(3)),
                          *((f"stdout-{i}.txt", 4 if i == 1 else 0) for i in range(3)), *((f"wd-{i}", 0) for i in range(3))])
        self.assertEqual(self.s.ok("files", "list", task, "wd-2", "-o", "json").json["items"], [])

    def test_two_gibibytes_by_range(self):
        submitted = self.s.submit(job(shell("a", "truncate -s 2G $SLIPWAY_OUTPUTS/big; printf end >> $SLIPWAY_OUTPUTS/big")))
        self.s.wait_for(submitted)
        path = f"/v1/jobs/{submitted}/tasks/a/files/content?path=outputs/big"
        size = (2 << 30) + 3
        answer = self.s.ask("GET", path, headers={"Range": "bytes=-5"})
        self.assertEqual((answer.status, answer.body), (206, b"\0\0end"))
        self.assertEqual(answer.headers["Content-Range"], f"bytes {size - 5}-{size - 1}/{size}")
        answer = self.s.ask("GET", path, headers={"Range": f"bytes={(2 << 30) - 2}-{2 << 30}"})
        self.assertEqual(answer.body, b"\0\0e")
        # All of it, without a copy in the service's memory.
        connection = self.s.connect(timeout=120)
        connection.request("GET", path, headers={"Authorization": "Bearer " + self.s.token})
        response = connection.getresponse()
        self.assertEqual(int(response.headers["Content-Length"]), size)
        total, last, buffer = 0, b"", bytearray(4 << 20)
        while got := response.readinto(buffer):
            total += got
            last = (last + bytes(buffer[max(0, got - 3):got]))[-3:]
        connection.close()
        self.assertEqual((total, last), (size, b"end"))
        with open(f"/proc/{self.s.pid}/status") as file:
            resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
        self.assertLess(resident, 200_000)

    def test_nothing_outside_is_read(self):
        secret = self.s.write("secret.txt", "do not tell")
        submitted = self.s.submit(job(shell("a", f"ln -s {secret} link; ln -s / slash; ln -s ../../../../../.. up; mkfifo pipe; ln -s ../stdout.txt inside; echo hello")))
        self.s.wait_for(submitted)
        paths = ["../stdout.txt", "wd/../../../x", "../../../../../token", "/etc/passwd", secret, "wd/link", "wd/slash/etc/passwd",
                 "wd/up/token", "wd/slash", "wd/pipe", "..", "wd/../..", "%2e%2e/token", "outputs/../../../../../../../token"]
        for path in paths:
            for kind in ("files/content", "files"):
                with self.subTest(path=path, kind=kind):
                    quoted = path if path.startswith("%") else path.replace("/", "%2F")
                    answer = self.s.ask("GET", f"/v1/jobs/{submitted}/tasks/a/{kind}?path={quoted}", timeout=20)
                    self.assertIn(answer.status, (400, 403, 404), answer)
                    self.assertNotIn(b"do not tell", answer.body)
                    self.assertNotIn(b"root:", answer.body)
            self.s.refused("files", "get", f"{submitted}/a", path, timeout=20)
        kinds = {item["path"]: item["kind"] for item in self.s.get(f"/v1/jobs/{submitted}/tasks/a/files?path=wd")["items"]}
        self.assertEqual(kinds.get("wd/link"), "link")

    def test_files_of_what_has_not_started(self):
        wait, release = blocker(self.s.base, "go-files")
        first = self.s.submit(job(shell("a", wait)))
        second = self.s.submit(job(shell("b", "true")))
        self.s.refused("files", "list", f"{second}/b", says="not started")
        release()
        self.s.wait_for(second)


class CheckpointFolder(SharedServiceCase):
    SAVES = 'mkdir -p "$SLIPWAY_CHECKPOINT_DIR/sub"; echo 7 > "$SLIPWAY_CHECKPOINT_DIR/step"; echo w > "$SLIPWAY_CHECKPOINT_DIR/sub/w"'

    def test_checkpoints_are_listed_and_read(self):
        one = self.s.submit(job(shell("t", self.SAVES)))
        many = self.s.submit(job(shell("t", self.SAVES, count=1)))
        for submitted, task in ((one, "t"), (many, "t[0]")):
            self.s.wait_for(submitted, "succeeded")
            name = f"{submitted}/{task}"
            self.assertRegex(self.s.ok("files", "list", name).out, r"(?m)^folder .* checkpoint/$")
            listed = self.s.get(f"/v1/jobs/{submitted}/tasks/{urllib.parse.quote(task, safe='')}/files")["items"]
            self.assertEqual([item["path"] for item in listed].count("checkpoint"), 1, listed)
            self.assertEqual(self.s.ok("files", "list", name, "checkpoint", "-o", "quiet").out.split(), ["checkpoint/step", "checkpoint/sub"])
            self.assertEqual(self.s.ok("files", "list", name, "checkpoint/sub", "-o", "quiet").out.split(), ["checkpoint/sub/w"])
            self.assertEqual(self.s.ok("files", "get", name, "checkpoint/step").out, "7\n")
            self.s.refused("files", "get", name, "checkpoint/../../../../../token", says="leads out")

    def test_without_checkpoints_there_is_no_such_folder(self):
        submitted = self.s.submit(job(shell("t", "echo x")))
        self.s.wait_for(submitted, "succeeded")
        self.assertNotIn("checkpoint", self.s.ok("files", "list", submitted + "/t").out)


if __name__ == "__main__":
    unittest.main()
