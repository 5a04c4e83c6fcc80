"""What the machine did while something was measured, and what processes use."""
import os
import statistics
import time

TICKS = os.sysconf("SC_CLK_TCK")


def median(values):
    return statistics.median(values)


class Steal:
    """Share of CPU time that the hypervisor gave to others since the object was made."""

    def __init__(self):
        self.before = self.read()

    @staticmethod
    def read():
        with open("/proc/stat") as file:
            fields = [int(field) for field in file.readline().split()[1:]]
        return fields[7], sum(fields[:8]), fields[3] + fields[4]

    def percent(self):
        steal, total, _ = self.read()
        passed = total - self.before[1]
        return 100.0 * (steal - self.before[0]) / passed if passed > 0 else 0.0

    def idle_percent(self):
        _, total, idle = self.read()
        passed = total - self.before[1]
        return 100.0 * (idle - self.before[2]) / passed if passed > 0 else 0.0


def processes_of(folder):
    """Pids of the service, agents and keepers of a data folder, by their command lines."""
    found = {"service": [], "agents": [], "keepers": []}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        if not any(word == folder or word.startswith(folder + "/") for word in words):
            continue
        kind = "service" if "up" in words[1:2] else "keepers" if "keep" in words[1:3] else "agents"
        found[kind].append(int(name))
    return found


def resident(pid):
    """(resident, proportional) bytes: pages shared with other processes count whole, and by their share."""
    values = {}
    with open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            words = line.split()
            if words[0] in ("Rss:", "Pss:"):
                values[words[0]] = int(words[1]) * 1024
    return values["Rss:"], values["Pss:"]


def cpu_seconds(pid):
    """CPU time of all threads, in nanosecond steps where the kernel has them."""
    total = 0.0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                total += int(file.read().split()[0]) / 1e9
        except OSError:
            with open(f"/proc/{pid}/task/{thread}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def children_seconds(pid):
    """CPU time of the children a process has waited for."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / TICKS


class Use:
    """CPU time that a service, its agents, its keepers and their processes use from here on."""

    def __init__(self, folder):
        self.found = processes_of(folder)
        self.before = self.read()

    def read(self):
        used = {kind: sum(map(cpu_seconds, pids)) for kind, pids in self.found.items()}
        used["tasks"] = sum(map(children_seconds, self.found["keepers"]))
        return used

    def seconds(self):
        return {kind: value - self.before[kind] for kind, value in self.read().items()}


def settled_resident(pid, patience=10.0):
    """Resident bytes once they have stopped falling: a service gives memory back shortly after its use."""
    end = time.monotonic() + patience
    lowest, since = resident(pid)[0], time.monotonic()
    while time.monotonic() < end and time.monotonic() - since < 2.0:
        time.sleep(0.2)
        now = resident(pid)[0]
        if now < lowest:
            lowest, since = now, time.monotonic()
    return lowest
