"""Everything at once: clients that list jobs, follow logs and list a very large folder lose no attempt, and hardly delay a start."""
import multiprocessing
import os
import selectors

from rows_reads import LISTERS, PAGE, list_jobs, p99, waits_of
from service import Connection, Failed, Service

FOLLOWERS = 50
FOLDER_LISTERS = 3
FILES = 1_000_000
MAKE_FILES = "import os\nfor i in range({}): os.close(os.open('f%d' % i, os.O_CREAT | os.O_WRONLY))\n"
WRITE_LINES = "import time\nwhile True: print(time.time(), flush=True); time.sleep(0.05)\n"


def follow_log(port, token, job, stop, received):
    """One process reads what all followers are sent."""
    with selectors.DefaultSelector() as selector:
        for _ in range(FOLLOWERS):
            connection = Connection(port, token)
            connection.socket.sendall(connection.bytes_of("GET", f"/v1/jobs/{job}/tasks/t/logs?follow=true"))
            selector.register(connection.socket, selectors.EVENT_READ)
        while not stop.is_set():
            for key, _ in selector.select(timeout=0.1):
                piece = key.fileobj.recv(1 << 16)
                if not piece:
                    raise Failed("a log that is followed was ended")
                with received.get_lock():
                    received.value += len(piece)


def list_folder(port, token, job, stop, entries):
    """Page by page to the end, again and again."""
    connection = Connection(port, token)
    after = ""
    while not stop.is_set():
        page = connection.call("GET", f"/v1/jobs/{job}/tasks/t/files?path=wd&limit={PAGE}{after}")
        with entries.get_lock():
            entries.value += len(page["items"])
        after = f"&after={page['next']}" if page["next"] else ""


def attempts_lost(service):
    """Of all jobs: attempts beyond the first, as none of their tasks fails."""
    lost, after = 0, ""
    while True:
        page = service.api.call("GET", f"/v1/jobs?limit={PAGE}{after}")
        for job in page["items"]:
            lost += service.api.call("GET", f"/v1/jobs/{job['id']}/tasks/t")["attempts"] - 1
        if not page["next"]:
            return lost
        after = f"&after={page['next']}"


def load(bench):
    program = os.path.join(bench.programs, "first_instruction")
    files, count = (FILES // 50, 50) if bench.quick else (FILES, 400)
    listed, received, pages = (multiprocessing.Value("Q", 0) for _ in range(3))
    stop = multiprocessing.Event()
    with Service(bench.slipway, bench.folders.fresh()) as service:
        service.pool("lab", 1, 2)

        def submit(*command):
            return service.submit({"pool": "lab", "tasks": [{"name": "t", "command": list(command)}]})

        for one in [submit("true") for _ in range(PAGE)]:
            service.wait(one)
        folder = submit("python3", "-c", MAKE_FILES.format(files))
        if service.wait(folder)["state"] != "succeeded":
            raise Failed("the large folder was not made")
        written = submit("python3", "-c", WRITE_LINES)
        quiet = waits_of(service, program, count)
        at = (service.port, service.api.token)
        clients = [multiprocessing.Process(target=list_jobs, args=(*at, stop, pages)) for _ in range(LISTERS)]
        clients.append(multiprocessing.Process(target=follow_log, args=(*at, written, stop, received)))
        clients += [multiprocessing.Process(target=list_folder, args=(*at, folder, stop, listed)) for _ in range(FOLDER_LISTERS)]
        for client in clients:
            client.start()
        try:
            beside = waits_of(service, program, count)
        finally:
            stop.set()
            for client in clients:
                client.join()
        failed = [client.name for client in clients if client.exitcode != 0]
        if failed or not all(one.value for one in (listed, received, pages)):
            raise Failed(f"clients did not get what they asked for: {failed}")
        lost = attempts_lost(service)
        service.api.call("POST", f"/v1/jobs/{written}/cancel")
    ratio = p99(beside) / p99(quiet)
    bench.row("attempts lost under load", f"{lost}; {listed.value} files of {files} listed, {pages.value} pages of jobs", "0",
              None, lost == 0)
    bench.row("first instruction under load, p99", f"{p99(beside):.1f} ms, quiet {p99(quiet):.1f} ms", "4 x quiet", ratio, ratio <= 4,
              quiet_ms=sorted(quiet), beside_ms=sorted(beside))
