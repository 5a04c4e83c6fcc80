"""Stops, kills and cuts everything at random for some minutes and checks what the tasks wrote of themselves.

The disk of the service fills up, its clock jumps while it is down, the blob store that tasks write to goes away, links are
cut in one direction, and files of killed services, agents and keepers are damaged, cut or removed. Promised: two attempts of a task never run at the same time; every acknowledged job ends well, though its tasks have no
retries; the attempt that ended well is the one on record, and what it wrote is in the store.
usage: tools/torture MINUTES [--seed N]
"""

import argparse
import collections
import contextlib
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from harness import NeverHappened, Service, processes_of, wait_until
from ledger import FarNode, Ledger, Link
from test_blob_sync import KEY, Azurite

LEASE = 2.0
PAUSES = (1, 3, 8)  # seconds
LONG_CUT = 60  # seconds, in runs that take ten times as long
JOBS = 6  # at a time
SERVICE_FILES = ("slipway.db", "slipway.db-wal", "service.mark", "secret.key")
NODE_FILES = {"keeper": ("keeper.journal", "keeper.lock"), "agent": ("instance", "service.seen", "node-key", "agent.lock")}
FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)


class Torture:
    def __init__(self, seconds, seed, talk=print):
        self.seconds, self.seed, self.talk = seconds, seed, talk
        self.random = random.Random(seed)
        self.counts = collections.Counter()
        self.jobs = {}  # id → ledger
        self.open = set()  # not known to have ended
        self.pushed = {}  # id → what it writes into the container
        self.started = 0

    def run(self):
        self.talk(f"seed {self.seed}, {self.seconds:.0f} s")
        with contextlib.ExitStack() as stack:
            self.link = Link()
            stack.callback(self.link.remove)
            self.disk = self.small_disk(stack)
            self.s = s = stack.enter_context(
                Service(data=self.disk and self.disk + "/data", listen="0.0.0.0:0", arguments=["--insecure"]))
            if self.disk:
                s.also.append(self.disk)
            s.listen = f"0.0.0.0:{s.port}"  # where agents find it again
            s.ok("pool", "create", "lab", "--nodes", 2, "--cores-per-node", 1, "--overcommit", "--lease", f"{LEASE}s")
            s.ok("pool", "create", "far", "--provisioner", "none", "--lease", f"{LEASE}s")
            self.far = [FarNode(s, name) for name in ("n1", "n2")]
            if self.link.problem:
                self.talk(f"without cuts: {self.link.problem}")
            else:
                self.far.append(FarNode(s, "n3", prefix=self.link.prefix, address=self.link.address))
            for node in self.far:
                stack.callback(node.stop)
            self.store = self.blob_store(stack)
            s.wait_for_nodes(2, "lab")
            s.wait_for_nodes(len(self.far), "far")
            ends_at = time.monotonic() + self.seconds
            while time.monotonic() < ends_at:
                self.refill()
                self.hurt()
                self.check_overlaps()
            self.finish()
        return self.table()

    def small_disk(self, stack):
        """A folder that can be filled; none where mounting is not permitted."""
        folder = tempfile.mkdtemp(prefix="slipway-torture-")
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "none", folder], capture_output=True, text=True)
        if done.returncode != 0:
            self.talk(f"without full disks: {done.stderr.strip()}")
            return None
        stack.callback(subprocess.run, ["umount", "-l", folder], capture_output=True)
        return folder

    def blob_store(self, stack):
        """A container that some jobs write to; none where Azurite cannot be installed."""
        try:
            store = Azurite(self.s.base, host="127.0.0.1" if self.link.problem else self.link.address)  # n3 reaches it, too
        except unittest.SkipTest as reason:
            self.talk(f"without pushes: {reason}")
            return None
        stack.callback(store.stop)
        store.ask("PUT", "/data?restype=container")
        self.s.ok("datastore", "create", "lab.blob.data", "--url", store.url(), "--key-file", self.s.write("key", KEY))
        return store

    def refill(self):
        self.open = {job for job in self.open if self.s.job(job)["state"] in ("queued", "running")}
        while len(self.open) < JOBS:
            self.started += 1
            ledger = Ledger(os.path.join(self.s.base, f"ledger-{self.started}"))
            pool = self.random.choice(("lab", "far"))
            more = {}
            if self.store and self.random.random() < 0.3:
                more = {"mounts": [{"at": "d", "datastore": "lab.blob.data"}],
                        # The disk may be full just then.
                        "last": f"until echo $SLIPWAY_ATTEMPT > $SLIPWAY_MOUNTS/d/out-{self.started}; do sleep 0.1; done"}
            job = self.s.submit({"name": "torture", "pool": pool,
                                 "tasks": [ledger.task(lines=self.random.randrange(20, 200), daemon=self.random.random() < 0.3,
                                                       stop_grace=0, **more)]})
            self.jobs[job] = ledger
            if more:
                self.pushed[job] = f"out-{self.started}"
            self.open.add(job)

    # Faults, each mended before the next.

    def hurt(self):
        faults = [self.stop_process, self.stop_process, self.kill_process, self.kill_service, self.stop_service, self.evict_after_restart,
                  self.damage_service_file, self.damage_node_file]
        if not self.link.problem:
            faults += [self.cut_link, self.cut_link]
        if self.disk:
            faults.append(self.fill_disk)
        if self.store:
            faults.append(self.stop_store)
        if FAKETIME:
            faults.append(self.jump)
        self.random.choice(faults)()

    def pause(self, what, choices=PAUSES):
        seconds = self.random.choice(choices)
        self.counts[f"{what} for {seconds} s"] += 1
        time.sleep(seconds)  # how long the fault lasts, not a wait for something

    def some_process(self):
        s = self.s
        kind = self.random.choice(("agent", "keeper"))
        if self.random.random() < 0.4:
            node = self.random.choice(("lab-1", "lab-2"))
            return f"local {kind}", s.agent(node) if kind == "agent" else s.keeper(node)
        node = self.random.choice(self.far)
        return f"joined {kind}", node.agent() if kind == "agent" else node.keeper()

    def stop_process(self):
        what, pid = self.some_process()
        with contextlib.suppress(ProcessLookupError):
            if pid:
                os.kill(pid, signal.SIGSTOP)
                self.pause(f"{what} stopped")
                os.kill(pid, signal.SIGCONT)

    def kill_process(self):
        what, pid = self.some_process()
        if pid:
            self.counts[f"{what} killed"] += 1
            self.s.kill(pid)

    def kill_service(self):
        self.counts["service killed"] += 1
        self.s.kill_service()
        self.s.up()

    def stop_service(self):
        pid = self.s.pid
        os.kill(pid, signal.SIGSTOP)
        self.pause("service stopped")
        os.kill(pid, signal.SIGCONT)

    def evict_after_restart(self):
        self.kill_service()
        node = self.random.choice(("lab-1", "lab-2"))
        if self.s.run("node", "evict", node, "--notice", "0s").code == 0:
            self.counts["evicted before its agent was back"] += 1

    def cut_link(self):
        cut, what = self.random.choice(
            ((self.link.cut, "link cut"), (self.link.cut_to, "link to a node cut"), (self.link.cut_from, "link from a node cut")))
        cut()
        self.pause(what, (*PAUSES, LONG_CUT) if self.seconds >= 10 * LONG_CUT else PAUSES)
        self.link.mend()

    def fill_disk(self):
        filler = self.disk + "/filler"
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        self.pause("disk full")
        os.unlink(filler)
        wait_until(lambda: self.s.get("/v1/service")["degraded"] is None, what="it saves again")

    def stop_store(self):
        self.store.stop()
        self.pause("blob store gone")
        self.store.start()

    def jump(self):
        """The service is down while the clock is set; what continues is not notified."""
        hours = self.random.choice((-2, 2, 0))
        self.counts[f"clock jumped to {hours:+} h"] += 1
        self.s.kill_service()
        self.s.variables = {"LD_PRELOAD": FAKETIME, "FAKETIME": f"{3600 * hours:+}", "DONT_FAKE_MONOTONIC": "1"} if hours else {}
        try:
            self.s.up()
        finally:
            self.s.variables = {}  # of the commands of this test

    def damage(self, path):
        """How the file was damaged, or nothing where there is none."""
        try:
            with open(path, "rb") as file:
                content = bytearray(file.read())
        except FileNotFoundError:
            return None
        how = self.random.choice(("flipped", "cut", "removed"))
        if how == "removed" or not content:
            os.unlink(path)
            return "removed"
        # What SQLite reads of a page has no checksum: of the database, damage that it can see.
        at = self.random.randrange(min(len(content), 100) if path.endswith(".db") else len(content))
        if how == "flipped":
            content[at] ^= 1 << self.random.randrange(8)
        with open(path, "r+b") as file:
            file.write(content)
            if how == "cut":
                file.truncate(at)
        return how

    def damage_service_file(self):
        """A service that starts all the same has everything it acknowledged; one that refuses does so again until the file is back."""
        path = os.path.join(self.s.data, self.random.choice(SERVICE_FILES))
        self.s.kill_service()
        folder = tempfile.mkdtemp(dir=self.s.base)  # the whole state, as a killed service leaves it
        for name in SERVICE_FILES:
            with contextlib.suppress(FileNotFoundError):
                shutil.copy2(os.path.join(self.s.data, name), folder)
        how = self.damage(path)
        if how is None:
            return self.s.up()
        what = f"{os.path.basename(path)} {how}"
        refusal = self.s.run("up", "--listen", self.s.listen, "--detach", "--datastore-root", self.s.base, *self.s.arguments)
        if refusal.code != 0:
            if not refusal.err.startswith("error: "):
                raise AssertionError(f"{what}: {refusal!r}, seed {self.seed}")
            self.counts[f"{what}: refused"] += 1
            for name in SERVICE_FILES:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.s.data, name))
                with contextlib.suppress(FileNotFoundError):
                    shutil.copy2(os.path.join(folder, name), self.s.data)
            self.s.up()
        else:
            self.counts[f"{what}: nothing lost"] += 1
        for job in self.jobs:
            self.s.job(job)

    def damage_node_file(self):
        """A node that does not come back is given its file again; its tasks have gone elsewhere meanwhile."""
        kind = self.random.choice(("agent", "keeper"))
        name = self.random.choice(NODE_FILES[kind])
        node = self.random.choice(self.far)
        path, pid = os.path.join(node.folder, name), node.agent() if kind == "agent" else node.keeper()
        if not pid or not os.path.exists(path):
            return
        with open(path, "rb") as file:
            content = file.read()
        how = self.damage(path)
        self.s.kill(pid)
        what = f"{name} of a node {how}"
        connected = lambda: self.s.get(f"/v1/nodes/{node.name}")["state"] in ("idle", "busy", "draining")
        try:
            wait_until(lambda: not connected(), 3, what="it is gone")
        except NeverHappened:
            pass  # it was back before that was seen
        try:
            wait_until(connected, 4 * LEASE, what=f"{node.name} is back")
            self.counts[f"{what}: back"] += 1
        except NeverHappened:
            self.counts[f"{what}: refused"] += 1
            node.stop()
            with open(path, "wb") as file:
                file.write(content)
            node.start()
            wait_until(connected, what=f"{node.name} is back, seed {self.seed}")

    # Checks.

    def check_overlaps(self):
        for job, ledger in self.jobs.items():
            if ledger.overlap() > 0:
                raise AssertionError(f"{job}: two attempts ran at once for {ledger.overlap():.3f} s: {ledger.path}, seed {self.seed}")

    def finish(self):
        try:
            wait_until(lambda: not self.refill_nothing(), 120, what="every job ends")
        except NeverHappened:
            self.describe_open_jobs()
            raise
        self.check_overlaps()
        for job, ledger in self.jobs.items():
            task = self.s.task(job, "one")
            if task["state"] != "succeeded":
                raise AssertionError(f"{job} {task['state']}: {task['reason']}")
            if task["attempts"] not in ledger.done():
                raise AssertionError(f"{job}: attempt {task['attempts']} is on record, {ledger.done()} wrote their last line")
            self.counts["attempts"] += task["attempts"]
        if self.store:
            for job, name in self.pushed.items():
                said = self.store.ask("GET", f"/data/{name}").decode().split()
                if said != [str(self.s.task(job, "one")["attempts"])]:
                    raise AssertionError(f"{job}: attempt {said} is in the store as {name}, another on record")
            self.counts["outputs sent"] = len(self.pushed)

    def describe_open_jobs(self):
        for job in self.open:
            self.talk(f"{job} has not ended; writes into the container: {job in self.pushed}")
            self.talk(self.s.run("job", "why", job))
            self.talk(self.s.run("job", "show", job, "-o", "json"))
            self.talk(self.s.run("task", "show", f"{job}/one", "-o", "json"))
        self.talk(self.s.run("node", "list"))
        for pid, command in processes_of(self.s.base, *self.s.also).items():
            with open(f"/proc/{pid}/wchan") as file:
                self.talk(f"{pid} {file.read()} {command}")

    def refill_nothing(self):
        self.open = {job for job in self.open if self.s.job(job)["state"] in ("queued", "running")}
        return self.open

    def table(self):
        rows = [("jobs", len(self.jobs)), ("overlaps", 0), *sorted(self.counts.items())]
        return "\n".join(f"{name:40} {count:6}" for name, count in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", type=float)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    options = parser.parse_args()
    print(Torture(60 * options.minutes, options.seed).run())


if __name__ == "__main__":
    sys.exit(main())
