"""A service in a folder of its own on a free port, ended with everything it started."""
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

from machine import processes_of


class Failed(Exception):
    pass


class Folders:
    """Temporary folders, deleted all together at the very end: deleting slows the disk for a minute."""

    def __init__(self, parent):
        self.root = tempfile.mkdtemp(prefix="slipway-bench-", dir=parent)
        self.count = 0

    def fresh(self):
        self.count += 1
        path = os.path.join(self.root, str(self.count))
        os.mkdir(path)
        return path

    def delete(self):
        shutil.rmtree(self.root, ignore_errors=True)


class Connection:
    """One keep-alive connection. A request is one send, so that the measured time is the service's."""

    def __init__(self, port, token, tls=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket)
        self.token = token
        self.buffer = b""

    def bytes_of(self, method, path, body=None):
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        content = (body or "").encode() if not isinstance(body, bytes) else body
        head = (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n")
        return head.encode() + content

    def exchange(self, request):
        self.socket.sendall(request)
        return self.answer()

    def answer(self):
        while b"\r\n\r\n" not in self.buffer:
            self._receive()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        status = int(lines[0].split()[1])
        fields = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
        length = int(fields.get("content-length", 0))
        while len(self.buffer) < length:
            self._receive()
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return status, body

    def _receive(self):
        piece = self.socket.recv(1 << 20)
        if not piece:
            raise Failed("the service closed the connection")
        self.buffer += piece

    def call(self, method, path, body=None):
        status, answer = self.exchange(self.bytes_of(method, path, body))
        if status >= 300:
            raise Failed(f"{method} {path}: {status} {answer.decode(errors='replace')[:300]}")
        return json.loads(answer) if answer[:1] in (b"{", b"[") else answer


class Service:
    """with Service(binary, folder) as service: ..."""

    def __init__(self, binary, folder, tls=False):
        self.binary = binary
        self.data = os.path.join(folder, "data")
        self.with_tls = tls

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        self.down()

    def up(self):
        """Seconds from calling `slipway up --detach` until it returned, which it does when it serves."""
        begin = time.monotonic()
        self.command("up", "--listen", "127.0.0.1:0", "--detach", *(["--tls"] if self.with_tls else []))
        took = time.monotonic() - begin
        with open(os.path.join(self.data, "service.json")) as file:
            about = json.load(file)
        with open(os.path.join(self.data, "token")) as file:
            self.token = file.read().strip()
        self.pid = about["pid"]
        self.url = about["url"]
        self.port = int(self.url.split("#")[0].rsplit(":", 1)[1])
        self.tls = None
        if self.with_tls:  # as clients do that pin the authority
            self.tls = ssl.create_default_context(cafile=os.path.join(self.data, "tls", "ca.crt"))
            self.tls.check_hostname = False
        self.api = Connection(self.port, self.token, self.tls)
        return took

    def down(self):
        try:
            self.command("down")
        except (Failed, subprocess.TimeoutExpired):
            pass
        for pid in sum(processes_of(self.data).values(), []):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def command(self, *words):
        done = subprocess.run([self.binary, *words, "--data", self.data], capture_output=True, text=True,
                              timeout=120, check=False)
        if done.returncode != 0:
            raise Failed(f"slipway {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def pool(self, name, nodes, cores):
        """A pool whose nodes are all there."""
        self.command("pool", "create", name, "--nodes", str(nodes), "--cores-per-node", str(cores), "--overcommit")
        for _ in range(1000):
            page = self.api.call("GET", f"/v1/nodes?pool={name}")["items"]
            if len(page) == nodes and all(node["state"] == "idle" for node in page):
                return [node["name"] for node in page]
            time.sleep(0.01)
        raise Failed(f"the nodes of pool {name} did not come up")

    def drained_pool(self, name):
        """A pool in which nothing starts."""
        for node in self.pool(name, 1, 1):
            self.api.call("POST", f"/v1/nodes/{node}/drain")

    def submit(self, job):
        return self.api.call("POST", "/v1/jobs", job)["id"]

    def wait(self, job):
        while True:
            answer = self.api.call("GET", f"/v1/jobs/{job}/wait?timeout=60")
            if answer["state"] in ("succeeded", "failed", "cancelled"):
                return answer

    def run_array(self, pool, count, command):
        """Seconds until all of an array have succeeded and the service reports it."""
        begin = time.monotonic()
        job = self.submit({"name": "bench", "pool": pool, "tasks": [{"name": "t", "command": command, "count": count}]})
        ended = self.wait(job)
        took = time.monotonic() - begin
        if ended["state"] != "succeeded":
            raise Failed(f"{job} {ended['state']}: {ended.get('reason')}")
        return took, job
