"""What security costs: TLS beside plain connections, the table of rules, the audit log."""
import contextlib
import multiprocessing
import os
import socket
import subprocess
import time

from machine import cpu_seconds, median
from service import Connection, Failed, Service

JOB = {"pool": "lab", "tasks": [{"name": "t", "command": ["true"]}]}


def security(bench):
    durable_submit(bench)
    tasks(bench)
    authorize(bench)
    audit(bench)
    floods(bench)


def submit_us(connection, request):
    begin = time.perf_counter()
    status, answer = connection.exchange(request)
    took = (time.perf_counter() - begin) * 1e6
    if status != 201:
        raise Failed(answer.decode())
    return took


def durable_submit(bench):
    plain, encrypted = [], []
    with Service(bench.slipway, bench.folders.fresh()) as one, Service(bench.slipway, bench.folders.fresh(), tls=True) as other:
        requests = []
        for service in (one, other):
            service.drained_pool("lab")
            requests.append(service.api.bytes_of("POST", "/v1/jobs", JOB))
        for _ in range(200 if bench.quick else 1000):
            plain.append(submit_us(one.api, requests[0]))
            encrypted.append(submit_us(other.api, requests[1]))
    p50, limit = median(encrypted), median(plain)
    bench.row("durable submit over TLS, p50", f"{p50:,.0f} us", f"1.3 x plain {limit:,.0f} us", p50 / limit, p50 <= 1.3 * limit,
              tls_us=sorted(encrypted), plain_us=sorted(plain))


class Joined:
    """An agent that joins as those of other machines do: by a token, sending its files over the connection."""

    def __init__(self, service, name, cores):
        service.api.call("POST", "/v1/pools", {"name": "lab", "provisioner": "none", "nodes": 0})
        token = service.api.call("POST", "/v1/tokens", {"name": name, "role": "node"})["token"]
        folder = os.path.join(os.path.dirname(service.data), "joined")
        os.mkdir(folder)
        token_file = os.path.join(folder, "token")
        with open(os.open(token_file, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(token)
        self.folder = folder
        self.process = subprocess.Popen(
            [service.binary, "node", "run", "--service", service.url, "--token-file", token_file, "--name", name, "--folder",
             os.path.join(folder, "node"), "--pool", "lab", "--cores", str(cores)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(1000):
            if any(node["state"] == "idle" for node in service.api.call("GET", "/v1/nodes?pool=lab")["items"]):
                return
            time.sleep(0.01)
        raise Failed(f"node {name} did not join")

    def end(self):
        self.process.terminate()
        self.process.wait()


def tasks(bench):
    count, rounds = (2000, 3) if bench.quick else (10000, 5)
    rates, ratios = {"plain": [], "tls": []}, []
    with Service(bench.slipway, bench.folders.fresh()) as one, Service(bench.slipway, bench.folders.fresh(), tls=True) as other:
        nodes = [Joined(service, "n1", 2) for service in (one, other)]
        try:
            one.run_array("lab", count // 10, ["true"])
            other.run_array("lab", count // 10, ["true"])
            for number in range(rounds):
                # Who goes first takes turns, too: deletes and write-back of one round fall into the next.
                order = (("plain", one), ("tls", other))
                for name, service in order if number % 2 == 0 else order[::-1]:
                    rates[name].append(count / service.run_array("lab", count, ["true"])[0])
                ratios.append(rates["tls"][-1] / rates["plain"][-1])
        finally:
            for node in nodes:
                node.end()
    ratio = median(ratios)
    bench.row(f"{count:,} x true on a node joined over TLS", f"{median(rates['tls']):,.0f}/s",
              f"95 % of plain {median(rates['plain']):,.0f}/s", ratio, ratio >= 0.95, per_s=rates)


def authorize(bench):
    rounds = [bench.program("authorize", "5000" if bench.quick else "20000").split() for _ in range(3)]
    # Asked twice a request: with its head, and again when its body is there.
    mean, most = (2 * median([float(each[column]) for each in rounds]) for column in (0, 1))
    bench.row("which rule, and whether: us CPU a request", f"{mean:.2f} us; {most:.2f} us on the dearest route", "at most 2 us", most / 2,
              most <= 2, us=rounds)


def submits_together(service, count, together=16):
    """(seconds, CPU seconds of the service) a submit, of as many connections at once."""
    connections = [Connection(service.port, service.token, service.tls) for _ in range(together)]
    request = connections[0].bytes_of("POST", "/v1/jobs", JOB)
    used, begin = cpu_seconds(service.pid), time.perf_counter()
    for _ in range(count // together):
        for connection in connections:
            connection.socket.sendall(request)
        for connection in connections:
            if connection.answer()[0] != 201:
                raise Failed("a job was not taken")
    took = time.perf_counter() - begin
    return took / count, (cpu_seconds(service.pid) - used) / count


def audit(bench):
    """The log cannot be turned off in a service, so what it adds is measured in a program of its own, as CPU time a submit, and
    compared with what a submit takes of a service with 16 clients. All of it counts as lost, though most is on a thread of its own."""
    count = 1600 if bench.quick else 8000
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mine)})  # or the cores that its threads happen to wake on decide the figure
    try:
        rounds = [[float(value) for value in line.split()] for line in bench.program("audit", str(count // 4)).splitlines()]
    finally:
        os.sched_setaffinity(0, mine)
    added = median([with_log - without for without, with_log in rounds])
    with Service(bench.slipway, bench.folders.fresh()) as service:
        service.drained_pool("lab")
        submits = [submits_together(service, count) for _ in range(3)]
    each = median([took for took, _ in submits]) * 1e6
    used = median([cpu for _, cpu in submits]) * 1e6
    share = added / (each - added)
    bench.row("audit log, of a submit", f"{added:.1f} us CPU of {each:,.0f} us ({used:,.0f} us CPU)", "5 % of submit throughput", share,
              share <= 0.05, rounds=rounds, submits=submits)


def head(method, path, token, *more):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}", *more, "", ""]).encode()


def slowloris(port, token, began, ended):
    """500 connections whose heads never end, a byte of each every quarter of a second. Those that were answered 408 are opened anew."""
    slow = {}
    while not ended.is_set():
        for number in range(500):
            try:
                if number not in slow:
                    slow[number] = socket.create_connection(("127.0.0.1", port), timeout=10)
                    slow[number].sendall(b"GET /v1/jobs HTTP/1.1\r\nX-Slow: ")
                slow[number].sendall(b"x")
            except OSError:
                slow.pop(number, None)
        began.set()
        ended.wait(0.25)


def large_bodies(port, token, began, ended):
    """One body of 100 MB after the other, with its length in the head and in chunks, where none is taken and where some are."""
    piece = b"[" + b"0," * ((1 << 15) - 1) + b"0"
    while not ended.is_set():
        for path in ("/v1/jobs", "/v1/pools", "/healthz"):
            for chunked in (False, True):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                    connection.sendall(head("POST", path, token, "Transfer-Encoding: chunked" if chunked else f"Content-Length: {100 << 20}"))
                    for _ in range((100 << 20) // len(piece)):
                        connection.sendall(b"%x\r\n" % len(piece) + piece + b"\r\n" if chunked else piece)
                        began.set()
                    connection.recv(100)
                began.set()


def p99_of_another(api, seconds):
    request, times, until = api.bytes_of("GET", "/v1/jobs"), [], time.perf_counter() + seconds
    while time.perf_counter() < until:
        begin = time.perf_counter()
        status, _ = api.exchange(request)
        times.append((time.perf_counter() - begin) * 1e3)
        if status != 200:
            raise Failed(f"another user is answered {status}")
    return sorted(times)[int(len(times) * 0.99)]


def floods(bench):
    """What another user waits for a list of jobs, beside each flood and right before it, by turns. The floods come from processes of
    their own, on the cores that the service has."""
    seconds, rounds = (1, 3) if bench.quick else (4, 5)
    with Service(bench.slipway, bench.folders.fresh()) as service:
        service.drained_pool("lab")
        for _ in range(20):
            service.api.call("POST", "/v1/jobs", JOB)
        other = Connection(service.port, service.api.call("POST", "/v1/tokens", {"name": "ben", "role": "viewer"})["token"])
        for name, flood in (("slowloris, 500 connections", slowloris), ("bodies of 100 MB, 2 at a time", large_bodies)):
            quiet, flooded = [], []
            for _ in range(rounds):
                quiet.append(p99_of_another(other, seconds))
                began, ended = multiprocessing.Event(), multiprocessing.Event()
                children = [multiprocessing.Process(target=flood, args=(service.port, service.token, began, ended), daemon=True)
                            for _ in range(2 if flood is large_bodies else 1)]
                for child in children:
                    child.start()
                began.wait(60)
                flooded.append(p99_of_another(other, seconds))
                ended.set()
                for child in children:
                    child.join()
            ratio = median([after / before for before, after in zip(quiet, flooded)])
            bench.row(f"p99 of another user beside {name}", f"{median(flooded):.2f} ms; quiet {median(quiet):.2f} ms",
                      "3 x quiet", ratio, ratio <= 3, quiet_ms=quiet, flooded_ms=flooded)
