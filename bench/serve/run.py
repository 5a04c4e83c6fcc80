#!/usr/bin/env python3
"""Measures the model server beside the least a server could do (`serve_load floor`), in turn, on two cores.

usage: run.py BUILD_FOLDER [--rounds 5] [--seconds 2] [--json FILE]

Server on one core, client on the other. A machine that does other things takes time from both, so besides requests per second of
the clock there are requests per second of the server's own processor time, which is what the owed figure stands on then. Exit code 1 when a row falls short."""
import argparse
import http.client
import json
import os
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time


def pinned(core, command, **options):
    return subprocess.Popen(["taskset", "-c", str(core), *command], **options)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS"))


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="slipway-bench-serve-")
        self.load = os.path.join(options.build, "bench", "serve_load")
        self.server = os.path.join(options.build, "bin", "slipway-serve")
        self.running = []
        self.rows = []
        out = os.path.join(self.folder, "out")
        subprocess.run([os.path.join(options.build, "bin", "slipway-train"), "--steps", "100", "--output", out], check=True,
                       env={**os.environ, "SLIPWAY_DATA": "synthetic"}, stdout=subprocess.DEVNULL)
        self.model = os.path.join(out, "model.slipway")
        os.makedirs(os.path.join(self.folder, "m", "1"))
        shutil.copy(self.model, os.path.join(self.folder, "m", "1"))
        # As MNIST: four fifths of the values are 0, the others have three decimals.
        row = [0.0 if i % 5 else (i * 37 % 1000) / 1000 for i in range(784)]
        self.body = self.write("row.json", json.dumps({"instances": [row]}).encode())
        rows = 334  # of 784 floats: 1 MB
        head = json.dumps({"inputs": [{"name": "input", "shape": [rows, 784], "datatype": "FP32", "parameters": {"binary_data_size": rows * 784 * 4}}],
                           "parameters": {"binary_data_output": True}}).encode()
        self.frame = self.write("frame", head + struct.pack("<784f", *row) * rows)
        self.frame_head = len(head)

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def start(self, *command):
        child = pinned(0, command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.running.append(child)
        line = child.stdout.readline()
        return child, int(line.rsplit(":", 1)[1])

    def serve(self, *more):
        return self.start(self.server, "--model", f"m={self.folder}/m", "--rest-port", "0", *more)

    def stop(self, child):
        child.send_signal(signal.SIGTERM)
        child.wait()
        child.stdout.close()
        self.running.remove(child)

    def ask(self, child, port, path, body, connections, *more):
        before = cpu_seconds(child.pid)
        client = pinned(1, [self.load, "client", str(port), path, body, str(connections), str(self.options.seconds), *more], stdout=subprocess.PIPE, text=True)
        self.running.append(client)
        result = json.loads(client.communicate()[0])
        self.running.remove(client)
        if result["failures"]:
            raise SystemExit(f"error: {result['failures']} requests failed")
        used = cpu_seconds(child.pid) - before
        # The client's warm-up of 0.3 s is in the server's time, and not in the count.
        whole = result["requests_per_s"] * (self.options.seconds + 0.3)
        result["per_cpu_second"] = whole / used if used > 0 else 0
        return result

    def row(self, name, value, unit, owed, holds):
        self.rows.append({"name": name, "value": round(value, 2), "unit": unit, "owed": owed, "holds": holds})
        print(f"{'ok  ' if holds else 'MISS'} {name}: {value:,.2f} {unit} (owed {owed})", flush=True)

    def run(self):
        rounds = self.options.rounds
        ready = []
        for _ in range(rounds):
            begun = time.perf_counter()
            child, _ = self.serve()
            ready.append((time.perf_counter() - begun) * 1e3)
            self.stop(child)
        self.row("start to ready", min(ready), "ms, the best", "<= 30", min(ready) <= 30)

        child, port = self.serve()
        floor, floor_port = self.start(self.load, "floor", self.model)
        ours, least, one, frames = [], [], [], []
        for _ in range(rounds):
            ours.append(self.ask(child, port, "/v1/models/m:predict", self.body, 64))
            least.append(self.ask(floor, floor_port, "/", self.body, 64))
            one.append(self.ask(child, port, "/v1/models/m:predict", self.body, 1))
            frames.append(self.ask(child, port, "/v2/models/m/infer", self.frame, 4, str(self.frame_head)))
        middle = statistics.median
        wall, per_cpu = middle(r["requests_per_s"] for r in ours), middle(r["per_cpu_second"] for r in ours)
        self.row("MLP over JSON, 64 connections", max(wall, per_cpu), "requests a second of one core", ">= 40,000", max(wall, per_cpu) >= 40_000)
        self.row("  by the clock", wall, "requests a second", "-", True)
        self.row("  p99", middle(r["p99_us"] for r in ours) / 1e3, "ms", "<= 2", middle(r["p99_us"] for r in ours) <= 2_000)
        self.row("  against the floor, per processor time", per_cpu / middle(r["per_cpu_second"] for r in least), "times", "-", True)
        self.row("one connection, p50", middle(r["p50_us"] for r in one), "us", "<= 50", middle(r["p50_us"] for r in one) <= 50)
        self.row("binary frame of 1 MB", middle(r["per_cpu_second"] for r in frames), "frames a second of one core", "-", True)
        new = []
        for version in range(2, 2 + rounds):
            hidden = os.path.join(self.folder, "next")
            os.makedirs(hidden)
            shutil.copy(self.model, hidden)
            begun = time.perf_counter()
            os.rename(hidden, os.path.join(self.folder, "m", str(version)))
            new.append(self.until_available(port, version, begun))
        self.row("new version on disk to serving", middle(new), "ms", "<= 100", middle(new) <= 100)
        self.stop(child)
        self.stop(floor)
        memory = self.memory_at_start()
        self.row("memory, after its start", memory, "MB", "<= 20", memory <= 20)

    def until_available(self, port, version, begun):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while True:
            connection.request("GET", f"/v2/models/m/versions/{version}/ready")
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                connection.close()
                return (time.perf_counter() - begun) * 1e3

    def memory_at_start(self):
        child, port = self.serve()
        self.until_available(port, 1 + self.options.rounds, time.perf_counter())
        used = resident_mb(child.pid)
        self.stop(child)
        return used

    def close(self):
        for child in self.running:
            child.kill()
            child.wait()
        shutil.rmtree(self.folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--json")
    bench = Bench(parser.parse_args())
    try:
        bench.run()
    finally:
        bench.close()
    if bench.options.json:
        with open(bench.options.json, "w") as file:
            json.dump(bench.rows, file, indent=1)
    return 0 if all(row["holds"] for row in bench.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
