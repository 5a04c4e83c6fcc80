"""The model server as a user runs it: trained, served, asked, swapped under load. Every answer is in a ledger."""

import array
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

from harness import SLIPWAY, read_line, wait_until

BINARIES = os.path.dirname(SLIPWAY)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def line_model(factor, shift):
    """The bytes of a model.slipway that computes factor * x + shift."""
    values = struct.pack("<ff", factor, shift)
    text = "model {name: line, input: [1, 1, 1], loss: squared_error, layers: [{dense: 1}]}\ndataset none\nclasses 1\nstep 1\nseed 1\nworkers 1\nbatch 1\n"
    offset = 320
    text += f"section values {offset:020} {2:020} {crc32c(values):08x}\nsection state {offset + 64:020} {0:020} {0:08x}\n"
    head = b"SLPWTRN1" + struct.pack("<II", len(text), crc32c(text.encode())) + text.encode()
    assert len(head) <= offset, len(head)
    return head.ljust(offset, b"\0") + values.ljust(64, b"\0")


def field(number, content):
    """A field of a protobuf message: bytes, or a number."""
    def varint(value):
        out = bytearray()
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes(out) + bytes([value])
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


class GrpcClient:
    """As much of HTTP/2 as one call at a time needs: headers are sent as literals, and those that come are not read."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rb")
        self.stream = 1
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(4, 0, 0, struct.pack(">HI", 4, 1 << 20))
                            + self.frame(8, 0, 0, struct.pack(">I", 1 << 24)))  # answers may be long

    @staticmethod
    def frame(kind, flags, stream, payload):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    def call(self, method, message, flag=0):
        """The answer's message; None where there was an error instead."""
        def literal(name, value):
            return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
        headers = literal(b":method", b"POST") + literal(b":scheme", b"http") + literal(b":path", method.encode()) + literal(b":authority", b"x")
        headers += literal(b"te", b"trailers") + literal(b"content-type", b"application/grpc")
        data = bytes([flag]) + struct.pack(">I", len(message)) + message
        sent = self.frame(1, 4, self.stream, headers)
        for at in range(0, len(data), 16384):
            sent += self.frame(0, 1 if at + 16384 >= len(data) else 0, self.stream, data[at:at + 16384])
        self.socket.sendall(sent)
        answer = b""
        while True:
            head = self.file.read(9)
            size, kind, flags, stream = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
            payload = self.file.read(size)
            if kind == 4 and not flags & 1:
                self.socket.sendall(self.frame(4, 1, 0, b""))
            assert kind != 7, payload  # GOAWAY
            if stream == self.stream and kind == 0:
                answer += payload
            if stream == self.stream and flags & 1 and kind in (0, 1, 3):
                self.stream += 2
                return answer[5:] if answer else None

    def close(self):
        self.file.close()
        self.socket.close()


class Server:
    """A model server on a free port."""

    def __init__(self, *arguments, program="slipway-serve"):
        self.log = tempfile.TemporaryFile()
        self.child = subprocess.Popen([os.path.join(BINARIES, program), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=self.log, bufsize=0)
        line = read_line(self.child).decode()
        if line.startswith("gRPC "):
            self.grpc_port = int(line.rsplit(":", 1)[1])
            line = read_line(self.child).decode()
        assert " listens on " in line, line + self.messages()
        self.port = int(line.rsplit(":", 1)[1])

    def messages(self):
        self.log.seek(0)
        return self.log.read().decode()

    def ask(self, method, path, body=None, headers=None, connection=None):
        own = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        own.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body), headers or {})
        answer = own.getresponse()
        content = answer.read()
        if connection is None:
            own.close()
        return answer.status, content

    def json(self, method, path, body=None):
        return json.loads(self.ask(method, path, body)[1])

    def close(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        self.child.wait(60)
        self.child.stdout.close()
        self.log.close()


class Serving(unittest.TestCase):
    def setUp(self):
        self.base = tempfile.mkdtemp(prefix="slipway-serve-e2e-")
        self.addCleanup(shutil.rmtree, self.base)

    def serve(self, *arguments, **options):
        server = Server(*arguments, **options)
        self.addCleanup(server.close)
        return server

    def put(self, version, content, model="m"):
        """A version appears whole, by a rename."""
        hidden = os.path.join(self.base, f"{model}.{version}.new")
        os.makedirs(hidden)
        with open(os.path.join(hidden, "model.slipway"), "wb") as file:
            file.write(content)
        os.makedirs(os.path.join(self.base, model), exist_ok=True)
        os.rename(hidden, os.path.join(self.base, model, str(version)))

    def test_what_was_trained_is_served(self):
        trainer = os.path.join(BINARIES, "slipway-train")
        out = os.path.join(self.base, "out")
        environment = {**os.environ, "SLIPWAY_DATA": "synthetic"}
        subprocess.run([trainer, "--steps", "100", "--output", out], check=True, env=environment, stdout=subprocess.DEVNULL)
        with open(os.path.join(out, "model.slipway"), "rb") as file:
            self.put(1, file.read())
        rows = [[(row * 31 + i) % 97 / 97 for i in range(784)] for row in range(40)]
        samples = os.path.join(self.base, "samples.f32")
        with open(samples, "wb") as file:
            array.array("f", [value for row in rows for value in row]).tofile(file)
        printed = subprocess.run([trainer, "predict", os.path.join(out, "model.slipway"), "--data", samples], check=True, capture_output=True, text=True)
        expected = json.loads(printed.stdout)["predictions"]
        self.assertEqual(len(expected), 40)

        server = self.serve("--model", f"m={self.base}/m", "--rest-port", "0")
        for count in (1, 7, 40):
            answer = server.json("POST", "/v1/models/m:predict", {"instances": rows[:count]})["predictions"]
            self.assertEqual(len(answer), count)
            for ours, theirs in zip(answer, expected):
                for a, b in zip(ours, theirs):
                    self.assertAlmostEqual(a, b, delta=1e-5)
        pictures = [[[row[28 * i:28 * i + 28] for i in range(28)]] for row in rows[:2]]
        self.assertEqual(server.json("POST", "/v1/models/m:predict", {"instances": pictures}),
                         server.json("POST", "/v1/models/m:predict", {"instances": rows[:2]}))
        classes = server.json("POST", "/v1/models/m:classify", {"examples": [{"input": [float(v) for v in rows[0]]}]})["results"][0]
        self.assertEqual([label for label, _ in classes], [str(i) for i in range(10)])

    def test_versions_change_under_load_and_no_request_fails(self):
        self.put(1, line_model(0, 1))
        server = self.serve("--model", f"m={self.base}/m", "--rest-port", "0")
        available, written, over = [1], [1], threading.Event()
        ledger, broken = [], []

        def client():
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            try:
                while not over.is_set():
                    least = available[0]
                    status, body = server.ask("POST", "/v1/models/m:predict", {"instances": [7, 8]}, connection=connection)
                    ledger.append((least, status, body, written[0]))
            except Exception as error:  # noqa: BLE001: it counts as a failed request
                broken.append(error)
            finally:
                connection.close()

        clients = [threading.Thread(target=client) for _ in range(4)]
        for thread in clients:
            thread.start()
        try:
            for version in range(2, 22):
                written[0] = version
                self.put(version, line_model(0, version))
                wait_until(lambda: server.json("GET", f"/v1/models/m/versions/{version}").get("model_version_status", [{}])[0].get("state") == "AVAILABLE",
                           what=f"version {version} is available")
                available[0] = version
                # Some answers of each version, before the next comes.
                enough = len(ledger) + 20
                wait_until(lambda: len(ledger) >= enough or broken, what="requests are answered")
        finally:
            over.set()
            for thread in clients:
                thread.join()
        self.assertEqual(broken, [])
        self.assertGreaterEqual(len(ledger), 400)
        for least, status, body, most in ledger:
            self.assertEqual(status, 200, body)
            values = json.loads(body)["predictions"]
            self.assertEqual(values[0], values[1], "one request saw two versions")
            self.assertTrue(least <= values[0] <= most, f"version {values[0]} answered where {least} to {most} were there")
        wait_until(lambda: [v["state"] for v in server.json("GET", "/v1/models/m")["model_version_status"]].count("AVAILABLE") == 1, what="old versions go")

    def test_half_a_version_is_never_served(self):
        self.put(1, line_model(0, 1))
        server = self.serve("--model", f"m={self.base}/m", "--rest-port", "0")
        whole = line_model(0, 2)
        os.makedirs(f"{self.base}/m/2")
        with open(f"{self.base}/m/2/model.slipway", "wb", buffering=0) as file:
            for byte in range(0, len(whole), 24):
                file.write(whole[byte:byte + 24])
                self.assertIn(server.json("POST", "/v1/models/m:predict", {"instances": [0]})["predictions"],
                              [[1.0], [2.0]] if byte + 24 >= 328 else [[1.0]])
        wait_until(lambda: server.json("POST", "/v1/models/m:predict", {"instances": [0]}) == {"predictions": [2.0]}, what="the whole version is served")

    def test_tensorflow_command_line_with_a_config_that_changes(self):
        self.put(1, line_model(0.5, 2), "half_plus_two")
        self.put(2, line_model(0, 9), "half_plus_two")
        config = os.path.join(self.base, "models.config")

        def write(text):
            with open(config + ".new", "w") as file:
                file.write("model_config_list { " + text + " }")
            os.rename(config + ".new", config)

        one = f"config {{ name: 'half_plus_two' base_path: '{self.base}/half_plus_two' model_version_policy {{ all {{}} }} version_labels {{ key: 'stable' value: 1 }} }}"
        write(one)
        with socket.socket() as probe:  # a free port: there 0 means none
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        monitoring = os.path.join(self.base, "monitoring")
        with open(monitoring, "w") as file:
            file.write("prometheus_config { enable: true }")
        server = self.serve("--port=0", f"-rest_api_port={port}", "--model-config-file", config, "--model_config_file_poll_wait_seconds=0.05",
                            f"--monitoring_config_file={monitoring}", "--tensorflow_session_parallelism=2", program="tensorflow_model_server")
        self.assertEqual(server.json("POST", "/v1/models/half_plus_two/labels/stable:predict", {"instances": [1.0, 2.0, 5.0]}), {"predictions": [2.5, 3.0, 4.5]})
        write("nonsense")
        wait_until(lambda: "nonsense" in server.messages(), what="the config is refused")
        write(one.replace("value: 1", "value: 7"))
        wait_until(lambda: "version 7 of model half_plus_two" in server.messages(), what="the label is refused")
        self.assertEqual(server.json("POST", "/v1/models/half_plus_two/labels/stable:predict", {"instances": [1]}), {"predictions": [2.5]})
        write(one.replace("value: 1", "value: 2"))
        wait_until(lambda: server.json("POST", "/v1/models/half_plus_two/labels/stable:predict", {"instances": [1]}) == {"predictions": [9.0]}, what="the label moves")
        self.assertIn(b':tensorflow:serving:request_count{model_name="half_plus_two",status="OK"}', server.ask("GET", "/monitoring/prometheus/metrics")[1])

    def test_grpc(self):
        """TensorFlow Serving's own messages, by their field numbers."""
        self.put(3, line_model(0.5, 2))
        server = self.serve("--model", f"m={self.base}/m", "--rest-port", "0", "--grpc-port", "0")
        client = GrpcClient(server.grpc_port)
        self.addCleanup(client.close)
        predict = "/tensorflow.serving.PredictionService/Predict"
        spec = field(1, b"m") + field(3, b"serving_default")

        def request(values):
            shape = field(2, field(1, len(values))) + field(2, field(1, 1))
            tensor = field(1, 1) + field(2, shape) + field(4, struct.pack(f"<{len(values)}f", *values))
            return field(1, spec) + field(2, field(1, b"input") + field(2, tensor))

        answered_spec = field(1, b"m") + field(2, field(1, 3)) + field(3, b"serving_default")
        shape = field(2, field(1, 2)) + field(2, field(1, 1))
        output = field(1, 1) + field(2, shape) + field(5, struct.pack("<2f", 2.5, 3))
        self.assertEqual(client.call(predict, request([1, 2])), field(1, field(1, b"output") + field(2, output)) + field(2, answered_spec))
        many = client.call(predict, request([2.0] * 40_000))  # in many frames, and raw in the answer
        self.assertIn(struct.pack("<40000f", *[3.0] * 40_000), many)
        status = client.call("/tensorflow.serving.ModelService/GetModelStatus", field(1, field(1, b"m")))
        self.assertEqual(status, field(1, field(1, 3) + field(2, 30) + field(3, field(1, 0) + field(2, b""))))
        self.assertEqual(client.call("/grpc.health.v1.Health/Check", b""), b"\x08\x01")
        self.assertIn(b"tensorflow/serving/predict", client.call("/tensorflow.serving.PredictionService/GetModelMetadata", field(1, field(1, b"m")) + field(2, b"signature_def")))
        example = field(1, field(1, field(1, b"input") + field(2, field(2, field(1, struct.pack("<f", 6))))))
        regress = "/tensorflow.serving.PredictionService/Regress"
        regressed = client.call(regress, field(1, field(1, b"m")) + field(2, field(1, field(1, example) * 2)))
        self.assertEqual(regressed, field(1, field(1, b"\x0d" + struct.pack("<f", 5)) * 2) + field(2, field(1, b"m") + field(2, field(1, 3)) + field(3, b"regress")))
        with_context = field(1, field(1, b"m")) + field(2, field(2, field(1, b"") + field(2, example)))
        self.assertIn(struct.pack("<f", 5), client.call(regress, with_context))
        self.assertIsNone(client.call("/tensorflow.serving.PredictionService/Classify", field(1, field(1, b"m")) + field(2, field(1, field(1, example)))))
        self.assertIsNone(client.call(regress, field(1, field(1, b"m"))))
        for method, message, flag in [(predict, b"\xff\xff", 0), (predict, request([1])[:-1], 0), (predict, b"", 0), (predict, request([1]), 1), ("/x.Y/Z", b"", 0)]:
            self.assertIsNone(client.call(method, message, flag))
        with socket.create_connection(("127.0.0.1", server.grpc_port), timeout=60) as other:
            other.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
            while other.recv(4096):
                pass
        self.assertIsNotNone(client.call(predict, request([1])))

    def test_bad_input_is_answered_and_the_server_goes_on(self):
        self.put(1, line_model(0.5, 2))
        server = self.serve("--model", f"m={self.base}/m", "--rest-port", "0", "--body-max", "1MiB")
        rows = [
            (b"", 400, "JSON Parse error: The document is empty"),
            (b"\xff\xfe{}", 400, "JSON Parse error: Invalid value. at offset: 0"),
            (b'{"instances":' + b"[" * 10_000 + b"]" * 10_000 + b"}", 400, "Nested deeper"),
            (b'{"instances":[1e400]}', 400, "Number too big"),
            (b'{"instances":[[1,2]]}', 400, "2 values in each row, and the model takes 1"),
            (b" " * 2_000_000, 413, ""),
        ]
        for body, status, words in rows:
            given, answer = server.ask("POST", "/v1/models/m:predict", body)
            self.assertEqual(given, status, (body[:40], answer))
            self.assertIn(words, answer.decode())
        self.assertEqual(server.ask("POST", "/v1/models/m:predict", b"\x1f\x8bnonsense", {"Content-Encoding": "gzip"})[0], 400)
        self.assertEqual(server.json("POST", "/v1/models/m:predict", {"instances": [1]}), {"predictions": [2.5]})

    def test_wrong_command_lines_say_what_to_do(self):
        for arguments, code, words in [
            ([], 2, "nothing to serve"),
            (["--modell", "a=/a"], 2, "did you mean --model?"),
            (["--model", "a=/a", "--listen", "0.0.0.0"], 1, "--insecure"),
            (["--model_config_file", "/nowhere/x"], 1, "/nowhere/x"),
            (["--model", "a=/a", "--rest_api_port=0"], 1, "--rest_api_port=8501"),
        ]:
            ran = subprocess.run([os.path.join(BINARIES, "slipway-serve"), *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(ran.returncode, code, ran.stderr)
            self.assertIn(words, ran.stderr)
        helped = subprocess.run([os.path.join(BINARIES, "slipway-serve"), "--help"], capture_output=True, text=True, timeout=60)
        self.assertEqual(helped.returncode, 0)
        self.assertIn("--enable_batching", helped.stdout)


if __name__ == "__main__":
    unittest.main()
