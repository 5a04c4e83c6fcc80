"""An agent as far as its connection goes: it dials, sends what it is given and records the answers."""

import base64
import json
import os
import socket
import struct


class Refused(Exception):
    """The service did not let the connection in; `status` says how."""

    def __init__(self, status):
        super().__init__(f"HTTP {status}")
        self.status = status


class AgentSocket:
    def __init__(self, port, token, key=None, wrap=lambda raw: raw):
        self.socket = wrap(socket.create_connection(("127.0.0.1", port), timeout=20))
        self.rest = b""
        head = (f"GET /v1/nodes/connect HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n"
                f"Authorization: Bearer {token}\r\n")
        if key:
            head += f"Slipway-Node-Key: {key}\r\n"
        self.socket.sendall(head.encode() + b"\r\n")
        while b"\r\n\r\n" not in self.rest:
            more = self.socket.recv(4096)
            if not more:
                raise Refused(0)
            self.rest += more
        answer, self.rest = self.rest.split(b"\r\n\r\n", 1)
        status = int(answer.split()[1])
        if status != 101:
            self.close()
            raise Refused(status)

    def close(self):
        self.socket.close()

    def send(self, message):
        body = json.dumps(message).encode()
        size = len(body)
        head = bytes([0x81, 0x80 | size]) if size < 126 else bytes([0x81, 0xFE]) + struct.pack(">H", size)
        mask = os.urandom(4)
        self.socket.sendall(head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(body)))

    def _bytes(self, count):
        while len(self.rest) < count:
            more = self.socket.recv(65536)
            if not more:
                raise EOFError
            self.rest += more
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def next(self):
        """The next message; None at the end of the connection. Fails when neither comes in 20 s."""
        while True:
            try:
                first, size = self._bytes(2)
                if size == 126:
                    size = struct.unpack(">H", self._bytes(2))[0]
                elif size == 127:
                    size = struct.unpack(">Q", self._bytes(8))[0]
                body = self._bytes(size)
            except (EOFError, ConnectionResetError):
                return None
            if first & 15 == 8:
                return None
            if first & 15 == 1:
                return json.loads(body)

    def until(self, kind):
        while True:
            message = self.next()
            if message is None or message["type"] == kind:
                return message

    def hello(self, name, pool="far", instance="0011223344556677", **more):
        self.send({"type": "hello", "name": name, "pool": pool, "instance": instance, "address": "127.0.0.1", "host": "h",
                   "version": "test", "local": False, "shares_storage": False, "total": {"cores": 1000, "memory": 1 << 30, "gpus": 0},
                   "notes": [], "engines": [], "boot": "b", "cpu_limit": "", "cpu_limit_reason": "", "waiting": [], "running": [],
                   "ended": [], "prepared": [], **more})
        return self
