#!/usr/bin/env python3
"""Measures the trainer beside its peers: interleaved rounds, medians, ratios as a table and as JSON.

usage: run.py BUILD_FOLDER [--rounds 5] [--only WORD] [--no-install] [--json FILE] [--tensorflow] [--pytorch] [--long]
Peers come from Debian (libtorch-dev, libgloo-dev, openmpi, gRPC; python3-torch with --pytorch) and PyPI (TensorFlow, with
--tensorflow). What cannot be had is skipped with a line that says so. --long adds the time to 99 % on MNIST (half a minute and more)."""
import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--only", default="")
parser.add_argument("--no-install", action="store_true")
parser.add_argument("--json", default="")
parser.add_argument("--tensorflow", action="store_true")
parser.add_argument("--pytorch", action="store_true")
parser.add_argument("--long", action="store_true")
options = parser.parse_args()

build = os.path.abspath(options.build)
ours = f"{build}/bin/slipway-train-bench"
program = f"{build}/bin/slipway-train"
peers = f"{build}/bench-peers"
# One thread and no spinning for everyone, or the peers look far worse than they are.
environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", OMP_WAIT_POLICY="passive")
rows = []


def say(text):
    print(text, flush=True)


def run(command, timeout=300):
    """The last line of output as JSON, or None."""
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError, OSError) as error:
        say(f"  failed: {' '.join(command)}: {error}")
        return None


def prepare():
    subprocess.run(["ninja", "-C", build, "slipway-train", "slipway-train-bench"], check=True, stdout=subprocess.DEVNULL)
    if not options.no_install and shutil.which("apt-get") and os.geteuid() == 0:
        for package in ("python3-torch" if options.pytorch else "", "libtorch-dev libopenblas-dev", "libgloo-dev", "libopenmpi-dev openmpi-bin",
                        "libgrpc++-dev protobuf-compiler protobuf-compiler-grpc"):
            subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *package.split()],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(f"{build}/bench-peers.log", "w") as log:
        subprocess.run(["cmake", "-S", f"{here}/peers", "-B", peers, "-G", "Ninja"], stdout=log, stderr=log)
        subprocess.run(["ninja", "-C", peers, "-k", "0"], stdout=log, stderr=log)
    return {name: os.path.exists(f"{peers}/peer_{name}") for name in ("torch", "mpi", "gloo", "grpc")}


def tensorflow_python():
    """The interpreter that has TensorFlow, or None."""
    if not options.tensorflow:
        return None
    python = f"{build}/bench-tensorflow/bin/python"
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", os.path.dirname(os.path.dirname(python))], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "tensorflow-cpu"], check=False)
    return python


def pytorch_python():
    python = "/usr/bin/python3"  # Debian's own: that is where its packages are found
    found = options.pytorch and subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0
    return python if found else None


def compare(what, owed, mine, theirs, key, larger_is_better):
    """Rounds of mine and theirs in turn; ratio above 1 means we are better. `theirs` None: no such peer here."""
    if options.only and options.only not in what:
        return
    if theirs is None:
        say(f"{what}: skipped, the peer is not installed")
        rows.append({"what": what, "owed": owed, "skipped": True})
        return
    a, b = [], []
    for _ in range(options.rounds):
        x, y = run(mine), run(theirs)
        if x and y:
            a.append(x[key])
            b.append(y[key])
    if not a:
        rows.append({"what": what, "owed": owed, "skipped": True})
        return
    ratios = [p / q if larger_is_better else q / p for p, q in zip(a, b)]
    row = {"what": what, "owed": owed, "ours": statistics.median(a), "peer": statistics.median(b),
           "ratio": round(statistics.median(ratios), 2), "spread": [round(min(ratios), 2), round(max(ratios), 2)]}
    rows.append(row)
    say(f"{what}: ours {row['ours']:.4g}, peer {row['peer']:.4g} ({key}), ratio {row['ratio']}")


def alone(what, owed, measure, unit):
    if options.only and options.only not in what:
        return
    values = [v for v in (measure() for _ in range(options.rounds)) if v is not None]
    if not values:
        return
    rows.append({"what": what, "owed": owed, "ours": round(statistics.median(values), 3), "unit": unit,
                 "spread": [round(min(values), 3), round(max(values), 3)]})
    say(f"{what}: {statistics.median(values):.4g} {unit} ({min(values):.4g} to {max(values):.4g})")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def ranks(count, arguments, timeout=600):
    """Samples per second and training seconds of an all-reduce run."""
    port = free_ports(1)[0]
    children = []
    for rank in range(count):
        env = dict(environment, RANK=str(rank), WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        children.append(subprocess.Popen([program, "--metrics", "json", *arguments], env=env, text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
    out = [child.communicate(timeout=timeout)[0] for child in children][0]
    return [json.loads(line) for line in out.splitlines() if '"event":"done"' in line][-1]


def tensorflow_rate(python, mode):
    p = free_ports(3)
    command = [python, f"{here}/tensorflow_ps.py"]
    tail = ["8", mode, str(p[0]), f"{p[1]},{p[2]}"]
    others = [subprocess.Popen([*command, "ps", "0", *tail], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
              subprocess.Popen([*command, "worker", "1", *tail], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)]
    result = run([*command, "worker", "0", *tail], timeout=180)
    for child in others:
        child.kill()
        child.wait()
    return result and result["samples_per_s"]


def first_step():
    """Milliseconds from exec until one step is done and the process gone; the test set is a hundred samples."""
    begin = time.perf_counter()
    subprocess.run([program, "--data", f"{plain_data}/few", "--steps", "1"], stdout=subprocess.DEVNULL, env=environment, check=True)
    return (time.perf_counter() - begin) * 1e3


def resident():
    """MB resident before data: the program that only prints its version maps and starts everything it links."""
    code = "import os,sys,resource; os.spawnv(os.P_WAIT, sys.argv[1], [sys.argv[1], '--version']); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    out = subprocess.run([sys.executable, "-c", code, program], capture_output=True, text=True, env=environment).stdout
    return int(out.split()[-1]) / 1024


def recovery():
    """Milliseconds from kill -9 of a worker until the run has done another step, its restart included."""
    with tempfile.TemporaryDirectory() as folder:
        p = free_ports(1)
        base = [program, "--ps_hosts", f"127.0.0.1:{p[0]}", "--worker_hosts", "127.0.0.1:1,127.0.0.1:1", "--data", plain_data,
                "--steps", "100000000", "--checkpoint-dir", folder, "--checkpoint-every", "1steps", "--output", f"{folder}/out"]
        start = lambda role, i: subprocess.Popen([*base, "--job_name", role, "--task_index", str(i)], env=environment,
                                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        newest = lambda: max((int(n[5:17]) for n in os.listdir(f"{folder}/ps-0") if n.endswith(".ckpt")), default=0) \
            if os.path.isdir(f"{folder}/ps-0") else 0
        children = [start("ps", 0), start("worker", 0), start("worker", 1)]
        try:
            wait_until(lambda: newest() > 50)
            children[2].send_signal(signal.SIGKILL)
            begin = time.perf_counter()
            children[2].wait()
            stuck = newest()
            children[2] = start("worker", 1)
            wait_until(lambda: newest() > stuck + 2)
            return (time.perf_counter() - begin) * 1e3
        finally:
            for child in children:
                child.kill()
                child.wait()


def wait_until(holds, seconds=30):
    limit = time.perf_counter() + seconds
    while not holds():
        if time.perf_counter() > limit:
            raise TimeoutError("the condition did not come about")
        time.sleep(0.001)


def write_plain_data(folder, source):
    """MNIST's files unpacked where they are at hand, else random ones of the same shape."""
    import gzip
    for half, count in (("train", 60000), ("t10k", 10000)):
        for kind, magic in (("images-idx3", 2051), ("labels-idx1", 2049)):
            packed = f"{source}/{half}-{kind}-ubyte.gz"
            if source and os.path.exists(packed):
                content = gzip.open(packed).read()
            else:
                sides = count.to_bytes(4, "big") + ((28).to_bytes(4, "big") * 2 if magic == 2051 else b"")
                body = bytes(count) if magic == 2049 else (bytes(600) + os.urandom(184)) * count
                content = magic.to_bytes(4, "big") + sides + body
            with open(f"{folder}/{half}-{kind}-ubyte", "wb") as file:
                file.write(content)
            # The same with a hundred test samples: a start should not be timed by its closing evaluation.
            os.makedirs(f"{folder}/few", exist_ok=True)
            if half == "train":
                os.symlink(f"{folder}/{half}-{kind}-ubyte", f"{folder}/few/{half}-{kind}-ubyte")
            else:
                header = 16 if magic == 2051 else 8
                each = 784 if magic == 2051 else 1
                with open(f"{folder}/few/{half}-{kind}-ubyte", "wb") as file:
                    file.write(content[:4] + (100).to_bytes(4, "big") + content[8:header] + content[header:header + 100 * each])


with tempfile.TemporaryDirectory() as temporary:
    have = prepare()
    source = os.environ.get("SLIPWAY_DATA", "") and os.environ["SLIPWAY_DATA"] + "/mnist"
    plain_data = temporary
    write_plain_data(plain_data, source)
    has_mnist = bool(source) and os.path.isdir(source)
    mpirun = ["mpirun", "--allow-run-as-root", "-np", "2", "--mca", "pml", "ob1", "--mca", "btl", "self,vader",
              "--mca", "mpi_yield_when_idle", "1", "--oversubscribe", f"{peers}/peer_mpi"]
    peer = lambda name, *words: [f"{peers}/peer_{name}", *words] if have[name] else None

    compare("MLP b100, one worker / libtorch", ">= 3", [ours, "step", "mlp", "100", "1"], peer("torch", "mlp", "100", "1"), "samples_per_s", True)
    for name, python, script in (("PyTorch", pytorch_python(), "pytorch_mlp.py"), ("TensorFlow", tensorflow_python(), "tensorflow_mlp.py")):
        compare(f"MLP b100, one worker / {name}", ">= 4", [ours, "step", "mlp", "100", "1"], python and [python, f"{here}/{script}", "3"], "samples_per_s", True)
    compare("LeNet b100 / libtorch", ">= 1.4", [ours, "step", "lenet", "100", "2"], peer("torch", "lenet", "100", "2"), "samples_per_s", True)
    compare("VGG b128 / libtorch", ">= 2", [ours, "step", "vgg", "128", "4"], peer("torch", "vgg", "128", "4"), "samples_per_s", True)
    compare("VGG b128 / libtorch channels last", ">= 1.6", [ours, "step", "vgg", "128", "4"], peer("torch", "vgg", "128", "4", "channels_last"), "samples_per_s", True)
    compare("parameter server 80k / gRPC", ">= 4", [ours, "push", "80000"], peer("grpc", "80000"), "us", False)
    for size, name in (("80000", "80k"), ("10000000", "10M")):
        compare(f"all-reduce shared memory {name} / Open MPI", ">= 3", [ours, "reduce", "shm", size], [*mpirun, size] if have["mpi"] else None, "us", False)
    for size, name, owed in (("80000", "80k", ">= 2"), ("10000000", "10M", ">= 1")):
        gloo = None
        if have["gloo"]:
            gloo = ["sh", "-c", f'd=$(mktemp -d) && {peers}/peer_gloo {size} "$d"; rm -rf "$d"']
        compare(f"all-reduce TCP {name} / Gloo", owed, [ours, "reduce", "tcp", size], gloo, "us", False)

    # What encryption between hosts costs: the same exchange without and with it, on loopback, where nothing hides it.
    for size, name in (("80000", "80k"), ("10000000", "10M")):
        compare(f"all-reduce TCP {name}, encrypted / plain", "", [ours, "reduce", "encrypted", size], [ours, "reduce", "tcp", size], "us", False)
    compare("parameter server 80k, encrypted / plain", "", [ours, "push", "80000", "encrypted"], [ours, "push", "80000"], "us", False)

    data = ["--data", plain_data]
    alone("MLP, 2 workers / 1 worker", ">= 1.6", lambda: ranks(2, [*data, "--epochs", "30"])["samples_per_s"] / ranks(1, [*data, "--epochs", "30"])["samples_per_s"], "times")
    if options.tensorflow and (not options.only or options.only in "TensorFlow"):
        python = tensorflow_python()
        for mode in ("async", "sync"):
            mine, theirs = ranks(2, [*data, "--epochs", "30"])["samples_per_s"], tensorflow_rate(python, mode)
            if theirs:
                rows.append({"what": f"MLP, 2 workers / TensorFlow 1 ps + 2 workers {mode}", "owed": ">= 15", "ours": round(mine),
                             "peer": theirs, "ratio": round(mine / theirs, 1)})
                say(f"TensorFlow {mode}: {theirs} samples/s, ours {mine:.0f}, ratio {mine / theirs:.1f}")
    if has_mnist:
        alone("MNIST to 97.5 % on 2 workers", "<= 1.5 s", lambda: ranks(2, [*data, "--batch-size", "50", "--learning-rate", "2", "--epochs", "20", "--until", "accuracy=0.975"])["seconds"], "s")
        if options.long:
            alone("MNIST to 99 % on 2 workers", "<= 30 s", lambda: ranks(2, [*data, "--model", "cnn", "--batch-size", "25", "--epochs", "3", "--until", "accuracy=0.99"])["seconds"], "s")
    else:
        say("time to accuracy: skipped, SLIPWAY_DATA names no folder with mnist/")
    alone("exec to first step (and exit)", "<= 50 ms", first_step, "ms")
    alone("memory before data", "<= 20 MB", resident, "MB")
    for key, what, owed in (("durable_ms", "durable checkpoint of 10M", "<= 60 ms"), ("stall_ms", "stall of training meanwhile", "<= 5 ms")):
        alone(what, owed, lambda key=key: (run([ours, "checkpoint", "10000000"]) or {}).get(key), "ms")
    alone("kill -9 a worker, training again", "<= 500 ms", recovery, "ms")

say("\n| what | owed | measured | ratio (spread) |\n|---|---|---|---|")
for row in rows:
    if row.get("skipped"):
        say(f"| {row['what']} | {row['owed']} | not here | |")
    elif "ratio" in row:
        spread = f" ({row['spread'][0]} to {row['spread'][1]})" if "spread" in row else ""
        say(f"| {row['what']} | {row['owed']} | {row['ours']:.6g} against {row['peer']:.6g} | {row['ratio']}{spread} |")
    else:
        say(f"| {row['what']} | {row['owed']} | {row['ours']:.4g} {row['unit']} ({row['spread'][0]:.4g} to {row['spread'][1]:.4g}) | |")
text = json.dumps({"rows": rows, "load": os.getloadavg()}, indent=1)
if options.json:
    with open(options.json, "w") as file:
        file.write(text + "\n")
else:
    say(text)
