"""What a simulation of a large pool costs: time and memory of one `slipway sim run`."""
import json
import os
import subprocess
import tempfile
import time

from service import Failed

SCENARIO = """\
pools:
- {{name: lab, nodes: {nodes}, cores: 2, memory: 8GiB, start_up: {{uniform: [10s, 60s]}}, price: {{dedicated: 1}}}}
jobs:
- name: sweep
  user: ana
  every: 2s
  count: {sweeps}
  tasks:
  - {{name: t, count: 1000, duration: {{lognormal: [10m, 0.7]}}, fails: 0.01, retries: 3}}
- name: gang
  user: bob
  priority: 5
  every: 20s
  count: {gangs}
  tasks:
  - {{name: g, nodes: 8, cores: 2, duration: {{normal: [20m, 3m]}}}}
"""


def measured(bench, nodes, tasks):
    """(seconds, MiB, figures) of a simulation of so many nodes and tasks."""
    gangs = max(1, tasks // 10000)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", dir=bench.folders.root) as file:
        file.write(SCENARIO.format(nodes=nodes, sweeps=tasks // 1000, gangs=gangs))
        file.flush()
        begin = time.monotonic()
        with subprocess.Popen([bench.slipway, "sim", "run", file.name, "-o", "json"], stdout=subprocess.PIPE) as child:
            out = child.stdout.read()
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        took = time.monotonic() - begin
    if child.returncode != 0:
        raise Failed(f"sim run ended with {child.returncode}")
    figures = json.loads(out)
    if figures["tasks"]["succeeded"] + figures["tasks"]["failed"] != tasks // 1000 * 1000 + gangs:
        raise Failed(f"sim run lost tasks: {figures['tasks']}")
    return took, used.ru_maxrss / 1024, figures


def sim(bench):
    nodes, tasks, limit = (10_000, 100_000, 12) if bench.quick else (100_000, 1_000_000, 120)
    took, memory, figures = measured(bench, nodes, tasks)
    bench.row(f"sim, {nodes:,} nodes, {tasks:,} tasks", f"s {took:.1f}, {1e6 * took / figures['attempts']:.0f} us an attempt",
              f"at most {limit} s", took / limit, took <= limit, seconds=took, figures=figures)
    bench.row("sim, memory", f"MiB {memory:.0f}", "at most 2048 MiB", memory / 2048, memory <= 2048, mib=memory)
