"""What the service costs by itself: durable answers, large jobs, restarts, idling, the binary."""
import os
import re
import shutil
import subprocess
import time

from machine import cpu_seconds, median, processes_of, resident, settled_resident
from service import Failed, Service

MIB = 1 << 20


def durable_submit(bench):
    submits, syncs = [], []
    with Service(bench.slipway, bench.folders.fresh()) as service:
        service.drained_pool("lab")
        request = service.api.bytes_of("POST", "/v1/jobs", {"pool": "lab", "tasks": [{"name": "t", "command": ["true"]}]})
        body = len(request.split(b"\r\n\r\n", 1)[1])
        file = os.path.join(os.path.dirname(service.data), "appended")
        with subprocess.Popen([os.path.join(bench.programs, "append_sync"), file, str(body)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, bufsize=1) as appender:
            for _ in range(200 if bench.quick else 1000):
                appender.stdin.write("\n")
                syncs.append(float(appender.stdout.readline()))
                begin = time.perf_counter()
                status, answer = service.api.exchange(request)
                submits.append((time.perf_counter() - begin) * 1e6)
                if status != 201:
                    raise Failed(answer.decode())
            appender.stdin.close()
    p50, sync = median(submits), median(syncs)
    bench.row("durable submit, keep-alive, p50", f"{p50:,.0f} us", f"4 x fdatasync {sync:,.0f} us", p50 / sync,
              p50 <= 4 * sync, submit_us=sorted(submits), fdatasync_us=sorted(syncs), record_bytes=body)


def large_jobs(bench):
    with Service(bench.slipway, bench.folders.fresh()) as service:
        service.drained_pool("lab")
        took = []
        request = service.api.bytes_of(
            "POST", "/v1/jobs", {"pool": "lab", "tasks": [{"name": "t", "command": ["true"], "count": 1000000}]})
        for _ in range(5 if bench.quick else 20):
            begin = time.perf_counter()
            status, answer = service.api.exchange(request)
            took.append((time.perf_counter() - begin) * 1e3)
            if status != 201:
                raise Failed(answer.decode())
        bench.row("accept an array of 1,000,000, p50", f"{median(took):.1f} ms", "50 ms", median(took) / 50, median(took) <= 50,
                  milliseconds=took)

    with Service(bench.slipway, bench.folders.fresh()) as service:
        service.drained_pool("lab")
        count = 100000
        tasks = [{"name": f"t{i}", "command": ["true"]} for i in range(count)]
        service.submit({"pool": "lab", "tasks": tasks[:10]})
        before = settled_resident(service.pid)
        begin = time.perf_counter()
        service.submit({"pool": "lab", "tasks": tasks})
        accepted = time.perf_counter() - begin
        after = settled_resident(service.pid)
        each = (after - before) / count
        bench.row("100,000 tasks one by one, resident each", f"{each:.0f} bytes", "300 bytes", each / 300, each <= 300,
                  before=before, after=after, accepted_s=accepted)


def restart(bench):
    count = 200000 if bench.quick else 1000000
    service = Service(bench.slipway, bench.folders.fresh())
    try:
        service.up()  # makes the folder and its tokens
        service.down()
        bench.program("fill_store", os.path.join(service.data, "slipway.db"), str(count))
        took = []
        for _ in range(3):
            took.append(service.up())
            job = service.api.call("GET", "/v1/jobs/job_1")
            if job["tasks"]["succeeded"] != count:
                raise Failed("the record is not what was saved")
            memory = resident(service.pid)[0]
            service.down()
    finally:
        service.down()
    bench.row(f"restart with {count:,} finished tasks", f"{median(took):.2f} s", "3 s", median(took) / 3, median(took) <= 3,
              seconds=took, resident=memory)


def ready(bench):
    took = []
    for _ in range(5 if bench.quick else 15):
        with_folder = Service(bench.slipway, bench.folders.fresh())
        try:
            took.append(with_folder.up() * 1e3)
        finally:
            with_folder.down()
    bench.row("up to serving, fresh folder, p50", f"{median(took):.0f} ms", "100 ms", median(took) / 100, median(took) <= 100,
              milliseconds=took)


def idle(bench):
    ready(bench)
    with Service(bench.slipway, bench.folders.fresh()) as service:
        service.pool("lab", 2, 1)
        time.sleep(2)  # what start-up leaves is given back
        found = processes_of(service.data)
        service.api.socket.close()
        pids = sum(found.values(), [])
        before = {pid: cpu_seconds(pid) for pid in pids}
        begin = time.monotonic()
        seconds = 10 if bench.quick else 20
        time.sleep(seconds)
        passed = time.monotonic() - begin
        used = {pid: cpu_seconds(pid) - before[pid] for pid in pids}
        own = resident(found["service"][0])[0]
        pairs = [resident(agent)[0] + resident(keeper)[0]
                 for agent, keeper in zip(sorted(found["agents"]), sorted(found["keepers"]))]
        shared = [resident(pid)[1] for pid in found["agents"] + found["keepers"]]
        bench.row("idle service, resident", f"{own / MIB:.1f} MiB", "30 MiB", own / MIB / 30, own <= 30 * MIB)
        bench.row("idle agent with its keeper, resident", f"{max(pairs) / MIB:.1f} MiB", "8 MiB", max(pairs) / MIB / 8,
                  max(pairs) <= 8 * MIB, pairs=pairs, proportional=sum(shared) / len(pairs))
        percent = 100 * sum(used.values()) / passed
        bench.row("idle CPU, service with 2 agents, together", f"{percent:.3f} %", "0.1 %", percent / 0.1, percent <= 0.1,
                  service_percent=100 * used[found["service"][0]] / passed,
                  agents_percent=[100 * used[pid] / passed for pid in found["agents"]],
                  keepers_percent=[100 * used[pid] / passed for pid in found["keepers"]], seconds=seconds)


def binary(bench):
    copy = os.path.join(bench.folders.fresh(), "slipway")
    shutil.copy(bench.slipway, copy)
    subprocess.run(["strip", copy], check=True)
    size = os.path.getsize(copy) / 1e6
    bench.row("the binary, stripped", f"{size:.1f} MB", "20 MB", size / 20, size <= 20)
    listed = subprocess.run(["ldd", bench.slipway], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^\s*(?:/\S*/)?(\S+?)\.so", listed, re.MULTILINE)
    allowed = {"linux-vdso", "libc", "libstdc++", "libm", "libgcc_s", "ld-linux-x86-64", "ld-linux-aarch64"}
    extra = sorted(set(names) - allowed)
    bench.row("shared libraries it needs", ", ".join(extra) or "libc, libstdc++", "libc, libstdc++", None, not extra,
              libraries=names)
