"""A Slurm of one node, for as long as the bench needs it. Loopback only, everything in one folder.

The node claims 64 cores: with two it waits for its own scheduler most of the time, and would look worse than it is.
"""
import contextlib
import os
import shutil
import socket
import subprocess
import time

from service import Failed

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo")
FOLDERS_OF_DAEMONS = "/usr/sbin:/usr/local/sbin"


def find(program):
    return shutil.which(program, path=os.environ["PATH"] + ":" + FOLDERS_OF_DAEMONS)


def is_installed():
    return all(find(program) for program in PROGRAMS)


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Slurm:
    def __init__(self, folder):
        self.folder = folder
        self.children = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, program, *arguments):
        with open(self.path(program + ".out"), "wb") as out:
            self.children.append(subprocess.Popen([find(program), *arguments], stdout=out, stderr=out, env=self.environment))

    def __enter__(self):
        control, node = free_ports(2)
        host = socket.gethostname()
        for name in ("state", "spool"):
            os.mkdir(self.path(name))
        os.chmod(self.folder, 0o755)
        with open(self.path("munge.key"), "wb") as key:
            key.write(os.urandom(1024))
        os.chmod(self.path("munge.key"), 0o400)
        with open(self.path("slurm.conf"), "w", encoding="utf8") as conf:
            conf.write(
                f"""ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={control}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={self.path("munge.socket")}
StateSaveLocation={self.path("state")}
SlurmdSpoolDir={self.path("spool")}
SlurmctldPidFile={self.path("slurmctld.pid")}
SlurmdPidFile={self.path("slurmd.pid")}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
MailProg=/bin/true
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs=64 RealMemory=1000
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
            )
        self.environment = dict(os.environ, SLURM_CONF=self.path("slurm.conf"))
        try:
            self.start("munged", "--foreground", "--force", "--key-file", self.path("munge.key"), "--socket", self.path("munge.socket"),
                       "--pid-file", self.path("munged.pid"), "--log-file", self.path("munged.log"), "--seed-file", self.path("munged.seed"))
            self.wait_for(lambda: os.path.exists(self.path("munge.socket")), "munged")
            self.start("slurmctld", "-D", "-f", self.path("slurm.conf"))
            self.start("slurmd", "-D", "-f", self.path("slurm.conf"))
            self.wait_for(self.is_idle, "its node")
        except Failed:
            self.__exit__()
            raise
        return self

    def is_idle(self):
        listed = subprocess.run([find("sinfo"), "-h", "-o", "%T"], capture_output=True, text=True, env=self.environment, check=False)
        return listed.stdout.strip() == "idle"

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 30
        while not condition():
            if time.monotonic() > deadline:
                raise Failed(f"Slurm did not come up: {what} is not there after 30 s (see {self.folder})")
            time.sleep(0.05)

    def array_seconds(self, count):
        begin = time.monotonic()
        subprocess.run([find("sbatch"), "--wait", "--array", f"0-{count - 1}", "--output", "/dev/null", "--wrap", "true"], cwd=self.folder,
                       check=True, capture_output=True, timeout=600, env=self.environment)
        return time.monotonic() - begin

    def step_seconds(self, tasks, rounds=5):
        """Of one `srun -n TASKS true`, the shortest of some."""
        took = []
        for _ in range(rounds):
            begin = time.monotonic()
            subprocess.run([find("srun"), "-n", str(tasks), "true"], cwd=self.folder, check=True, capture_output=True, timeout=60,
                           env=self.environment)
            took.append(time.monotonic() - begin)
        return min(took)

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.terminate()
        for child in reversed(self.children):
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
