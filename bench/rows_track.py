"""Tracking: what is owed to who logs and to who searches. Side by side with a real MLflow server where one was installed
(SLIPWAY_BENCH_MLFLOW names the Pythons that have one)."""
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from statistics import median

from service import Connection, Service

API = "/api/2.0/mlflow"


def p95(samples):
    return sorted(samples)[int(len(samples) * 0.95)]


def track(bench):
    store(bench)
    ours = bench.folders.fresh()
    with Service(bench.slipway, ours) as service:
        single = singles(service.port, service.token, 3)
        batched = batches(service.port, service.token, 3)
    bench.row("log-batch of 1,000, 8 clients, durable", f"points/s {batched:,.0f}", "at least 300,000", batched / 300_000, batched >= 300_000)
    bench.note("log-metric, one connection, durable", f"a second {single:,.0f}", "", None)
    for python in filter(None, os.environ.get("SLIPWAY_BENCH_MLFLOW", "").split(":")):
        with Mlflow(python, bench.folders.fresh()) as peer:
            their_single, their_batched = singles(peer.port, "", 5), batches(peer.port, "", 5)
        owed = 20 if peer.version.startswith("2.") else 100
        bench.row(f"log-metric beside MLflow {peer.version}", f"a second {single:,.0f} and {their_single:,.1f}", f"at least {owed} times", single / their_single,
                  single >= owed * their_single)
        bench.row(f"log-batch beside MLflow {peer.version}", f"points/s {batched:,.0f} and {their_batched:,.0f}", "at least 20 times", batched / their_batched,
                  batched >= 20 * their_batched)


def store(bench):
    searches = [float(line) for line in bench.program("track", "search", "100000", "20", "40").split()]
    took = p95(searches)
    bench.row("search, 100,000 runs x 20, first 1,000", f"ms p95 {took:.1f}, median {median(searches):.1f}", "at most 50 ms", took / 50, took <= 50, ms=searches)
    *views, size = [float(line) for line in bench.program("track", "view", bench.folders.fresh(), "1000000", "20").split()]
    bench.row("view of 1,000 points of 1,000,000", f"ms median {median(views):.2f}", "at most 10 ms", median(views) / 10, median(views) <= 10, ms=views)
    bench.row("bytes on disk a point, losses", f"{size:.2f}", "at most 6", size / 6, size <= 6)
    used = int(bench.program("track", "memory", "10000", "100")) / 1e6
    bench.row("memory, 10,000 runs x 100, idle", f"MB {used:.1f}", "at most 60 MB", used / 60, used <= 60)


def new_run(port, token):
    answer = Connection(port, token).call("POST", API + "/runs/create", {"experiment_id": "0"})
    return answer["run"]["info"]["run_id"]


def singles(port, token, seconds):
    """log-metric requests a second over one connection."""
    run, connection, count = new_run(port, token), Connection(port, token), 0
    begin = time.monotonic()
    while time.monotonic() < begin + seconds:
        connection.call("POST", API + "/runs/log-metric", {"run_id": run, "key": "m", "value": count / 7, "timestamp": 1000 + count, "step": count})
        count += 1
    return count / (time.monotonic() - begin)


def batches(port, token, seconds, clients=8):
    """Points a second in batches of 1,000."""
    counts = [0] * clients
    prepared = []
    for client in range(clients):
        run = new_run(port, token)
        connection = Connection(port, token)
        # Made before, so that the time measured is the server's.
        bodies = [connection.bytes_of("POST", API + "/runs/log-batch", {"run_id": run, "metrics": [
            {"key": "m", "value": i / 7, "timestamp": 1000 + i, "step": i} for i in range(begin, begin + 1000)]}) for begin in range(0, 100_000, 1000)]
        prepared.append((connection, bodies))
    deadline = time.monotonic() + seconds

    def send(client):
        connection, bodies = prepared[client]
        for body in bodies:
            connection.exchange(body)
            counts[client] += 1000
            if time.monotonic() > deadline:
                return

    begin = time.monotonic()
    threads = [threading.Thread(target=send, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - begin)


class Mlflow:
    """A real server on SQLite."""

    def __init__(self, python, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.version = subprocess.run([python, "-c", "import mlflow; print(mlflow.__version__)"], capture_output=True, text=True, check=True).stdout.strip()
        self.command = [python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port), "--backend-store-uri", f"sqlite:///{folder}/ml.db",
                        "--default-artifact-root", folder + "/art"]
        self.folder = folder

    def __enter__(self):
        # In a group of its own: its workers outlive it.
        self.process = subprocess.Popen(self.command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 180
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5).read()
                return self
            except (urllib.error.URLError, OSError):
                if time.monotonic() > deadline:
                    self.__exit__()
                    raise
                time.sleep(0.2)

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
