"""The REST API keeps its contract: Schemathesis asks every operation of docs/api/openapi.yaml what fits it and what does not.

The service runs as a user who may do nothing on this machine: what is asked for is made up, commands of jobs and paths of
datastores among it.
"""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SLIPWAY = os.path.abspath(os.environ.get("SLIPWAY") or os.path.join(ROOT, "build/release/bin/slipway"))

HOOKS = '''
import schemathesis

GROWS = ("nodes", "dedicated", "low_priority", "min", "max", "autoscale")  # of thousands of nodes, each is a process


@schemathesis.hook
def map_body(context, body):
    if context.operation.path.startswith("/v1/pools") and isinstance(body, dict):
        return {key: value for key, value in body.items() if key not in GROWS}
    return body


@schemathesis.hook
def map_query(context, query):
    return {key: value for key, value in query.items() if key != "follow"} if query else query  # it would not end
'''

# Rules between fields, names, cursors and contents of files, which a schema cannot hold: what fits the schema may be refused
# with 400 there, and nowhere else.
MAY_REFUSE = (
    "GET /v1/jobs/{job}/attempts", "POST /v1/jobs", "POST /v1/jobs/{job}/resubmit", "POST /v1/pools", "PATCH /v1/pools/{pool}",
    "POST /v1/tokens", "PUT /v1/blobs/{hash}", "PUT /v1/datastores/{name}", "GET /v1/datastores/{name}/files",
    "GET /v1/datastores/{name}/content", "PUT /v1/datastores/{name}/content", "DELETE /v1/datastores/{name}/content",
    "POST /v1/datastores/{name}/folders", "GET /v1/jobs/{job}/tasks/{task}/files", "GET /v1/jobs/{job}/tasks/{task}/files/content",
)
# Bodies are read as people write them: null is as good as absent, a scalar is its text.
LENIENT = ("POST /v1/jobs", "POST /v1/jobs/{job}/cancel", "POST /v1/jobs/{job}/resubmit", "POST /v1/jobs/{job}/rerun",
           "POST /v1/jobs/{job}/tasks/{task}/cancel", "POST /v1/pools", "PATCH /v1/pools/{pool}", "POST /v1/tokens",
           "POST /v1/blobs/missing", "POST /v1/nodes/{node}/evict", "POST /v1/pools/{pool}/autoscale/evaluate", "PUT /v1/datastores/{name}")
# A WebSocket, and the end of the service.
LEFT_OUT = ("/v1/nodes/connect", "/v1/service/stop")


class Contract(unittest.TestCase):
    def setUp(self):
        self.base = tempfile.mkdtemp(prefix="slipway-contract-")
        self.addCleanup(shutil.rmtree, self.base, ignore_errors=True)
        self.data = os.path.join(self.base, "data")
        os.makedirs(self.data)
        os.chmod(self.base, 0o755)
        self.user = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.data, nobody.pw_uid, nobody.pw_gid)
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        # Where that user can read it.
        self.program = shutil.copy(SLIPWAY, os.path.join(self.base, "slipway"))
        self.run_slipway("up", "--detach", "--listen", "127.0.0.1:0")
        self.addCleanup(self.stop)

    def run_slipway(self, *words):
        environment = {"PATH": os.environ["PATH"], "HOME": self.data, "SLIPWAY_HOME": self.data}
        done = subprocess.run([self.program, *words], env=environment, cwd=self.data, capture_output=True, text=True, **self.user)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def stop(self):
        with open(os.path.join(self.data, "service.json")) as file:
            pid = json.load(file)["pid"]
        self.run_slipway("down")
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_no_finding(self):
        python = subprocess.run([os.path.join(ROOT, "tools/frameworks"), "python", "schemathesis"], capture_output=True, text=True)
        self.assertEqual(python.returncode, 0, python.stderr)
        with open(os.path.join(self.data, "service.json")) as file:
            url = json.load(file)["url"]
        with open(os.path.join(self.data, "token")) as file:
            token = file.read().strip()
        with open(os.path.join(self.base, "hooks.py"), "w") as file:
            file.write(HOOKS)
        settings = os.path.join(self.base, "schemathesis.toml")
        with open(settings, "w") as file:
            for operation in sorted({*MAY_REFUSE, *LENIENT}):
                file.write(f'[[operations]]\ninclude-name = "{operation}"\n')
                if operation in MAY_REFUSE:
                    file.write('checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 401, 403, 404, 409]\n')
                if operation in LENIENT:
                    file.write("checks.negative_data_rejection.enabled = false\n")
        left_out = [word for path in LEFT_OUT for word in ("--exclude-path", path)]
        command = [os.path.join(os.path.dirname(python.stdout.strip()), "st"), "--config-file", settings, "run",
                   os.path.join(ROOT, "docs/api/openapi.yaml"), "--url", url, "--header", f"Authorization: Bearer {token}",
                   "--checks", "all", "--phases", "examples,coverage,fuzzing", "--max-examples", "20", "--request-timeout", "20",
                   "--generation-deterministic", "--warnings", "off", "--no-color", *left_out]
        done = subprocess.run(command, cwd=self.base, env={**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": self.base},
                              capture_output=True, text=True, timeout=1200)
        sys.stderr.write("\n".join(line for line in done.stdout.splitlines() if "generated" in line) + "\n")
        self.assertEqual(done.returncode, 0, done.stdout[-20000:] + done.stderr[-5000:])


if __name__ == "__main__":
    unittest.main()
