"""What the Batch AI API costs beside the native routes: starting a job, listing many, following a file."""
import contextlib
import os
import random
import subprocess
import time

from machine import median
from service import Failed, Service

BASE = "/subscriptions/lab/resourceGroups/ml/providers/Microsoft.BatchAI/workspaces/main"
VERSION = "api-version=2018-05-01"
JOBS = f"{BASE}/experiments/digits/jobs"


class BatchAi:
    """Workspace, experiment and clusters of a service."""

    def __init__(self, service):
        self.api = service.api
        self.put(BASE, {"location": "local"})
        self.put(f"{BASE}/experiments/digits", {})

    def put(self, path, body):
        return self.api.call("PUT", f"{path}?{VERSION}", body)

    def cluster(self, name, nodes):
        self.put(f"{BASE}/clusters/{name}", {"properties": {
            "vmSize": "STANDARD_D2", "userAccountSettings": {"adminUserName": "ops", "adminUserPassword": "pw"},
            "scaleSettings": {"manual": {"targetNodeCount": nodes}},
            "nodeSetup": {"mountVolumes": {"azureFileShares": [
                {"accountName": "lab", "azureFileUrl": "https://lab.file.core.windows.net/team", "credentials": {},
                 "relativeMountPath": "team"}]}}}})
        for _ in range(1000):
            shown = self.api.call("GET", f"{BASE}/clusters/{name}?{VERSION}")["properties"]
            if shown["nodeStateCounts"]["idleNodeCount"] == nodes:
                return
            time.sleep(0.01)
        raise Failed(f"the nodes of cluster {name} did not come up")

    @staticmethod
    def body(line, cluster):
        return {"properties": {
            "cluster": {"id": f"{BASE}/clusters/{cluster}"}, "nodeCount": 1, "customToolkitSettings": {"commandLine": line},
            "stdOutErrPathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/team",
            "outputDirectories": [{"id": "MODEL", "pathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/team", "pathSuffix": "models"}]}}


@contextlib.contextmanager
def empty_home(bench):
    """The user's ~/.bashrc runs before every job; what it costs is the user's."""
    before = os.environ.get("HOME")
    os.environ["HOME"] = bench.folders.fresh()
    try:
        yield
    finally:
        if before is None:
            del os.environ["HOME"]
        else:
            os.environ["HOME"] = before


def batchai(bench):
    with empty_home(bench), Service(bench.slipway, bench.folders.fresh()) as service:
        client = BatchAi(service)
        start(bench, service, client)
        listing(bench, service, client)
        stream(bench, service, client)


def start(bench, service, client):
    program = os.path.join(bench.programs, "first_instruction")
    service.pool("lab", 1, 2)
    client.cluster("c1", 1)
    native_body = {"pool": "lab", "tasks": [{"name": "run", "command": [program]}]}
    waits = {"native": [], "batchai": []}

    def measure(kind, request, job):
        begin = time.time_ns()
        status, answer = service.api.exchange(request)
        if status >= 300:
            raise Failed(answer.decode(errors="replace")[:300])
        job = job or answer.decode().split('"id":"', 1)[1].split('"', 1)[0]
        service.wait(job)
        waits[kind].append((int(service.api.call("GET", f"/v1/jobs/{job}/tasks/run/logs")) - begin) / 1e6)

    for number in range(20 if bench.quick else 150):
        measure("native", service.api.bytes_of("POST", "/v1/jobs", native_body), None)
        name = f"start-{number}"
        measure("batchai", service.api.bytes_of("PUT", f"{JOBS}/{name}?{VERSION}", client.body(program, "c1")), name)
    native, batchai_ms = median(waits["native"]), median(waits["batchai"])
    bench.row("Batch AI: job PUT to first instruction, p50", f"{batchai_ms:.1f} ms, native submit {native:.1f} ms",
              "10 ms over native", (batchai_ms - native) / 10, batchai_ms - native <= 10, milliseconds=waits)


def listing(bench, service, client):
    count, ran = (1200, 1000) if bench.quick else (10000, 1000)
    client.put(f"{BASE}/experiments/many", {})
    client.cluster("none", 0)
    jobs = f"{BASE}/experiments/many/jobs"
    for number in range(count):  # the first page has run; of the rest nothing can
        client.put(f"{jobs}/many-{number}", client.body(":", "c1" if number < ran else "none"))
    service.wait(f"many-{ran - 1}")
    request = service.api.bytes_of("GET", f"{jobs}?{VERSION}&maxresults=1000")
    times = []
    for _ in range(30):
        begin = time.monotonic()
        status, answer = service.api.exchange(request)
        times.append((time.monotonic() - begin) * 1e3)
        if status != 200 or answer.count(b'"executionState":"succeeded"') != ran or b'"nextLink"' not in answer:
            raise Failed(f"the list of jobs: {status} {answer[:300]!r}")
    p50 = median(times)
    bench.row(f"Batch AI: 1,000 of {count:,} jobs listed, p50", f"{p50:.1f} ms, {len(answer) / 1e6:.1f} MB", "20 ms", p50 / 20,
              p50 <= 20, milliseconds=sorted(times))


def stream(bench, service, client):
    lines = 60 if bench.quick else 300
    # At odd times, so that they do not fall into step with the looks.
    pauses = " ".join(f"{random.uniform(0.03, 0.09):.4f}" for _ in range(lines))
    line = f"for pause in {pauses}; do sleep $pause; date +%s%N; done"
    client.put(f"{JOBS}/stream", client.body(line, "c1"))
    words = ["batchai", "job", "file", "stream", "-g", "ml", "-w", "main", "-e", "digits", "-j", "stream", "-f", "stdout.txt",
             "--subscription", "lab", "--data", service.data]
    waits = []
    with subprocess.Popen([service.binary, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0) as child:
        while text := child.stdout.readline():
            waits.append((time.time_ns() - int(text)) / 1e6)
    if len(waits) != lines or child.returncode != 0:
        raise Failed(f"the stream had {len(waits)} of {lines} lines and exit code {child.returncode}")
    seen = sorted(waits[5:])  # the first may be older than the look at it
    p50, p99 = median(seen), seen[int(len(seen) * 0.99)]
    bench.row("Batch AI: a new line is streamed, p50 and p99", f"{p50:.1f} ms, {p99:.1f} ms", "50 ms", p99 / 50, p50 <= 50,
              milliseconds=seen)
