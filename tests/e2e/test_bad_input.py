"""Every bad input of the issue: a clear error, nothing lost."""

import contextlib
import os
import re
import resource
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import unittest

from harness import Service, SharedServiceCase, SlipwayCase, job, shell, wait_until

TASK = "tasks:\n  - name: a\n    command: 'true'\n"


class JobFiles(SharedServiceCase):
    def jobs(self):  # their names only: what an earlier test submitted may still run and change
        return [one["id"] for one in self.s.get("/v1/jobs?limit=1000")["items"]]

    def refuse(self, text, *says):
        before = self.jobs()
        file = self.s.write("bad.yaml", text)
        self.s.refused("job", "submit", file, says=says)
        answer = self.s.ask("POST", "/v1/jobs", body=text, headers={"Content-Type": "application/yaml"})
        self.assertIn(answer.status, (400, 404), answer)
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
        self.assertEqual(self.jobs(), before)

    def test_unknown_key_names_its_line_and_the_nearest(self):
        self.refuse("name: x\npriorty: 3\n" + TASK, "priorty", "2", "priority")
        self.refuse(TASK + "    retires: 3\n", "retires", "4", "retries")
        self.refuse("tasks:\n  - name: a\n    command: 'true'\n    resources: {core: 1}\n", "core", "4", "cores")

    def test_wrong_types(self):
        self.refuse("priority: high\n" + TASK, "priority", "high")
        self.refuse(TASK + "    count: [1]\n", "count")
        self.refuse(TASK + "    depends_on: {a: b}\n", "depends_on")
        self.refuse("tasks: 3\n", "tasks")
        self.refuse("- 1\n")
        self.refuse("environment: [a]\n" + TASK, "environment")
        self.refuse(TASK + "    max_wall_time: soon\n", "max_wall_time", "soon")
        self.refuse(TASK + "    resources: {memory: much}\n", "memory", "much")
        self.refuse("a: [unclosed\n")

    def test_names_of_environment_variables(self):
        for name in ('"A\\nB"', '"=Z"', '""', '"A\\0B"', '"A=B"'):
            for text in (f"environment: {{{name}: x}}\n" + TASK, TASK + f"    environment: {{{name}: x}}\n"):
                self.refuse(text, "cannot be the name of an environment variable")
        self.refuse(TASK + '    environment: {A: "x\\0y"}\n', "environment.A")
        for name in ("A\nB", "=Z", "", "A\0B"):
            for body in (job(shell("a", "true"), environment={name: "x"}), job(shell("a", "true", environment={name: "x"}))):
                self.assertEqual(self.s.ask("POST", "/v1/jobs", body=body).status, 400, name)

    def test_limit_of_processes(self):
        self.refuse("tasks:\n  - name: a\n    command: 'true'\n    resources: {pids: 0}\n", "pids")
        self.refuse(TASK + "    pids: 3\n", "pids", "resources")
        self.refuse("name: a\nname: b\n" + TASK, "the key 'name' stands twice", "2")
        self.refuse("")

    def test_empty_commands(self):
        for command in ("''", "[]", "['']"):
            self.refuse(f"tasks:\n  - name: a\n    command: {command}\n", "command")
        self.refuse("tasks:\n  - name: a\n", "command")
        self.refuse("tasks: []\n", "tasks")
        self.s.refused("run", "--", code=2)
        self.s.refused("run", code=2)

    def test_dependencies(self):
        self.refuse(TASK + "    depends_on: [b]\n", "a depends on b, which does not exist")
        cycle = "".join(f"  - name: {n}\n    command: x\n    depends_on: [{d}]\n" for n, d in (("a", "b"), ("b", "c"), ("c", "a")))
        file = self.s.write("bad.yaml", "tasks:\n" + cycle)
        ran = self.s.refused("job", "submit", file, says="circle")
        self.assertTrue(re.search(r"(a.+b.+c.+a|a.+c.+b.+a|b.+c.+a.+b|c.+a.+b.+c|b.+a.+c.+b|c.+b.+a.+c)", ran.err), ran.err)
        self.refuse(TASK + "    depends_on: [a]\n", "circle")
        self.refuse(TASK + "  - name: a\n    command: x\n", "two tasks are called a")

    def test_more_than_the_pool_can_have(self):
        self.refuse(TASK + "    nodes: 3\n", "3 nodes", "lab", "resize")
        self.refuse(TASK + "    resources: {cores: 64}\n", "64 cores", "lab")
        self.refuse(TASK + "    resources: {memory: 100TiB}\n", "lab")
        self.refuse(TASK + "    resources: {gpus: 1}\n", "lab")
        self.s.refused("run", "--nodes", 3, "--", "true", says="3 nodes")

    def test_a_pool_that_may_grow_takes_it(self):
        self.s.ok("pool", "create", "growing", "--provisioner", "none")
        submitted = self.s.submit(job(shell("a", "true", nodes=3), pool="growing"))
        self.assertEqual(self.s.job(submitted)["state"], "queued")
        self.s.ok("job", "cancel", submitted)
        self.s.ok("pool", "delete", "growing", "--yes")

    def test_numbers_out_of_range(self):
        self.refuse(TASK + "    retries: -1\n", "retries", "-1")
        self.refuse(TASK + "    count: 0\n", "count")
        self.refuse(TASK + "    nodes: 0\n", "nodes")
        self.refuse("priority: 1001\n" + TASK, "priority")
        self.refuse(TASK + "    resources: {cores: -1}\n", "cores")
        self.refuse(TASK + "    max_wall_time: -5\n", "max_wall_time")
        self.refuse(TASK + "    retries: 99999999999999999999\n", "retries")
        self.s.refused("run", "--retries", "-1", "--", "true", code=2)

    def test_names(self):
        for name in ("x" * 129, "a/b", "..", "''", "'a b'", "job_1"):
            self.refuse(f"name: {name}\n" + TASK) if name != "''" else None
        for name in ("x" * 129, "a/b", "..", "a[0]", "é"):
            self.refuse(f"tasks:\n  - name: {name!r}\n    command: x\n", "name")
        for name in ("a/b", "x" * 129, "..", "-x y"):
            self.assertIn(self.s.run("pool", "create", "--", name).code, (1, 2), name)
        self.assertEqual(self.s.ask("POST", "/v1/pools", body={"name": "a/b", "nodes": 0}).status, 400)

    def test_unknown_names(self):
        self.refuse("pool: lba\n" + TASK, "there is no pool lba", "lab")
        for command in (["job", "show", "job_999"], ["job", "show", "nothing"], ["job", "wait", "job_999"], ["job", "cancel", "job_999"],
                        ["job", "why", "job_999"], ["logs", "job_999"], ["task", "list", "job_999"], ["files", "list", "job_999/a"],
                        ["pool", "show", "nothing"], ["pool", "resize", "nothing", "--nodes", "1"], ["pool", "delete", "nothing", "--yes"],
                        ["node", "show", "nothing"], ["node", "drain", "nothing"], ["node", "list", "--pool", "nothing"],
                        ["job", "resubmit", "job_999"], ["job", "delete", "job_999", "--yes"], ["token", "revoke", "nothing", "--yes"],
                        ["run", "--pool", "nothing", "--", "true"], ["events", "--job", "job_999"]):
            with self.subTest(command=command):
                ran = self.s.refused(*command)
                self.assertTrue("job_999" in ran.err or "nothing" in ran.err, ran)
                self.assertTrue(ran.err.startswith("error: "), ran)
        submitted = self.s.submit(job(shell("a", "true")))
        self.s.refused("task", "show", f"{submitted}/nothing", says="nothing")
        self.s.refused("logs", f"{submitted}/nothing", says="nothing")
        self.s.refused("task", "show", f"{submitted}/a[7]", says="a[7]")

    def test_deleting_what_runs(self):
        submitted = self.s.submit(job(shell("a", "sleep 1000")))
        self.s.refused("job", "delete", submitted, "--yes", says=f"slipway job cancel {submitted}")
        self.s.refused("pool", "delete", "lab", "--yes", says=submitted)
        self.s.ok("job", "cancel", submitted)
        self.s.wait_for(submitted)

    def test_invalid_utf8(self):
        for text in (b"name: \xff\xfe\n", b"tasks:\n  - name: a\n    command: 'echo \xc3\x28'\n"):
            file = self.s.write("bad.yaml", text + (TASK.encode() if b"tasks" not in text else b""))
            self.s.refused("job", "submit", file, says="UTF-8")
            answer = self.s.ask("POST", "/v1/jobs", body=text, headers={"Content-Type": "application/yaml"})
            self.assertEqual(answer.status, 400, answer)
        answer = self.s.ask("POST", "/v1/jobs", body=b'{"name":"\xff","tasks":[]}', headers={"Content-Type": "application/json"})
        self.assertEqual((answer.status, answer.json["code"]), (400, "invalid"))
        self.assertEqual(self.s.ask("GET", "/v1/jobs/%ff%fe").status, 404)
        self.assertEqual(self.s.ask("GET", "/v1/jobs?name=%ff").status // 100, 2)
        self.assertIn(self.s.ask("GET", "/v1/jobs/%00").status, (400, 404))

    def test_a_body_over_the_limit(self):
        for size, status in ((16 << 20, 400), ((16 << 20) + 1, 413)):
            try:
                answer = self.s.ask("POST", "/v1/jobs", body=b" " * size, headers={"Content-Type": "application/json"})
            except (BrokenPipeError, ConnectionResetError):
                continue  # refused before all of it was sent
            self.assertEqual(answer.status, status)
        file = self.s.write("large.yaml", "# " + "x" * (17 << 20) + "\n" + TASK)
        self.s.refused("job", "submit", file, says="16")
        # Declared and never sent: answered from the head alone.
        with socket.create_connection(("127.0.0.1", self.s.port), timeout=60) as one:
            one.sendall(f"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.s.token}\r\nContent-Length: 99999999999\r\n\r\n".encode())
            self.assertIn(b" 413 ", one.recv(4096).split(b"\r\n")[0])

    def test_broken_json(self):
        for body in ("{", "[]", "null", '{"tasks":' * 2, "[" * 100_000, '"x"', ""):
            answer = self.s.ask("POST", "/v1/jobs", body=body, headers={"Content-Type": "application/json"})
            self.assertEqual(answer.status, 400, (body[:50], answer))
        self.assertEqual(self.s.ask("POST", "/v1/pools", body="{").status, 400)
        self.assertEqual(self.s.ask("POST", "/v1/pools", body={"name": "x", "nodes": -1}).status, 400)
        for path in ("/v1/jobs", "/v1/pools", "/v1/tokens"):
            answer = self.s.ask("POST", path, body='{"name":"a","name":"b"}', headers={"Content-Type": "application/json"})
            self.assertEqual((answer.status, answer.json["detail"]), (400, "the request: the key 'name' stands twice"))
        self.assertEqual(self.s.ask("POST", "/v1/tokens", body={"name": "x", "role": "king"}).status, 400)

    def test_wrong_usage(self):
        for command in ([], ["nothing"], ["job"], ["job", "nothing"], ["job", "submit"], ["pool", "create"], ["job", "list", "--nothing"],
                        ["job", "list", "-o", "xml"], ["pool", "resize", "lab"], ["logs"], ["job", "wait", "job_1", "--timeout", "soon"],
                        ["run", "-e", "novalue", "--", "true"], ["node", "run", "extra"], ["token", "create", "x", "--role", "king"]):
            with self.subTest(command=command):
                ran = self.s.run(*command)
                self.assertEqual(ran.code, 2, ran)
                self.assertTrue(ran.err.strip(), ran)
        self.s.refused("job", "submit", "/no/such/file.yaml", says="/no/such/file.yaml")


class HostileClients(SlipwayCase):
    def test_two_hundred_mebibytes_of_garbage_headers(self):
        s = self.service()
        for piece in ((b"X-Garbage: " + b"y" * 4083 + b"\r\n") * 16, os.urandom(65536)):
            with socket.create_connection(("127.0.0.1", s.port), timeout=60) as one:
                sent, got = 0, b""
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
                    while sent < 200 << 20:
                        one.sendall(piece)
                        sent += len(piece)
                with contextlib.suppress(ConnectionResetError):
                    while more := one.recv(65536):
                        got += more
                if got:  # where it was cut off while we wrote, the answer may be lost
                    self.assertRegex(got.split(b"\r\n")[0], rb"^HTTP/1.1 (431|400) ")
        self.assertEqual(s.ask("GET", "/healthz").status, 200)
        with open(f"/proc/{s.pid}/status") as file:
            resident = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
        self.assertLess(resident, 100_000)

    def test_a_slow_client_is_closed(self):
        s = self.service()
        with socket.create_connection(("127.0.0.1", s.port), timeout=1) as one:
            closed, got = False, b""
            request = b"GET /healthz HTTP/1.1\r\nHost: " + b"x" * 200
            for byte in request[:90]:
                with contextlib.suppress(TimeoutError):  # one byte a second
                    try:
                        one.sendall(bytes([byte]))
                        more = one.recv(4096)
                        got += more
                        if not more:
                            closed = True
                            break
                    except (BrokenPipeError, ConnectionResetError):
                        closed = True
                        break
            self.assertTrue(closed, "a byte a second kept it waiting")
            self.assertIn(b" 408 ", got)
        self.assertEqual(s.ask("GET", "/healthz").status, 200)

    def test_ten_thousand_idle_connections(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 10_000
        if hard < wanted + 500:
            self.skipTest(f"the hard limit of open files is {hard}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted + 500, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        s = self.service()
        s.pool("lab", 1)
        idle = []
        try:
            for _ in range(wanted):
                one = socket.socket()
                one.settimeout(30)
                one.connect(("127.0.0.1", s.port))
                idle.append(one)
            self.assertEqual(s.ask("GET", "/healthz").status, 200)
            submitted = s.submit(job(shell("a", "echo still here")))
            self.assertEqual(s.wait_for(submitted)["state"], "succeeded")
            self.assertEqual(s.log(submitted, "a"), "still here\n")
        finally:
            for one in idle:
                one.close()


class FullDisk(SlipwayCase):
    def test_refuses_new_work_serves_reads_and_recovers(self):
        folder = "/tmp/slipway-e2e-full-%d" % os.getpid()
        os.makedirs(folder)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", folder], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"mount is not permitted here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], capture_output=True)
        s = self.service(data=folder + "/data")
        s.also.append(folder)
        s.pool("lab", 1)
        kept = s.submit(job(shell("a", "echo kept"), name="kept"))
        s.wait_for(kept)
        with contextlib.suppress(OSError), open(folder + "/filler", "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        body = job(shell("a", "true", environment={"X": "y" * 20_000}), name="refused")
        answer = None
        for _ in range(50):  # the write-ahead log may have free space for a few
            answer = s.ask("POST", "/v1/jobs", body=body)
            if answer.status == 503:
                break
        self.assertEqual(answer.status, 503, answer)
        self.assertIn("disk", answer.json["detail"] + answer.json.get("hint", ""))
        self.assertEqual(s.job(kept)["state"], "succeeded")
        self.assertEqual(s.log(kept, "a"), "kept\n")
        self.assertEqual(len(s.get("/v1/jobs?name=kept")["items"]), 1)
        self.assertTrue(s.get("/v1/service")["degraded"])
        ran = s.refused("job", "submit", "-", input=TASK)
        self.assertIn("disk", ran.err)
        before = {one["id"] for one in s.get("/v1/jobs?limit=1000")["items"]}
        os.unlink(folder + "/filler")
        again = wait_until(lambda: (a := s.ask("POST", "/v1/jobs", body=job(shell("a", "echo back")))).status == 201 and a, what="it recovers")
        self.assertNotIn(again.json["id"], before)
        self.assertEqual(s.wait_for(again.json["id"])["state"], "succeeded")
        wait_until(lambda: s.get("/v1/service")["degraded"] is None, what="no longer degraded")
        s.kill_service()
        s.up()
        self.assertEqual(s.job(kept)["state"], "succeeded")
        self.assertEqual(s.job(again.json["id"])["state"], "succeeded")
        s.close()
        s.close = lambda: None

    def test_comes_up_on_a_full_disk_to_serve_reads(self):
        folder = tempfile.mkdtemp(prefix="slipway-e2e-full-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", folder], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"mount is not permitted here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], capture_output=True)
        s = self.service(data=folder + "/data")
        s.also.append(folder)
        s.pool("lab", 1)
        kept = s.submit(job(shell("a", "echo kept"), name="kept"))
        s.wait_for(kept)
        for end in (s.kill_service, s.down):
            with self.subTest(end=end.__name__):
                end()
                with contextlib.suppress(OSError), open(folder + "/filler", "wb", buffering=0) as file:
                    while True:
                        file.write(b"x" * 4096)
                s.up()
                self.assertIn("space", s.get("/v1/service")["degraded"])
                self.assertIn("space", s.ok("status").out)
                self.assertEqual(s.job(kept)["state"], "succeeded")
                self.assertEqual(s.log(kept, "a"), "kept\n")
                self.assertEqual(s.ok("job", "list", "-o", "quiet").out.split()[-1], kept)
                answer = s.ask("POST", "/v1/jobs", body=job(shell("a", "true")))
                self.assertEqual(answer.status, 503, answer)
                self.assertIn("space", answer.json["detail"] + answer.json["hint"])
                os.unlink(folder + "/filler")
                wait_until(lambda: s.get("/v1/service")["degraded"] is None, what="no longer degraded")
                again = s.submit(job(shell("a", "echo back")))
                self.assertEqual(s.wait_for(again)["state"], "succeeded")
        s.close()
        s.close = lambda: None


class ServiceStart(SlipwayCase):
    def test_a_second_up_names_the_pid(self):
        s = self.service()
        ran = s.refused("up", "--listen", "127.0.0.1:0", "--detach", says=[str(s.pid), s.data])
        ran = s.refused("up", "--listen", "127.0.0.1:0", says=[str(s.pid)])
        s.ok("status")

    def test_a_token_that_cannot_be_read(self):
        s = self.service()
        os.rename(s.data + "/token", s.data + "/kept")
        s.refused("pool", "list", says="there is no file")
        os.mkdir(s.data + "/token")
        ran = s.refused("pool", "list", says="Is a directory")
        self.assertNotIn("there is no file", ran.err)
        os.rmdir(s.data + "/token")
        os.rename(s.data + "/kept", s.data + "/token")

    def test_a_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            s = Service(start=False)
            self.addCleanup(s.close)
            s.refused("up", "--listen", f"127.0.0.1:{port}", "--detach", says=[f"127.0.0.1:{port}"])
            self.assertEqual(s.survivors(), {})

    def test_an_address_that_cannot_be_listened_on(self):
        s = Service(start=False)
        self.addCleanup(s.close)
        for bad in ("nonsense", "127.0.0.1:99999", "127.0.0.1:x", ":1"):
            self.assertIn(s.run("up", "--listen", bad, "--detach").code, (1, 2), bad)

    def test_a_corrupt_database(self):
        s = self.service()
        s.ok("pool", "create", "lab", "--provisioner", "none")
        s.down()
        database = s.data + "/slipway.db"
        for name, damage in (("header", lambda f: f.write(b"garbage" * 100)), ("cut", lambda f: f.truncate(5000)),
                             ("page", lambda f: (f.seek(4096), f.write(os.urandom(8192))))):
            with self.subTest(damage=name):
                shutil.copy(database, database + ".good")
                with open(database, "r+b") as file:
                    damage(file)
                with open(database, "rb") as file:
                    damaged = file.read()
                ran = s.run("up", "--listen", "127.0.0.1:0", "--detach")
                if ran.code == 0:
                    s.down()
                with open(database, "rb") as file:
                    now = file.read()
                shutil.copy(database + ".good", database)
                self.assertEqual(ran.code, 1, ran)
                self.assertIn("slipway.db", ran.err)
                self.assertEqual(now, damaged, "it touched the damaged file")
        s.up()
        self.assertEqual(s.ok("pool", "list", "-o", "quiet").out, "lab\n")

    def test_a_newer_database(self):
        s = self.service()
        s.down()
        database = s.data + "/slipway.db"
        connection = sqlite3.connect(database)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        self.assertGreater(version, 0)
        connection.execute(f"PRAGMA user_version = {version + 1000}")
        connection.commit()
        connection.close()
        with open(database, "rb") as file:
            before = file.read()
        ran = s.refused("up", "--listen", "127.0.0.1:0", "--detach", says=["slipway.db", "newer"])
        with open(database, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_no_service(self):
        s = Service(start=False)
        self.addCleanup(s.close)
        for command in (["status"], ["job", "list"], ["run", "--", "true"], ["down"], ["logs", "job_1"]):
            ran = s.run(*command)
            self.assertEqual(ran.code, 3, ran)
            self.assertIn("slipway up", ran.err)
        self.assertEqual(s.run("status", "--service", "http://127.0.0.1:1").code, 3)


if __name__ == "__main__":
    unittest.main()
