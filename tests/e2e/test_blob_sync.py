"""A folder and a blob container kept alike, against Azurite: the program that agents run before and after a task.

Azurite comes from npm, once, into the user's cache. Its requests are checked here by a client of another make: a few lines
that sign for themselves.
"""

import base64
import fcntl
import hashlib
import hmac
import http.server
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.request
import xml.etree.ElementTree

from harness import SLIPWAY, PATIENCE, Ran, Service, processes_of, read_line, wait_until

VERSION = "3.37.0"
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "slipway", f"azurite-{VERSION}")
ACCOUNT = "devstoreaccount1"
KEY = base64.b64encode(b"a key of the lab that is 32 long").decode()  # of this test's own account
MIB = 1 << 20


def azurite():
    """The program, installed when it is missing; SkipTest where that cannot be."""
    program = os.path.join(CACHE, "node_modules", "azurite", "dist", "src", "blob", "main.js")
    if not shutil.which("node") or not shutil.which("npm"):
        raise unittest.SkipTest("node and npm are not installed, and Azurite needs them")
    os.makedirs(CACHE, exist_ok=True)
    with open(CACHE + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(CACHE + "/complete"):
            return program
        done = subprocess.run(
            ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", CACHE, f"azurite@{VERSION}"],
            capture_output=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise unittest.SkipTest(f"npm cannot fetch azurite@{VERSION}: {done.stderr.decode(errors='replace')[-500:]}")
        with open(CACHE + "/complete", "w"):
            pass
    return program


class Azurite:
    """A blob store on loopback. stop() and start() keep its data and its port."""

    def __init__(self, base, *more, host="127.0.0.1"):
        self.program, self.base, self.more, self.host, self.port = azurite(), base, more, host, 0
        self.child = None
        self.start()

    def start(self):
        self.child = subprocess.Popen(
            ["node", self.program, "--blobHost", self.host, "--blobPort", str(self.port), "--location", self.base + "/store",
             "--disableTelemetry", "--skipApiVersionCheck", "--silent", *self.more],  # nobody reads its log: it would wait
            env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.base)
        while not (found := re.search(rb"successfully listens? on https?://[^:]+:(\d+)", line := read_line(self.child, PATIENCE))):
            if not line:
                raise AssertionError("Azurite ended before it listened")
        self.port = int(found.group(1))

    def stop(self):
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(20)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        self.child.stdout.close()

    def url(self, container="data", scheme="http"):
        return f"{scheme}://{self.host}:{self.port}/{ACCOUNT}/{container}"

    def ask(self, method, path, body=None, **headers):
        """One request, signed here: `path` below the account."""
        place, _, query = path.partition("?")
        headers = {"x-ms-date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()), "x-ms-version": "2019-12-12",
                   **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body is not None:
            headers["Content-Type"] = "application/octet-stream"
        own = "".join(f"{name.lower()}:{value}\n" for name, value in sorted(headers.items()) if name.startswith("x-ms-"))
        asked = "".join(f"\n{name}:{value}" for name, value in sorted(urllib.parse.parse_qsl(query)))
        text = "\n".join([method, "", "", str(len(body)) if body else "", "", headers.get("Content-Type", ""), "", "", "", "", "",
                          "", f"{own}/{ACCOUNT}/{ACCOUNT}{place}{asked}"])
        mac = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(mac).decode()}"
        request = urllib.request.Request(f"http://{self.host}:{self.port}/{ACCOUNT}{path}", body, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def put(self, name, content, container="data"):
        self.ask("PUT", f"/{container}/{urllib.parse.quote(name)}", content, x_ms_blob_type="BlockBlob")

    def names(self, container="data"):
        tree = xml.etree.ElementTree.fromstring(self.ask("GET", f"/{container}?restype=container&comp=list"))
        return {blob.findtext("Name"): int(blob.findtext("Properties/Content-Length")) for blob in tree.iter("Blob")}

    def sas(self):
        fields = {"sp": "rwdlc", "ss": "b", "srt": "sco", "st": "", "se": "2099-01-01T00:00:00Z", "sip": "", "spr": "", "sv": "2019-12-12"}
        text = "\n".join([ACCOUNT, *fields.values(), ""])
        mac = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
        return urllib.parse.urlencode({**{k: v for k, v in fields.items() if v}, "sig": base64.b64encode(mac).decode()})


class FakeStore:
    """Answers as a store would: two names to a page, every blob with its own name as content, no proof asked for."""

    def __init__(self, names):
        self.failures, self.damaged = 2, False
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                place, _, query = self.path.partition("?")
                query = dict(urllib.parse.parse_qsl(query))
                if fake.failures > 0:
                    fake.failures -= 1
                    return self.answer(503, b"")
                if query.get("comp") != "list":
                    content = urllib.parse.unquote(place).split("/data/", 1)[1].encode()
                    md5 = base64.b64encode(hashlib.md5(content).digest()).decode()
                    return self.answer(200, b"x" * len(content) if fake.damaged else content, ETag='"0x1"', **{"Content-MD5": md5})
                first = int(query.get("marker", 0))
                blobs = "".join(f"<Blob><Name>{name}</Name><Properties><Etag>0x1</Etag><Content-Length>{len(name)}</Content-Length>"
                                "</Properties></Blob>" for name in names[first:first + 2])
                marker = first + 2 if first + 2 < len(names) else ""
                self.answer(200, f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>".encode())

            def answer(self, status, body, **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/lab/data"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class BlobSync(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.base = tempfile.mkdtemp(prefix="slipway-blob-")
        self.addCleanup(shutil.rmtree, self.base, ignore_errors=True)

    def azurite(self, *more):
        store = Azurite(self.base, *more)
        self.addCleanup(store.stop)
        self.url = store.url()
        return store

    def sync(self, direction, folder="work", url=None, key=KEY, **more):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SLIPWAY_")}
        environment.update(SLIPWAY_DATASTORE_URL=url or self.url, SLIPWAY_DATASTORE_KEY=key, **more)
        done = subprocess.run([SLIPWAY, "node", "sync-datastore", direction, "--folder", self.path(folder)], env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=240)
        return Ran((direction, folder), done.returncode, done.stdout.decode(), done.stderr.decode())

    def ok(self, *args, moved=None, says=(), **options):
        ran = self.sync(*args, **options)
        self.assertEqual(ran.code, 0, ran)
        self.assertEqual(ran.out.count("\n"), 1, ran)
        if moved is not None:
            self.assertRegex(ran.out, rf"^(pulled|pushed) {moved} files? ", ran)
        for words in [says] if isinstance(says, str) else says:
            self.assertIn(words, ran.out + ran.err, ran)
        return ran

    def refused(self, *args, says, **options):
        ran = self.sync(*args, **options)
        self.assertEqual((ran.code, ran.out), (1, ""), ran)
        self.assertRegex(ran.err, r"\Aerror: .+\nwhy:   .+\ntry:   .+\n\Z", ran)
        for words in [says] if isinstance(says, str) else says:
            self.assertIn(words, ran.err, ran)
        self.assertNotIn(KEY[:12], ran.err)
        return ran

    def path(self, *parts):
        return os.path.join(self.base, *parts)

    def write(self, name, content, folder="work"):
        path = self.path(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)

    def tree(self, folder="work"):
        found = {}
        for where, _, names in os.walk(self.path(folder)):
            for name in names:
                path = os.path.join(where, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, self.path(folder))] = hashlib.sha256(file.read()).hexdigest()
        return found

    def test_there_and_back(self):
        store = self.azurite()
        big = os.urandom(MIB) * 70
        self.write("big.bin", big)
        self.write("whole.bin", os.urandom(3 * MIB + 1))
        self.write("empty", b"")
        self.write("a/b/c/deep.txt", b"deep")
        for number, name in enumerate(("a b.txt", "grüße/日本.txt", "50% + & = ? # [x] 'q' \"d\" ~ <t> ; , : @ !$()*.txt", ".hidden", "a.b")):
            self.write("odd/" + name, f"odd {number}".encode())
        for number in range(60):
            self.write(f"many/{number:03}", str(number).encode())
        wanted = self.tree()
        self.ok("push", moved=len(wanted), says="0 conflicts")
        sizes = {name: os.path.getsize(self.path("work", name)) for name in wanted}
        self.assertEqual(store.names(), sizes)
        self.assertEqual(hashlib.sha256(store.ask("GET", "/data/big.bin")).hexdigest(), wanted["big.bin"])
        self.ok("push", moved=0, says=f"{len(wanted)} unchanged")
        self.ok("pull", moved=0, says=f"{len(wanted)} unchanged")

        self.assertEqual(sorted(os.listdir(self.base)), ["store", "work", "work.sync", "work.sync.lock"])
        for name in os.listdir(self.path("work")):
            path = self.path("work", name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        self.ok("pull", moved=len(wanted))
        self.assertEqual(self.tree(), wanted)
        self.ok("pull", "another", moved=len(wanted))
        self.assertEqual(self.tree("another"), wanted)
        # Without its notes a folder is compared by content.
        os.remove(self.path("work.sync"))
        self.ok("pull", moved=0, says=f"{len(wanted)} unchanged")
        os.remove(self.path("work.sync"))
        self.ok("push", moved=0, says=f"{len(wanted)} unchanged")

    def test_both_sides_change(self):
        store = self.azurite()
        for name in ("both", "here", "there", "gone-here", "gone-there", "gone-there-changed", "touched", "sub/only"):
            self.write(name, f"first {name}".encode())
        self.ok("push", moved=8)
        self.ok("pull", "other", moved=8)

        self.write("both", b"here's version")
        self.write("here", b"changed here")
        self.write("gone-there-changed", b"changed, not gone")
        self.write("new-here", b"new")
        os.utime(self.path("work/touched"))
        store.put("both", b"their version")
        store.put("there", b"changed there")
        store.put("new-there", b"new")
        for name in ("gone-there", "gone-there-changed", "sub/only"):
            store.ask("DELETE", "/data/" + name)
        ran = self.ok("pull", moved=3, says=("1 conflict,", "2 deleted", "both had changed on both sides; the container's version won"))
        self.assertIn("4 kept", ran.out)  # here, touched, new-here, gone-there-changed
        self.assertFalse(os.path.exists(self.path("work/sub")))
        with open(self.path("work/both")) as file:
            self.assertEqual(file.read(), "their version")

        os.remove(self.path("work/gone-here"))
        ran = self.ok("push", moved=3, says=("1 deleted", "0 conflicts"))  # here, new-here, gone-there-changed
        self.assertEqual(sorted(store.names()), ["both", "gone-there-changed", "here", "new-here", "new-there", "there", "touched"])
        # The other folder has old versions of its own to send: what changed there is reported.
        self.write("here", b"another version", "other")
        os.remove(self.path("other/there"))
        ran = self.ok("push", "other", moved=1, says=("here had changed on both sides; the folder's version won", "1 kept", "0 deleted"))
        self.assertEqual(store.ask("GET", "/data/here"), b"another version")
        self.assertIn("there", store.names())
        self.ok("pull", "other")
        self.ok("pull")
        self.assertEqual(self.tree(), self.tree("other"))
        # Another folder at the same place removed nothing.
        shutil.rmtree(self.path("work"))
        before = store.names()
        os.rename(self.path("other"), self.path("work"))
        for name in ("both", "here"):
            os.remove(self.path("work", name))
        self.ok("push", moved=0, says="0 deleted")
        self.assertEqual(store.names(), before)

    def test_paths_outside_are_refused(self):
        store = self.azurite()
        self.write("ok", b"ok")
        os.mkdir(self.path("outside"))
        os.symlink(self.path("outside"), self.path("work/link"))
        os.symlink("/etc/hostname", self.path("work/name"))
        self.ok("push", moved=1, says=("link was left out: it is a link", "2 left out"))
        self.assertEqual(list(store.names()), ["ok"])
        store.put("link/in", b"x")
        self.ok("pull", moved=0, says="link/in was left out: a folder above it is a link here")
        self.assertEqual(os.listdir(self.path("outside")), [])
        os.remove(self.path("work/ok"))
        os.symlink("/etc/hostname", self.path("work/ok"))
        self.ok("push", moved=0, says="0 deleted")  # a file that became a link was not removed
        self.assertEqual(sorted(store.names()), ["link/in", "ok"])

    def test_malicious_store(self):
        """Names that lead out, over several pages, after two moments of weakness."""
        names = ["../escaped", "/tmp/escaped", "a/../../escaped", "a//b", "fine/one", "a\\b", "fine/two", ".slipway-part-1-1"]
        store = FakeStore(names)
        self.addCleanup(store.close)
        ran = self.ok("pull", url=store.url, moved=2, says=("6 left out", "../escaped was left out: it has a part '..'"))
        self.assertEqual(sorted(self.tree()), ["fine/one", "fine/two"], ran)
        self.assertEqual(sorted(os.listdir(self.base)), ["work", "work.sync", "work.sync.lock"])
        self.assertEqual(store.failures, 0)
        store.damaged = True
        shutil.rmtree(self.path("work"))
        self.refused("pull", url=store.url, says="arrived damaged")
        self.assertEqual(self.tree(), {})

    def test_killed_sync_can_be_repeated(self):
        store = self.azurite()
        self.write("big", os.urandom(MIB) * 100)
        self.ok("push", moved=1)
        child = subprocess.Popen([SLIPWAY, "node", "sync-datastore", "pull", "--folder", self.path("other")], stdout=subprocess.DEVNULL,
                                 env={**os.environ, "SLIPWAY_DATASTORE_URL": store.url(), "SLIPWAY_DATASTORE_KEY": KEY})
        wait_until(lambda: os.path.isdir(self.path("other")) and os.listdir(self.path("other")), what="the beginning of a file")
        child.kill()
        child.wait()
        left = os.listdir(self.path("other"))
        self.assertTrue(left == ["big"] or left[0].startswith(".slipway-part-"), left)
        self.ok("pull", "other")
        self.assertEqual(self.tree("other"), self.tree())

    def test_errors_name_the_cause(self):
        store = self.azurite()
        os.mkdir(self.path("work"))
        wrong = base64.b64encode(b"another key").decode()
        self.refused("push", key=wrong, says=("refuses the key of account devstoreaccount1", "AuthorizationFailure", "compare the key"))
        self.refused("pull", key="not base64", says="it is not base64")
        self.refused("pull", url="http://127.0.0.1:1", says="is not the address of a blob container")
        self.refused("pull", says=("there is no container " + self.url, "ContainerNotFound", "a push makes it"))
        self.write("a", b"a")
        self.ok("push", url=store.url() + "?" + store.sas(), key="", moved=1)
        self.write("b", b"b")
        store.stop()
        self.refused("push", says=("cannot reach http://127.0.0.1", "Connection refused", "see whether the store runs"))
        store.start()
        self.ok("push", moved=1)
        self.assertEqual(sorted(store.names()), ["a", "b"])

    def test_over_tls(self):
        if not shutil.which("openssl"):
            self.skipTest("openssl is not installed, and it makes the certificate")
        cert, key = self.path("cert.pem"), self.path("key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=lab",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)
        store = self.azurite("--cert", cert, "--key", key)
        self.url = store.url(scheme="https")
        content = os.urandom(20 * MIB)
        self.write("a", content)
        self.write("b", b"")
        self.refused("push", says=("its certificate is not trusted", "SSL_CERT_FILE"))
        self.ok("push", moved=2, SSL_CERT_FILE=cert)
        self.ok("pull", "other", moved=2, SSL_CERT_FILE=cert)
        self.assertEqual(self.tree("other"), self.tree())


class DatastoresOfJobs(unittest.TestCase):
    """A container that a job mounts: brought before it, sent back after it."""

    def setUp(self):
        self.base = tempfile.mkdtemp(prefix="slipway-blob-")
        self.addCleanup(shutil.rmtree, self.base, True)
        self.store = Azurite(self.base)
        self.addCleanup(self.store.stop)
        self.store.ask("PUT", "/data?restype=container")
        self.store.put("in/a.txt", b"from the store")
        self.service = Service()
        self.addCleanup(self.service.close)
        self.service.pool("lab", 2)
        key = self.service.write("key", KEY)
        self.service.ok("datastore", "create", "lab.blob.data", "--url", self.store.url(), "--key-file", key)

    def job(self, command, **more):
        task = {"name": "t", "mounts": [{"at": "d", "datastore": "lab.blob.data"}], "command": command, **more}
        return self.service.submit({"name": "j", "pool": "lab", "tasks": [task]})

    def test_what_a_gang_reads_and_writes(self):
        id = self.job("cd $SLIPWAY_MOUNTS/d && cat in/a.txt && echo $SLIPWAY_RANK > out-$SLIPWAY_RANK && sleep 0.$SLIPWAY_RANK", nodes=2)
        self.assertEqual(self.service.run("job", "wait", id).code, 0)
        for rank in (0, 1):
            self.assertEqual(self.service.run("logs", f"{id}/t/{rank}").out, "from the store")
        self.assertEqual(self.store.names(), {"in/a.txt": 14, "out-0": 2, "out-1": 2}, "sent by the time the job has ended")
        found = subprocess.run(["grep", "-rlas", KEY, self.service.data], stdout=subprocess.PIPE, text=True)
        self.assertEqual(found.stdout, "", "the key is nowhere in clear")

    def test_unreachable_store_is_named(self):
        self.store.stop()
        id = self.job("true", interruptions_max=1)
        self.assertNotEqual(self.service.run("job", "wait", id).code, 0)
        shown = self.service.get(f"/v1/jobs/{id}")
        self.assertEqual(shown["end"], "start_failed")
        self.assertIn(self.store.url(), shown["reason"])

    def test_pull_ends_with_its_agent(self):
        os.kill(self.store.child.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, self.store.child.pid, signal.SIGCONT)
        id = self.job("true")
        pulls = lambda: [pid for pid, command in processes_of(self.service.data).items() if "sync-datastore pull" in command]
        wait_until(pulls, what="a pull that gets no answer")
        [pid], [node] = pulls(), self.service.task(id, "t")["nodes"]
        self.service.kill(self.service.agent(node))
        wait_until(lambda: pid not in pulls(), what="the end of the pull, which would wait for a minute")
        os.kill(self.store.child.pid, signal.SIGCONT)
        self.assertEqual(self.service.run("job", "wait", id).code, 0)

    def test_failed_upload_fails_the_task(self):
        go = os.path.join(self.base, "go")
        id = self.job(f"echo 1 > $SLIPWAY_MOUNTS/d/out; until [ -e {go} ]; do sleep 0.05; done", interruptions_max=1)
        wait_until(lambda: self.service.get(f"/v1/jobs/{id}")["state"] == "running", what="the job")
        self.store.stop()
        open(go, "w").close()
        self.assertNotEqual(self.service.run("job", "wait", id).code, 0)
        shown = self.service.get(f"/v1/jobs/{id}")
        self.assertEqual(shown["end"], "outputs_lost")
        self.assertIn("what it wrote was not sent", shown["reason"])


if __name__ == "__main__":
    unittest.main()
