"""What an autoscale formula costs the control thread."""
from statistics import median


def formula(bench):
    rounds = {}
    for _ in range(3):
        for line in bench.program("formula", "5000" if bench.quick else "20000").splitlines():
            name, _parse, evaluate = line.split()
            rounds.setdefault(name, []).append(float(evaluate))
    # The limits in microseconds: of a formula as people write them, and of whatever fits into the language's bounds.
    for name, what, limit in (("waiting_tasks", "formula, waiting tasks", 50), ("everything", "formula, long", 50),
                              ("worst", "formula, the dearest that fits", 10000)):
        took = median(rounds[name])
        bench.row(what, f"us CPU to evaluate {took:.1f}", f"at most {limit} us", took / limit, took <= limit, us=rounds[name])
