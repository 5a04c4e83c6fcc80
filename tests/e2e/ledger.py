"""What tasks write of themselves, and nodes that join as those of other machines do: for tests of leases and the torture run."""

import contextlib
import os
import random
import shutil
import signal
import subprocess

from harness import SLIPWAY, processes_of, shell, wait_until

NOBODY = "02:00:00:00:00:01"


class Ledger:
    """A line each 20 ms with the time, the attempt and the node. Two attempts overlap where a line of an earlier one is
    younger than the first of a later one."""

    def __init__(self, path):
        self.path = path

    def task(self, lines=0, last=":", daemon=False, **more):
        """Writes until it is stopped, or so many lines; then does `last`, writes one line with `done` and exits with 0.
        With `daemon` a process in a session of its own, which nobody waits for, writes as well."""
        end = f'i=$((i+1)); [ $i -lt {lines} ] || {{ {last}; echo "$(date +%s%N) $SLIPWAY_ATTEMPT $SLIPWAY_NODE done" >> {self.path}; exit 0; }}'
        line = f'echo "$(date +%s%N) $SLIPWAY_ATTEMPT $SLIPWAY_NODE" >> {self.path}'
        start = f"setsid sh -c 'while :; do {line}; sleep 0.02; done' & " if daemon else ""
        command = (f'{start}i=0; while :; do {line}; sleep 0.02; '
                   f'{end if lines else ":"}; done')
        return shell("one", command, **more)

    def rows(self):
        try:
            with open(self.path) as file:
                return [row for row in map(str.split, file.read().splitlines()) if len(row) >= 3]
        except FileNotFoundError:
            return []

    def lines(self):
        return [(int(row[0]) / 1e9, int(row[1]), row[2]) for row in self.rows()]

    def done(self):
        return [int(row[1]) for row in self.rows() if row[-1] == "done"]

    def attempts(self):
        return sorted({attempt for _, attempt, _ in self.lines()})

    def overlap(self):
        """Seconds in which two attempts wrote; 0 or less where none did."""
        lines, worst = self.lines(), 0.0
        for attempt in self.attempts()[1:]:
            first = min(when for when, of, _ in lines if of == attempt)
            worst = max(worst, max((when for when, of, _ in lines if of < attempt), default=0) - first)
        return worst


class FarNode:
    """An agent that joins a pool of the service, with a folder of its own."""

    def __init__(self, service, name, pool="far", prefix=(), address=None):
        self.service, self.name = service, name
        self.folder = os.path.join(service.base, "far", name)
        os.makedirs(self.folder)
        token = os.path.join(service.base, "join.token")
        if not os.path.exists(token):
            service.ok("token", "create", "joiner", "--role", "node", "--uses", 100, "--to", token)
        url = f"http://{address}:{service.port}" if address else service.url
        self.command = [*prefix, SLIPWAY, "node", "run", "--service", url, "--token-file", token, "--pool", pool, "--name", name,
                        "--folder", self.folder, "--cores", "1"]
        self.start()

    def start(self):
        with open(os.path.join(self.folder, "out"), "ab") as log:
            self.child = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", env=self.service.environment())

    def agent(self):
        return self.service.pid_in(os.path.join(self.folder, "agent.lock"))

    def keeper(self):
        return self.service.pid_in(os.path.join(self.folder, "keeper.lock"))

    def stop(self):
        """Agent, keeper and guard at once: each would start the others again."""

        def gone():
            left = processes_of(self.folder)
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.child.poll()
            return not left

        wait_until(gone, what=f"the end of node {self.name}")
        self.child.wait()


def own_storage(case, service):
    """The prefix of a FarNode that does not see the service's data folder."""
    hide = f'mount -t tmpfs none {service.data} && exec "$@"'
    if subprocess.run(["unshare", "-m", "sh", "-c", hide, "sh", "true"], capture_output=True).returncode != 0:
        case.skipTest("no mount namespaces here")
    return ["unshare", "-m", "sh", "-c", hide, "sh"]


class Link:
    """A network namespace with a link to this one that can be cut, in one direction or in both."""

    def __init__(self):
        number = random.randrange(1, 60000)
        self.space, self.here, there = f"slw{number}", f"sa{number}", f"sb{number}"
        net = f"10.{77 + number % 50}.{number // 250 % 250}"
        self.address, self.other = f"{net}.1", f"{net}.2"
        self.there = there
        self.prefix = ["ip", "netns", "exec", self.space]
        self.problem = "" if os.geteuid() == 0 and shutil.which("ip") else "needs root and ip to make a network namespace"
        for step in (
            f"ip netns add {self.space}", f"ip link add {self.here} type veth peer name {there}", f"ip link set {there} netns {self.space}",
            f"ip addr add {net}.1/24 dev {self.here}", f"ip link set {self.here} up", f"ip -n {self.space} addr add {net}.2/24 dev {there}",
            f"ip -n {self.space} link set {there} up", f"ip -n {self.space} link set lo up",
        ):
            if not self.problem:
                done = subprocess.run(step.split(), capture_output=True, text=True)
                if done.returncode != 0:
                    self.problem = f"network namespaces are not permitted here: {step}: {done.stderr.strip()}"

    def cut(self):
        subprocess.run(["ip", "link", "set", self.here, "down"], check=True)

    # One way: what is sent goes to a hardware address that nobody has.
    def cut_to(self):
        subprocess.run(["ip", "neigh", "replace", self.other, "lladdr", NOBODY, "dev", self.here, "nud", "permanent"], check=True)

    def cut_from(self):
        subprocess.run(["ip", "-n", self.space, "neigh", "replace", self.address, "lladdr", NOBODY, "dev", self.there, "nud", "permanent"], check=True)

    def mend(self):
        subprocess.run(["ip", "neigh", "del", self.other, "dev", self.here], capture_output=True)
        subprocess.run(["ip", "-n", self.space, "neigh", "del", self.address, "dev", self.there], capture_output=True)
        subprocess.run(["ip", "link", "set", self.here, "up"], check=True)

    def remove(self):
        subprocess.run(["ip", "netns", "del", self.space], capture_output=True)
        subprocess.run(["ip", "link", "del", self.here], capture_output=True)
