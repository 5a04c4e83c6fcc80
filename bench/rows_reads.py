"""Clients that list jobs do not delay scheduling: submit to first instruction, quiet and beside sixteen listers."""
import multiprocessing
import os
import time

from machine import median
from service import Connection, Failed, Service

LISTERS = 16
PAGE = 1000


def list_jobs(port, token, stop, pages):
    """Reads the first page again and again, as a dashboard would; a reply of 503 is the service's bound at work."""
    connection = Connection(port, token)
    request = connection.bytes_of("GET", f"/v1/jobs?limit={PAGE}")
    while not stop.is_set():
        status, _ = connection.exchange(request)
        if status not in (200, 503):
            raise Failed(f"a page of jobs was answered with {status}")
        with pages.get_lock():
            pages.value += 1


def waits_of(service, program, count):
    request = service.api.bytes_of("POST", "/v1/jobs", {"pool": "lab", "tasks": [{"name": "t", "command": [program]}]})
    waits = []
    for _ in range(count):
        begin = time.time_ns()
        status, answer = service.api.exchange(request)
        if status != 201:
            raise Failed(answer.decode())
        job = answer.decode().split('"id":"', 1)[1].split('"', 1)[0]
        service.wait(job)
        waits.append((int(service.api.call("GET", f"/v1/jobs/{job}/tasks/t/logs")) - begin) / 1e6)
    return waits


def p99(values):
    return sorted(values)[int(0.99 * (len(values) - 1))]


def reads(bench):
    program = os.path.join(bench.programs, "first_instruction")
    rounds, count = (1, 50) if bench.quick else (3, 200)
    quiet, beside, pages = [], [], multiprocessing.Value("Q", 0)
    listed_for = 0.0
    with Service(bench.slipway, bench.folders.fresh()) as service:
        service.pool("lab", 1, 2)
        job = {"pool": "lab", "tasks": [{"name": "t", "command": ["true"]}]}
        for one in [service.submit(job) for _ in range(PAGE)]:
            service.wait(one)
        for _ in range(rounds):
            quiet += waits_of(service, program, count)
            stop = multiprocessing.Event()
            listers = [multiprocessing.Process(target=list_jobs, args=(service.port, service.api.token, stop, pages))
                       for _ in range(LISTERS)]
            begin = time.monotonic()
            for lister in listers:
                lister.start()
            try:
                beside += waits_of(service, program, count)
            finally:
                stop.set()
                for lister in listers:
                    lister.join()
            listed_for += time.monotonic() - begin
    if pages.value == 0:
        raise Failed("no page was listed meanwhile")
    rate = pages.value / listed_for
    for name, of, owed in (("p50", median, 3), ("p99", p99, 4)):
        ratio = of(beside) / of(quiet)
        bench.row(f"first instruction beside {LISTERS} listers, {name}",
                  f"{of(beside):.1f} ms, quiet {of(quiet):.1f} ms; {rate:.0f} pages/s", f"{owed} x quiet", ratio, ratio <= owed,
                  quiet_ms=sorted(quiet), beside_ms=sorted(beside), pages=pages.value)
