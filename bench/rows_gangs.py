"""Gangs: how soon they run, how soon they run again, and how many can follow one another."""
import os
import shutil
import signal
import subprocess
import time

import slurm as slurm_peer
from machine import median
from service import Failed, Service

NODES = 2


def gangs(bench):
    rounds = 3 if bench.quick else 7
    with Service(bench.slipway, bench.folders.fresh()) as service:
        service.pool("lab", NODES, 16)
        for processes in (2, 8, 32):
            start_to_end(bench, service, processes, rounds)
        restart(bench, service, rounds)
    one_after_another(bench)


def start_to_end(bench, service, processes, rounds):
    mpirun = shutil.which("mpirun")
    whole, running, bare, peer = [], [], [], []
    for _ in range(rounds):
        task = {"name": "t", "nodes": NODES, "processes_per_node": processes // NODES, "command": ["true"]}
        begin = time.monotonic()
        job = service.submit({"pool": "lab", "tasks": [task]})
        service.wait(job)
        whole.append(time.monotonic() - begin)
        attempt = service.api.call("GET", f"/v1/jobs/{job}/tasks/t")["history"][0]
        running.append(seconds_of(attempt["started_at"]) - seconds_of(attempt["placed_at"]))
        bare.append(bench.spawn_loop(processes)[0])
        if mpirun:
            peer.append(mpirun_seconds(mpirun, processes))
    shown = f"{median(whole) * 1e3:.1f} ms, all running after {median(running) * 1e3:.1f} ms"
    if peer:
        ratio = median([theirs / ours for theirs, ours in zip(peer, whole)])
        bench.row(f"gang of {processes} x true, submit to end", shown, f"mpirun {median(peer) * 1e3:.0f} ms / 5", ratio, ratio >= 5,
                  seconds=whole, mpirun=peer, all_running=running)
    else:
        bench.absent(f"gang of {processes} x true, submit to end", "mpirun is not installed (openmpi-bin)")
    bench.note(f"  the same against a bare spawn loop of {processes}", f"{median(whole) * 1e3:.1f} ms", f"{median(bare) * 1e3:.1f} ms",
               median([limit / ours for limit, ours in zip(bare, whole)]), bare=bare)


def mpirun_seconds(mpirun, processes):
    """Open MPI 4.1 hangs now and then with programs that end at once; such a try is void and is repeated."""
    for _ in range(5):
        begin = time.monotonic()
        try:
            subprocess.run([mpirun, "--allow-run-as-root", "--oversubscribe", "-np", str(processes), "true"], check=True,
                           capture_output=True, timeout=10)
            return time.monotonic() - begin
        except subprocess.TimeoutExpired:
            pass
    raise Failed(f"mpirun -np {processes} true hung five times")


def seconds_of(text):
    """Of a time like 2026-03-02T10:00:00.123456Z, the part within its hour."""
    _, minutes, rest = text.rstrip("Z").split("T")[1].split(":")
    return int(minutes) * 60 + float(rest)


def restart(bench, service, rounds):
    folder = bench.folders.fresh()
    waits = []
    for index in range(rounds):
        mark = os.path.join(folder, f"{index}-")
        command = f"echo $$ > {mark}$SLIPWAY_ATTEMPT-$SLIPWAY_RANK.new && mv {mark}$SLIPWAY_ATTEMPT-$SLIPWAY_RANK.new " \
                  f"{mark}$SLIPWAY_ATTEMPT-$SLIPWAY_RANK; exec sleep 1000"
        job = service.submit({"pool": "lab", "tasks": [{"name": "t", "nodes": NODES, "toolkit": "torch", "retries": 1, "command": command}]})
        first = [wait_for(mark + f"1-{rank}") for rank in range(NODES)]
        begin = time.monotonic()
        os.kill(int(first[1]), signal.SIGKILL)
        for rank in range(NODES):
            wait_for(mark + f"2-{rank}")
        waits.append(time.monotonic() - begin)
        service.api.call("POST", f"/v1/jobs/{job}/cancel", "{}")
        service.wait(job)
    slowest = max(waits)
    bench.row("kill -9 of a rank to all computing again", f"{median(waits) * 1e3:.0f} ms, at most {slowest * 1e3:.0f} ms", "500 ms",
              slowest / 0.5, slowest <= 0.5, seconds=waits)


def wait_for(path, patience=30):
    deadline = time.monotonic() + patience
    while not os.path.exists(path):
        if time.monotonic() > deadline:
            raise Failed(f"{path} did not appear")
        time.sleep(0.001)
    with open(path, encoding="utf8") as file:
        return file.read()


def one_after_another(bench):
    count = 200 if bench.quick else 1000
    with Service(bench.slipway, bench.folders.fresh()) as service:
        service.pool("lab", NODES, 1)  # capacity for one at a time
        begin = time.monotonic()
        job = service.submit({"pool": "lab", "tasks": [{"name": "t", "nodes": NODES, "count": count, "command": ["true"]}]})
        if service.wait(job)["state"] != "succeeded":
            raise Failed(f"{job} did not succeed")
        rate = count / (time.monotonic() - begin)
    what = f"{count:,} gangs of 2, one after another"
    if not (slurm_peer.is_installed() and slurm_peer.find("srun")):
        return bench.note(what, f"{rate:,.0f}/s", "Slurm is not installed", None)
    with slurm_peer.Slurm(bench.folders.fresh()) as peer:
        each = peer.step_seconds(2)
    bench.note(what, f"{rate:,.0f}/s", f"srun -n2 true {1 / each:,.1f}/s", rate * each)
    return None
