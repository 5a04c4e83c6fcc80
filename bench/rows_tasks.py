"""What running tasks costs: throughput against the limit and the peers, latency, growth."""
import os
import shutil
import subprocess
import time

import slurm as slurm_peer
from machine import Use, median
from service import Failed, Service


def check_readable(service, job, count):
    """Every result is stored and can be read: counts, each task's end, one log."""
    seen, after = 0, ""
    while after is not None:
        page = service.api.call("GET", f"/v1/jobs/{job}/tasks?state=succeeded&limit=1000" + (f"&after={after}" if after else ""))
        seen += len(page["items"])
        if any(task["exit_code"] != 0 for task in page["items"]):
            raise Failed(f"a task of {job} has no exit code 0")
        after = page["next"] and page["next"].replace("[", "%5B").replace("]", "%5D")
    if seen != count:
        raise Failed(f"{job} shows {seen} ended tasks, not {count}")
    service.api.call("GET", f"/v1/jobs/{job}/tasks/t%5B{count - 1}%5D/logs")


def throughput(bench):
    count, rounds = (2000, 3) if bench.quick else (10000, 5)
    parallel = shutil.which("parallel")
    peer_count = max(200, count // 20)
    bare, two, one, peers = [], [], [], []
    cpu = {"bare": [], "two": [], "one": []}
    with Service(bench.slipway, bench.folders.fresh()) as nodes_2, Service(bench.slipway, bench.folders.fresh()) as nodes_1:
        nodes_2.pool("lab", 2, 1)
        nodes_1.pool("lab", 1, 2)
        for _ in range(rounds):
            took, used = bench.spawn_loop(count)
            bare.append(count / took)
            cpu["bare"].append({"all": used / count * 1e6})
            for service, rates, name in ((nodes_2, two, "two"), (nodes_1, one, "one")):
                use = Use(service.data)
                took, job = service.run_array("lab", count, ["true"])
                rates.append(count / took)
                cpu[name].append({kind: value / count * 1e6 for kind, value in use.seconds().items()})
                check_readable(service, job, count)
            if parallel:
                peers.append(peer_count / parallel_seconds(parallel, peer_count))
    for rates, label, name in ((two, "2 nodes of 1 core", "two"), (one, "1 node of 2 cores", "one")):
        # Of each round by itself: what a neighbour takes, it takes from both.
        share = median([rate / limit for rate, limit in zip(rates, bare)])
        owed = 0.85 if name == "two" else 0.70
        bench.row(f"{count:,} x true, {label}", f"{median(rates):,.0f}/s", f"{owed * 100:.0f} % of bare {median(bare):,.0f}/s", share,
                  share >= owed, slipway_per_s=rates, bare_per_s=bare)
        # CPU time does not wait for neighbours: on a busy machine this says more than the clock.
        parts = {kind: median([one_round[kind] for one_round in cpu[name]]) for kind in cpu[name][0]}
        limit = median([one_round["all"] for one_round in cpu["bare"]])
        shown = ", ".join(f"{kind} {value:.0f}" for kind, value in parts.items())
        bench.note(f"  CPU a task, {label}", f"us: {shown}", f"bare {limit:.0f} us", limit / sum(parts.values()), cpu_us=cpu[name],
                   bare_us=cpu["bare"])
    if parallel:
        ratio = median([rate / peer for rate, peer in zip(two, peers)])
        bench.row("the same against GNU parallel -j2", f"{median(two):,.0f}/s", f"3 x {median(peers):,.0f}/s", ratio,
                  ratio >= 3, parallel_per_s=peers)
    else:
        bench.absent("the same against GNU parallel -j2", "parallel is not installed")
    slurm(bench, median(two))


def after_delete(bench):
    """Right after a large delete ext4 steps over every inode freed lately: what makes files then waits for it."""
    count, rounds, files = (2000, 2, 20000) if bench.quick else (10000, 3, 100000)
    bare, rates = [], []
    with Service(bench.slipway, bench.folders.fresh()) as service:
        service.pool("lab", 2, 1)
        for _ in range(rounds):
            delete_files(bench.folders.fresh(), files)
            took, _used = bench.spawn_loop(count)
            bare.append(count / took)
            took, job = service.run_array("lab", count, ["true"])
            rates.append(count / took)
            check_readable(service, job, count)
    share = median([rate / limit for rate, limit in zip(rates, bare)])
    bench.row(f"{count:,} x true after deleting {files:,} files", f"{median(rates):,.0f}/s", f"85 % of bare {median(bare):,.0f}/s",
              share, share >= 0.85, slipway_per_s=rates, bare_per_s=bare)


def delete_files(folder, count):
    for index in range(count):
        if index % 1000 == 0:
            inner = os.path.join(folder, str(index))
            os.mkdir(inner)
        os.close(os.open(os.path.join(inner, str(index)), os.O_CREAT | os.O_WRONLY, 0o644))
    os.sync()
    shutil.rmtree(folder)


def parallel_seconds(parallel, count):
    begin = time.monotonic()
    subprocess.run([parallel, "-j2", "true", "{}"], input="\n".join(map(str, range(count))), text=True, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin


def slurm(bench, rate):
    what = "the same against a Slurm array"
    if not slurm_peer.is_installed():
        return bench.absent(what, "Slurm is not installed (slurmctld, slurmd, slurm-client, munge)")
    count = 100 if bench.quick else 400
    with slurm_peer.Slurm(bench.folders.fresh()) as peer:
        each = peer.array_seconds(count) / count
    bench.row(what, f"{rate:,.0f}/s", f"20 x {1 / each:,.0f}/s", rate * each, rate * each >= 20, slurm_per_s=1 / each)


def first_instruction(bench):
    program = os.path.join(bench.programs, "first_instruction")
    waits = []
    with Service(bench.slipway, bench.folders.fresh()) as service:
        service.pool("lab", 1, 2)
        request = service.api.bytes_of("POST", "/v1/jobs", {"pool": "lab", "tasks": [{"name": "t", "command": [program]}]})
        for _ in range(30 if bench.quick else 200):
            begin = time.time_ns()
            _, answer = service.api.exchange(request)
            job = answer.decode().split('"id":"', 1)[1].split('"', 1)[0]
            service.wait(job)
            began = int(service.api.call("GET", f"/v1/jobs/{job}/tasks/t/logs"))
            waits.append((began - begin) / 1e6)
    p50 = median(waits)
    bench.row("submit to first instruction, p50", f"{p50:.2f} ms", "5 ms", p50 / 5, p50 <= 5,
              milliseconds=sorted(waits))


def growth(bench):
    sizes = [500, 5000] if bench.quick else [1000, 10000, 100000] if bench.long else [1000, 10000]
    rounds = 3
    share = {size: [] for size in sizes}
    per_task = {size: [] for size in sizes}
    with Service(bench.slipway, bench.folders.fresh()) as service:
        service.pool("lab", 2, 1)
        for _ in range(rounds):
            for size in sizes:
                # Small ones are repeated, so that each figure stands on as much work; the bare loop beside each
                # takes out what the machine did meanwhile.
                repeats = max(1, min(sizes[-1], 10000) // size)
                beside = min(size * repeats, 5000)
                limit = bench.spawn_loop(beside)[0] / beside
                took = sum(service.run_array("lab", size, ["true"])[0] for _ in range(repeats)) / (size * repeats)
                per_task[size].append(took * 1e6)
                share[size].append(took / limit)
    medians = {size: median(values) for size, values in share.items()}
    ratio = max(medians.values()) / medians[sizes[0]]
    shown = ", ".join(f"{size:,}: {median(per_task[size]):.0f}" for size in sizes)
    bench.row(f"growth, real tasks ({sizes[0]:,} to {sizes[-1]:,})", f"us a task {shown}", "flat within 20 %", ratio, ratio <= 1.2,
              per_task_us=per_task, to_bare=share)


def control_growth(bench):
    largest = 100000 if bench.quick else 1000000
    # With many nodes the small job is left out: it fits on them at once, so nothing is ever prefetched.
    for nodes, smallest in ((2, 1000), (64, 10000)):
        sizes = [size for size in (1000, 10000, 100000, 1000000) if smallest <= size <= largest]
        rounds = []
        for _ in range(3):
            lines = bench.program("control_growth", str(nodes), *map(str, sizes)).splitlines()
            rounds.append([float(line.split()[1]) for line in lines])
        medians = [median(column) for column in zip(*rounds)]
        ratio = max(medians) / medians[0]
        shown = ", ".join(f"{size:,}: {cost:.1f}" for size, cost in zip(sizes, medians))
        bench.row(f"growth, control plane alone, {nodes} nodes", f"us CPU a task {shown}", "flat within 20 %", ratio, ratio <= 1.2,
                  per_task_us=dict(zip(map(str, sizes), medians)))
