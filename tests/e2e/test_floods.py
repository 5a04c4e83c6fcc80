"""Clients that send too much, too slowly, or too often: the memory of the service stays within bounds, and others are
answered meanwhile."""

import contextlib
import os
import socket
import struct
import threading
import time
import unittest

from harness import SlipwayCase, wait_until

MEMORY_MAX = 100 << 20  # above idle


class Floods(SlipwayCase):
    def setUp(self):
        self.s = self.service()
        self.s.ask("POST", "/v1/pools", body={"name": "lab", "nodes": 0, "provisioner": "none"})
        self.member = self.s.ask("POST", "/v1/tokens", body={"name": "ana", "role": "member"}).json["token"]
        self.node = self.s.ask("POST", "/v1/tokens", body={"name": "n", "role": "node"}).json["token"]
        self.other = self.s.ask("POST", "/v1/tokens", body={"name": "ben", "role": "member"}).json["token"]
        for _ in range(20):
            self.s.get("/v1/jobs")
        self.pid = self.s.pid
        self.idle = self.resident()
        self.peak = self.idle
        self.times = []

    def resident(self):
        with open(f"/proc/{self.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def p99(self, times):
        return sorted(times)[int(len(times) * 0.99)]

    def assert_others_wait_as_before(self, flood, tries=4):
        """That the p99 of another user, measured within this run, is under 3 x quiet (docs/security.md): once in a few
        tries, for other programs of the machine take their turns as well. Below 20 ms it is quiet enough."""
        seen = []
        for _ in range(tries):
            quiet = []
            for _ in range(200):
                began = time.monotonic()
                self.s.ask("GET", "/v1/jobs", token=self.other)
                quiet.append(time.monotonic() - began)
            self.times = []
            flood()
            while_flooded = [took for took, _ in self.times]
            seen.append((self.p99(quiet), self.p99(while_flooded), len(while_flooded)))
            if seen[-1][1] < max(3 * seen[-1][0], 0.02):
                return
        self.fail(f"p99 of another user, quiet and flooded, requests: {seen}")

    @contextlib.contextmanager
    def watched(self):
        """Asks as another user all the while, and looks at the memory."""
        stop = threading.Event()

        def ask():
            while not stop.is_set():
                began = time.monotonic()
                answer = self.s.ask("GET", "/v1/jobs", token=self.other)
                self.times.append((time.monotonic() - began, answer.status))
                self.peak = max(self.peak, self.resident())

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            yield
        finally:
            stop.set()
            asking.join()
        self.assertEqual({status for _, status in self.times}, {200}, "another user is not answered")
        self.assertTrue(self.times)
        self.assertLess(self.peak - self.idle, MEMORY_MAX, f"idle {self.idle >> 20} MiB, peak {self.peak >> 20} MiB")

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.s.port), timeout=30)
        self.addCleanup(connection.close)
        return connection

    def head(self, method, path, token, *more):
        return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}", *more, "", ""]).encode()

    def test_slowloris(self):
        with self.watched():
            slow = [self.connect() for _ in range(500)]
            for connection in slow:
                connection.sendall(b"GET /v1/jobs HTTP/1.1\r\nX-Slow: ")
            for _ in range(20):
                for connection in slow:
                    with contextlib.suppress(OSError):
                        connection.sendall(b"x")
            # Each gets 408 after 15 s, however many bytes have come.
            slow[0].settimeout(60)
            self.assertTrue(slow[0].recv(100).startswith(b"HTTP/1.1 408 "))

    def test_five_hundred_connections_at_once(self):
        many = []

        def flood():
            with self.watched():
                many.extend(self.connect() for _ in range(500 - len(many)))
                for _ in range(4):
                    for connection in many:
                        connection.sendall(self.head("GET", "/healthz", self.member))
                    for connection in many:
                        self.assertTrue(connection.recv(4096).startswith(b"HTTP/1.1 200"))

        self.assert_others_wait_as_before(flood)

    def flood(self, path, token, chunked, size=100 << 20):
        """The status that a body of this size is answered with, or b"" where the connection was just cut."""
        connection = self.connect()
        piece = b"[" + b"0," * ((1 << 15) - 1) + b"0"
        try:
            if chunked:
                connection.sendall(self.head("POST", path, token, "Transfer-Encoding: chunked"))
                for _ in range(size // len(piece)):
                    connection.sendall(b"%x\r\n" % len(piece) + piece + b"\r\n")
            else:
                connection.sendall(self.head("POST", path, token, f"Content-Length: {size}"))
                for _ in range(size // len(piece)):
                    connection.sendall(piece)
        except OSError:
            pass
        with contextlib.suppress(OSError):
            return connection.recv(12)
        return b""

    def test_bodies_of_100_mb(self):
        statuses = []
        with self.watched():
            threads = [threading.Thread(target=lambda c=c, p=p, t=t: statuses.append(self.flood(p, t, c)))
                       for c in (False, True) for p in ("/v1/jobs", "/v1/blobs/missing", "/healthz", "/v1/pools")
                       for t in (self.member, "nobody")]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(len(statuses), 16)
        for status in statuses:
            self.assertIn(status, (b"", b"HTTP/1.1 401", b"HTTP/1.1 405", b"HTTP/1.1 413", b"HTTP/1.1 503"))
        self.assertIn(b"HTTP/1.1 413", statuses)

    def test_many_bodies_that_are_allowed(self):
        body = b'{"name":"j","tasks":[' + b",".join([b"0"] * 100_000) + b"]}"
        body += b" " * ((12 << 20) - len(body))
        with self.watched():
            def send():
                connection = self.connect()
                with contextlib.suppress(OSError):
                    connection.sendall(self.head("POST", "/v1/jobs", self.member, f"Content-Length: {len(body)}"))
                    connection.sendall(body)
                    connection.recv(12)
            threads = [threading.Thread(target=send) for _ in range(12)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def test_websocket_pings(self):
        connections = []
        for _ in range(8):
            connection = self.connect()
            connection.sendall(self.head("GET", "/v1/nodes/connect", self.node, "Connection: Upgrade", "Upgrade: websocket",
                                         "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="))
            self.assertIn(b" 101 ", connection.recv(300))
            connections.append(connection)
        ping = (b"\x89" + bytes([0x80 | 125]) + b"\0\0\0\0" + b"p" * 125) * 500
        for connection in connections:
            connection.setblocking(False)

        def flood():
            with self.watched():
                until = time.monotonic() + 3
                while time.monotonic() < until:  # and nobody reads the pongs
                    sent = 0
                    for connection in connections:
                        with contextlib.suppress(BlockingIOError, ConnectionError):
                            sent += connection.send(ping)
                    if not sent:
                        time.sleep(0.001)

        self.assert_others_wait_as_before(flood)

    def test_messages_that_never_end(self):
        connection = self.connect()
        connection.sendall(self.head("GET", "/v1/nodes/connect", self.node, "Connection: Upgrade", "Upgrade: websocket",
                                     "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="))
        self.assertIn(b" 101 ", connection.recv(300))
        size = 200 << 20
        with self.watched():
            try:
                connection.sendall(b"\x81" + bytes([0x80 | 127]) + struct.pack(">Q", size) + b"\0\0\0\0")
                for _ in range(size >> 16):
                    connection.sendall(b"x" * (1 << 16))
                ended = connection.recv(1) == b""
            except OSError:
                ended = True
            self.assertTrue(ended or wait_until(lambda: connection.recv(1 << 16) == b""))


if __name__ == "__main__":
    unittest.main()
