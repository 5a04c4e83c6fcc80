#!/usr/bin/python3
"""Runs a toolkit's job file without Slipway: its processes on this machine, with the variables Slipway gives them.

    tests/frameworks/by_hand.py examples/toolkits/torch-ddp.yaml
    tests/frameworks/by_hand.py examples/toolkits/tensorflow-ps.yaml --python tensorflow --kill worker/1 --when 'step [4-9]..' -- --sync_replicas

For working on an example's script; the tests run through Slipway. A gang ends as one here too: where one process
ends badly the rest are ended, and while there are retries all start again with the same checkpoints. Needs python3-yaml.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def free_port():
    """Free on every address: TensorFlow and PyTorch listen on all of them, whichever they are given."""
    with socket.create_server(("", 0)) as probe:
        return probe.getsockname()[1]


class Process:
    """One process of the gang: its name (role/index, or rank), where it would run, its command and its variables."""

    def __init__(self, name, host, command, **environment):
        self.name, self.host, self.command, self.environment = name, host, command, environment
        self.child = None


def of_roles(task, hosts):
    """TensorFlow: every process gets the whole cluster and its own index in it; an evaluator stands outside."""
    placed = [(role, index) for role, about in task["roles"].items() for index in range(about.get("count", 1))]
    places = {}
    cluster = {}
    for (role, index), host in zip(placed, hosts):
        places[role, index] = host
        if role != "evaluator":
            cluster.setdefault(role, []).append(f"{host}:{free_port()}")
    for (role, index), host in places.items():
        known = {"role": role, "index": str(index)}
        known.update({f"{role}_hosts": ",".join(members) for role, members in cluster.items()})
        command = [re.sub(r"\{(\w+)\}", lambda found: known[found[1]], word) for word in task["roles"][role]["command"]]
        config = {"cluster": cluster, "task": {"type": role, "index": index}, "environment": "cloud"}
        yield Process(f"{role}/{index}", host, command, TF_CONFIG=json.dumps(config))


def of_ranks(task, hosts, folder):
    """The others: processes_per_node processes on each node, in the order of their ranks."""
    toolkit, per_node, nodes = task.get("toolkit", "none"), task.get("processes_per_node", 1), task.get("nodes", 1)
    hosts, port = hosts[:nodes], free_port()
    if toolkit in ("mpi", "horovod"):
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", str(nodes * per_node)]
        yield Process("mpirun", hosts[0], mpirun + task["command"])
        return
    if task.get("launcher") == "torchrun":
        for node, host in enumerate(hosts):
            logs = os.path.join(folder, f"torchrun.{node}")
            torchrun = ["python3", "-m", "torch.distributed.run", "--nnodes", str(nodes), "--nproc_per_node", str(per_node)]
            torchrun += ["--node_rank", str(node), "--rdzv_id", "by_hand", "--rdzv_backend", "c10d"]
            torchrun += ["--rdzv_endpoint", f"{hosts[0]}:{port}", "--rdzv_conf", f"is_host={int(node == 0)}"]
            # PyTorch 1.13 under Python 3.11 cannot read "redirect nothing"; redirecting what is not there means the same.
            torchrun += ["--redirects", "9:1", "--tee", "9:1", "--log_dir", logs, "--max_restarts", "0"]
            yield Process(str(node), host, torchrun + task["command"][1:])
        return
    hostfile = os.path.join(folder, "hostfile")
    with open(hostfile, "w") as file:
        file.writelines(f"{host} slots={per_node}\n" for host in hosts)
    for rank in range(nodes * per_node):
        node, local = divmod(rank, per_node)
        torch = dict(RANK=rank, WORLD_SIZE=nodes * per_node, LOCAL_RANK=local, LOCAL_WORLD_SIZE=per_node)
        torch.update(NODE_RANK=node, GROUP_RANK=node, MASTER_ADDR=hosts[0], MASTER_PORT=port)
        jax = dict(JAX_COORDINATOR_ADDRESS=f"{hosts[0]}:{port}", JAX_NUM_PROCESSES=nodes * per_node, JAX_PROCESS_ID=rank)
        jax.update(JAX_COORDINATOR_BIND_ADDRESS=f"{hosts[0]}:{port}")
        given = {"torch": torch, "jax": jax, "hostfile": dict(torch, SLIPWAY_HOSTFILE=hostfile)}.get(toolkit, {})
        yield Process(str(rank), hosts[node], task["command"], **given)


def run_attempt(task, number, args, folder):
    """Starts the processes, shows what they say, and ends those that outlive the gang. Whether it ended well."""
    hosts = [f"127.64.0.{1 + node}" for node in range(16)]
    checkpoints = os.path.join(folder, task["name"] + ".checkpoints")
    os.makedirs(checkpoints, exist_ok=True)
    gang = list(of_roles(task, hosts) if "roles" in task else of_ranks(task, hosts, folder))
    deciding = [p for p in gang if "ends_with" not in task or p.name.split("/")[0] == task["ends_with"]]
    for process in gang:
        workdir = os.path.join(folder, f"{task['name']}.{number}", process.name.replace("/", "."))
        os.makedirs(workdir + ".outputs")
        os.makedirs(workdir)
        for name, source in task.get("files", {}).items():
            shutil.copy(os.path.join(os.path.dirname(args.job), source), os.path.join(workdir, name))
        environment = dict(os.environ, PYTHONUNBUFFERED="1", OMP_NUM_THREADS="1", SLIPWAY_ATTEMPT=str(number))
        environment.update(SLIPWAY_CHECKPOINT_DIR=checkpoints, SLIPWAY_OUTPUTS=workdir + ".outputs", SLIPWAY_SHARED=folder)
        environment.update({name: str(value) for name, value in task.get("environment", {}).items()})
        environment.update({name: str(value) for name, value in process.environment.items()})
        environment.update(variable.split("=", 1) for variable in args.environment)
        environment["PATH"] = os.path.dirname(args.python) + ":" + environment["PATH"]
        command = process.command if isinstance(process.command, list) else ["sh", "-c", process.command]
        process.child = subprocess.Popen(
            command + args.more, cwd=workdir, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )
        threading.Thread(target=show, args=(process, number, args), daemon=True).start()

    ended_well = None
    while ended_well is None:
        time.sleep(0.05)
        for process in gang:
            if process.child.poll():
                print(f"--- {process.name} ended with {process.child.returncode}", flush=True)
                ended_well = False
        if ended_well is None and all(process.child.poll() == 0 for process in deciding):
            ended_well = True
    end(gang)
    return ended_well


def show(process, attempt, args):
    for line in process.child.stdout:
        print(f"[{attempt} {process.name}] {line}", end="", flush=True)
        if attempt == 1 and args.when and process.name == args.kill and re.search(args.when, line):
            print(f"--- kill -9 {process.child.pid}: that was {process.name}", flush=True)
            process.child.kill()


def end(gang):
    for sig, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        for process in gang:
            if process.child.poll() is None:
                os.killpg(process.child.pid, sig)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and any(process.child.poll() is None for process in gang):
            time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", help="the job file; its last task is run after those before it")
    parser.add_argument("--python", default="/usr/bin/python3", help="a Python, or the name of an environment of tools/frameworks")
    parser.add_argument("--kill", help="the process to kill in the first attempt: role/index, or its rank")
    parser.add_argument("--when", help="it is killed when it has written a line with this regular expression")
    parser.add_argument("--environment", action="append", default=[], metavar="NAME=VALUE")
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)  # what follows it are more words for the command
    args = parser.parse_args(words[:split])
    args.more = words[split + 1 :]
    if "/" not in args.python:
        asked = [os.path.join(ROOT, "tools/frameworks"), "python", args.python]
        args.python = subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    with open(args.job) as file:
        tasks = yaml.safe_load(file)["tasks"]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="slipway-by-hand-") as folder:
        for task in tasks:
            for number in range(1, 2 + task.get("retries", 0)):
                if run_attempt(task, number, args, folder):
                    break
            else:
                sys.exit(f"{task['name']} failed after {time.monotonic() - started:.1f} s")
    print(f"--- ended well after {time.monotonic() - started:.1f} s", flush=True)


if __name__ == "__main__":
    main()
