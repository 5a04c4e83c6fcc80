"""What every end-to-end test stands on: a real service in a folder of its own, and ways to ask it and hurt it.

A test waits on conditions (`wait_until`), never on time. Every service has its own data folder, whose name is
in the environment of all that it starts; so at the end leftovers are found and killed by pid.
"""

import contextlib
import glob
import http.client
import json
import os
import select
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SLIPWAY = os.path.abspath(os.environ.get("SLIPWAY") or os.path.join(ROOT, "build/release/bin/slipway"))
PATIENCE = float(os.environ.get("SLIPWAY_TEST_PATIENCE", "60"))  # seconds until a condition counts as never

TERMINAL = ("succeeded", "failed", "cancelled")


class NeverHappened(AssertionError):
    pass


def wait_until(condition, timeout=None, what="", every=0.02):
    """Waits until condition() is true and gives that value; NeverHappened when it stays false."""
    deadline = time.monotonic() + (timeout or PATIENCE)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise NeverHappened("never happened: " + (what or getattr(condition, "__doc__", None) or "condition"))
        time.sleep(every)


def is_alive(pid):
    """Whether the process runs; a zombie does not, unless it still has threads that hold its files and locks."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            ended = file.read().rsplit(")", 1)[1].split()[0] in "ZX"
        return not ended or len(os.listdir(f"/proc/{pid}/task")) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def processes_of(*folders):
    """pid → command line of the processes that have one of these folders in their arguments or environment."""
    found = {}
    wanted = [folder.encode() for folder in folders]
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                command = file.read()
            with open(f"/proc/{entry}/environ", "rb") as file:
                environment = file.read()
        except OSError:
            continue
        if any(folder in command or folder in environment for folder in wanted) and is_alive(int(entry)):
            found[int(entry)] = command.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def read_line(child, timeout=20, stream=None):
    """The next line of a child's output; fails when none comes."""
    line = b""
    stream = stream or child.stdout
    deadline = time.monotonic() + timeout
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([stream], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise NeverHappened(f"no line came in {timeout} s; so far {line!r}")
        more = os.read(stream.fileno(), 1)
        if not more:
            break
        line += more
    return line


class Ran:
    def __init__(self, args, code, out, err):
        self.args_given, self.code, self.out, self.err = args, code, out, err

    @property
    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"{' '.join(map(str, self.args_given))}\nexit {self.code}\nstdout: {self.out}\nstderr: {self.err}"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"HTTP {self.status} {dict(self.headers)}\n{self.body[:2000]!r}"


class Service:
    """A service on a data folder of its own. Use as a context, or call close()."""

    def __init__(self, data=None, listen="127.0.0.1:0", arguments=(), start=True, variables=None, trusting=True):
        self.base = tempfile.mkdtemp(prefix="slipway-e2e-")
        self.home = os.path.join(self.base, "home")  # not the user's: a ~/.bashrc may wait for locks, or say things
        os.makedirs(self.home)
        self.data = data or os.path.join(self.base, "data")
        self.listen = listen
        self.arguments = list(arguments)
        if trusting and "--run-as" not in self.arguments:
            self.arguments.append("--trust-members")  # most tests of roles need no users of the machine
        self.variables = dict(variables or {})  # of everything that is run
        self.also = []  # folders of other things that belong to this test
        self.children = []
        if start:
            self.up()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # Command line

    def environment(self, **more):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SLIPWAY_")}
        environment.update({"HOME": self.home, "SLIPWAY_HOME": self.data, "NO_COLOR": "1", **self.variables, **more})
        return environment

    def run(self, *args, input=None, timeout=120, cwd=None, env=None, binary=False):
        """Runs `slipway ARGS…` to its end."""
        done = subprocess.run(
            [SLIPWAY, *map(str, args)],
            input=input.encode() if isinstance(input, str) else input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            timeout=timeout,
            cwd=cwd or self.base,
            env=self.environment(**(env or {})),
        )
        out, err = done.stdout, done.stderr
        return Ran(args, done.returncode, out if binary else out.decode(errors="replace"), err.decode(errors="replace"))

    def ok(self, *args, **options):
        ran = self.run(*args, **options)
        if ran.code != 0:
            raise AssertionError(f"should have succeeded: {ran!r}")
        return ran

    def refused(self, *args, code=1, says=(), **options):
        """Runs what has to be refused, in words that hold each of `says`."""
        ran = self.run(*args, **options)
        if ran.code != code:
            raise AssertionError(f"should exit {code}: {ran!r}")
        for words in [says] if isinstance(says, str) else says:
            if words not in ran.err:
                raise AssertionError(f"should say {words!r}: {ran!r}")
        return ran

    def spawn(self, *args, cwd=None, **options):
        """Starts `slipway ARGS…` and leaves it running; it is killed at the end if it is still there."""
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        child = subprocess.Popen(
            [SLIPWAY, *map(str, args)],
            stdin=subprocess.DEVNULL,
            cwd=cwd or self.base,
            env=self.environment(),
            bufsize=0,
            **options,
        )
        self.children.append(child)
        return child

    def up(self, *more, **options):
        return self.ok("up", "--listen", self.listen, "--detach", "--datastore-root", self.base, *self.arguments, *more, **options)

    def down(self, *more, **options):
        return self.ok("down", *more, **options)

    def pool(self, name="lab", nodes=2, cores=1, *more):
        """Makes a pool and waits until its nodes are there."""
        self.ok("pool", "create", name, "--nodes", nodes, "--cores-per-node", cores, "--overcommit", *more)
        self.wait_for_nodes(nodes, name)

    def wait_for_nodes(self, count, pool="lab", states=("idle", "busy")):
        wait_until(
            lambda: sum(node["state"] in states for node in self.get(f"/v1/nodes?pool={pool}")["items"]) >= count,
            what=f"{count} nodes of {pool} in {states}",
        )

    # HTTP

    @property
    def about(self):
        with open(os.path.join(self.data, "service.json")) as file:
            return json.load(file)

    @property
    def url(self):
        return self.about["url"]

    @property
    def address(self):
        return self.url.split("#")[0]  # without the fingerprint

    @property
    def port(self):
        return urllib.parse.urlsplit(self.url).port

    @property
    def token(self):
        with open(os.path.join(self.data, "token")) as file:
            return file.read().strip()

    def connect(self, timeout=60):
        if self.url.startswith("https:"):
            trusted = ssl.create_default_context(cafile=os.path.join(self.data, "tls", "ca.crt"))
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=trusted)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None, token="", timeout=60):
        """One request; token=None sends none, the empty one is the admin's."""
        connection = self.connect(timeout)
        try:
            sent = dict(headers or {})
            if token is not None:
                sent["Authorization"] = "Bearer " + (token or self.token)
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
                sent.setdefault("Content-Type", "application/json")
            connection.request(method, path, body=body, headers=sent)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path, **options):
        answer = self.ask("GET", path, **options)
        if answer.status != 200:
            raise AssertionError(f"GET {path}: {answer!r}")
        return answer.json

    # Jobs

    def write(self, name, text):
        path = os.path.join(self.base, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb" if isinstance(text, bytes) else "w") as file:
            file.write(text)
        return path

    def submit(self, spec, **options):
        """Submits a job as YAML text or as a dict; gives its id."""
        if isinstance(spec, dict):
            answer = self.ask("POST", "/v1/jobs", body=spec, **options)
            if answer.status not in (200, 201):
                raise AssertionError(f"submit: {answer!r}")
            return answer.json["id"]
        return self.ok("job", "submit", "-", "-o", "quiet", input=spec, **options).out.strip()

    def job(self, job):
        return self.get(f"/v1/jobs/{job}")

    def task(self, job, name):
        return self.get(f"/v1/jobs/{job}/tasks/{urllib.parse.quote(name, safe='')}")

    def tasks(self, job):
        items, after = [], ""
        while True:
            page = self.get(f"/v1/jobs/{job}/tasks?limit=1000{after}")
            items += page["items"]
            if not page.get("next"):
                return items
            after = "&after=" + urllib.parse.quote(page["next"], safe="")

    def wait_for(self, job, *states, timeout=None):
        """Waits until the job is in one of the states (default: it ended); gives the job."""
        states = states or TERMINAL
        last = {}

        def there():
            last.update(self.job(job))
            return last["state"] in states

        try:
            wait_until(there, timeout)
        except NeverHappened:
            why = self.ask("GET", f"/v1/jobs/{job}/why").body.decode()
            raise NeverHappened(f"{job} should become {states}, is {last.get('state')}: {why}") from None
        return last

    def wait_for_task(self, job, name, *states, timeout=None):
        last = {}

        def there():
            last.update(self.task(job, name))
            return last["state"] in states

        wait_until(there, timeout, what=f"{job}/{name} in {states}")
        return last

    def log(self, job, task, **query):
        path = f"/v1/jobs/{job}/tasks/{urllib.parse.quote(task, safe='')}/logs"
        answer = self.ask("GET", path + ("?" + urllib.parse.urlencode(query) if query else ""))
        if answer.status not in (200, 206):
            raise AssertionError(f"{path}: {answer!r}")
        return answer.body.decode(errors="replace")

    # Processes

    @staticmethod
    def pid_in(file):
        try:
            with open(file) as lock:
                pid = int(lock.read().strip() or 0)
        except (OSError, ValueError):
            return 0
        return pid if pid and is_alive(pid) else 0

    @property
    def pid(self):
        return self.pid_in(os.path.join(self.data, "service.lock"))

    def pids(self, what):
        """Of 'agent' or 'keeper': node folder's name → pid, of those that run."""
        found = {}
        for folder in glob.glob(os.path.join(self.data, "nodes", "*")):
            pid = self.pid_in(os.path.join(folder, what + ".lock"))
            if pid:
                found[os.path.basename(folder)] = pid
        return found

    def agent(self, node):
        return self.pid_in(os.path.join(self.data, "nodes", f"default.{node}", "agent.lock"))

    def keeper(self, node):
        return self.pid_in(os.path.join(self.data, "nodes", f"default.{node}", "keeper.lock"))

    @staticmethod
    def kill(*pids, sig=signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
        if sig == signal.SIGKILL:
            wait_until(lambda: not any(is_alive(pid) for pid in pids), what=f"the end of {pids}")

    def kill_service(self):
        pid = self.pid
        assert pid, "no service runs"
        self.kill(pid)

    def survivors(self):
        return processes_of(self.data + "/", self.data + "\0", self.base + "/", *self.also)

    def close(self):
        """Stops the service; what it started and left behind is killed and reported as a failure."""
        try:
            for child in self.children:
                if child.poll() is None:
                    child.kill()
                child.wait()
                for stream in (child.stdout, child.stderr):
                    if stream:
                        stream.close()
            trouble = ""
            if self.pid:
                for pid in self.pids("agent").values():
                    self.kill(pid, sig=signal.SIGCONT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    down = self.run("down", timeout=90)
                    trouble = repr(down) if down.code != 0 and self.pid else ""
            with contextlib.suppress(NeverHappened):
                wait_until(lambda: not self.survivors(), 5)
            left = self.survivors()
            for pid in left:
                self.kill(pid)
            if left or trouble:
                raise AssertionError(f"left running after slipway down: {left} {trouble}")
        finally:
            if os.environ.get("SLIPWAY_TEST_KEEP"):
                print("kept", self.base)
            else:
                shutil.rmtree(self.base, ignore_errors=True)


class SlipwayCase(unittest.TestCase):
    maxDiff = None

    def service(self, *args, **options):
        """A service for this test alone, closed at its end."""
        service = Service(*args, **options)
        self.addCleanup(service.close)
        return service


class SharedServiceCase(SlipwayCase):
    """Tests that share one service with a pool lab of two nodes with one core each."""

    pool_nodes = 2

    @classmethod
    def setUpClass(cls):
        cls.s = Service()
        cls.addClassCleanup(cls.s.close)
        if cls.pool_nodes:
            cls.s.pool("lab", cls.pool_nodes)


def shell(name, command, **more):
    return {"name": name, "command": command, **more}


def job(*tasks, **more):
    return {"tasks": list(tasks), **more}


def blocker(folder, name="go"):
    """A shell command that waits for the file `name` in `folder`, and how to make that file."""
    path = os.path.join(folder, name)

    def release():
        with open(path, "w"):
            pass

    return f"until [ -e {path} ]; do sleep 0.05; done", release
