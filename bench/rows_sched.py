"""What placing costs: the shipped scheduler over made-up pools, without a service around it."""
from statistics import median


def sched(bench):
    tasks = 100 if bench.quick else 1000
    size = "10,000 nodes, 1,000 jobs"
    for name, mode, owed in (("placing", "plain", 500_000), ("placing, shared", "shared", 500_000)):
        speeds, sizes = [], []
        for _ in range(3):
            placed, took, resident = run(bench, "throughput", 10_000, tasks, 32, mode)
            speeds.append(placed / took)
            sizes.append(resident)
        speed = median(speeds)
        bench.row(name, f"{speed:,.0f} decisions/s; {size}, {tasks} tasks each", f"at least {owed:,}/s", speed / owed,
                  speed >= owed, speeds=speeds)
        resident = max(sizes)
        bench.row(f"{name}, memory", f"{resident:.0f} MiB", "at most 600 MB", resident / 572, resident <= 572, mib=sizes)
    for name, mode in (("next placement", "plain"), ("next placement, shared", "shared")):
        rounds = [run(bench, "completion", 10_000, tasks, 32, mode) for _ in range(3)]
        middle, slow = median(one[1] for one in rounds), median(one[2] for one in rounds)
        bench.row(name, f"p50 {middle:.1f} us, p99 {slow:.1f} us after one task ended", "p99 at most 100 us", slow / 100,
                  slow <= 100, rounds=rounds)
    growth(bench)


def growth(bench):
    """The same gangs on every size, so that a decision is the same work; more tasks than even the largest pool takes at once."""
    nodes = (100, 1_000, 10_000, 100_000)
    for mode in ("plain", "shared"):
        speeds = {}
        for _ in range(1 if bench.quick else 3):
            for count in nodes:
                placed, took, _resident = run(bench, "throughput", count, 1000, 8, mode)
                speeds.setdefault(count, []).append(placed / took)
        medians = [median(speeds[count]) for count in nodes]
        ratio = medians[0] / min(medians)  # how much slower than on the smallest
        shown = ", ".join(f"{speed / 1000:,.0f}" for speed in medians)
        bench.row(f"placing, growth, {mode}", f"{shown} k/s with 100, 1k, 10k, 100k nodes", "at most 2 x slower", ratio, ratio <= 2,
                  speeds=speeds)


def run(bench, what, nodes, tasks, gang_max, mode):
    return [float(word) for word in bench.program("sched", what, str(nodes), "1000", str(tasks), str(gang_max), mode).split()]
