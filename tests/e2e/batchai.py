"""What the tests of Batch AI's commands stand on: a service without a container engine, and scripts that say what they see.

The files of examples/batchai are run as they are; only the place of a mount command that needs other machines is another.
"""
import base64
import json
import os
import pathlib
import re
import urllib.parse
import zlib

from harness import ROOT, Service, SlipwayCase, wait_until

EXAMPLES = pathlib.Path(ROOT) / "examples" / "batchai"
LS_ROOT = "/mnt/batch/tasks/shared/LS_root"
MOUNTS = LS_ROOT + "/mounts"
SUBSCRIPTION, GROUP, WORKSPACE, EXPERIMENT = "lab", "ml", "main", "digits"
BASE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.BatchAI/workspaces/{WORKSPACE}"
VERSION = "api-version=2018-05-01"
FINAL = ("succeeded", "failed")
ENGINES = ("podman", "docker", "apptainer", "singularity")

# In the place of a framework: all that a process sees, as JSON, packed into a line. It is also noted on the file server,
# as mpirun may mix the lines of its ranks.
STAND_IN = """import base64, json, os, sys, zlib
seen = {"argv": sys.argv[1:], "script": sys.argv[0], "cwd": os.getcwd(), "variables": dict(os.environ)}
host_file = os.environ.get("AZ_BATCHAI_MPI_HOST_FILE", "")
seen["host_file"] = open(host_file).read() if os.path.exists(host_file) else None
line = "seen:" + base64.b64encode(zlib.compress(json.dumps(seen).encode())).decode() + "\\n"
os.write(1, line.encode())
notes = os.path.join(os.environ["AZ_BATCHAI_MOUNT_ROOT"], "nfs", "seen", os.path.basename(os.environ["AZ_BATCHAI_JOB_TEMP"]))
os.makedirs(notes, exist_ok=True)
with open(os.path.join(notes, str(os.getpid())), "w") as file:
    file.write(line)
"""


def unpacked(text):
    """What the test programs printed in a file, in its order."""
    return [json.loads(zlib.decompress(base64.b64decode(printed))) for printed in re.findall(r"seen:(\S+)", text)]


def commands_without_engines(folder):
    """A folder with every command of this machine but those that run containers."""
    os.makedirs(folder)
    for source in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for name in os.listdir(source):
            if not name.startswith(ENGINES) and not os.path.lexists(os.path.join(folder, name)):
                os.symlink(os.path.join(source, name), os.path.join(folder, name))
    return folder


class BatchAiService(Service):
    def __init__(self, **options):
        super().__init__(start=False, **options)
        self.commands = commands_without_engines(os.path.join(self.base, "bin"))
        self.variables = {
            "AZURE_SUBSCRIPTION_ID": SUBSCRIPTION,
            "AZURE_BATCHAI_STORAGE_ACCOUNT": "lab",
            "AZURE_BATCHAI_STORAGE_KEY": "key-of-the-account",
            "SLIPWAY_BATCHAI_CONTAINERS": "host",
            "PATH": self.commands,
            **self.variables,
        }
        self.up()
        self.ok("configure", "--defaults", f"group={GROUP}", f"workspace={WORKSPACE}", f"experiment={EXPERIMENT}")

    def command(self, name, text="exit 0\n"):
        """Puts a command of our own in the place of the machine's."""
        path = os.path.join(self.commands, name)
        if os.path.lexists(path):
            os.unlink(path)
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)

    def az(self, *words, **options):
        """`slipway batchai WORDS…`; what it prints as JSON."""
        output = self.ok("batchai", *words, **options).out
        return json.loads(output) if output.strip() else None

    def store(self, name, *path):
        """The folder of a share (lab.file.logs), a container (lab.blob.data) or a file server (nfs.main.nas)."""
        return pathlib.Path(self.data, "workspaces", "default", "datastores", name, *path)

    def put(self, name, path, text):
        place = self.store(name, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    # Clusters and jobs

    def cluster(self, name="c1", nodes=2, *words):
        self.az("cluster", "create", "-n", name, "-s", "STANDARD_D2", "-t", nodes, "-u", "ops", "-p", "pw-of-ops",
                "--storage-account-name", "lab", "--afs-name", "team", "--afs-mount-path", "team", *words)
        self.wait_for_cluster(name, idle=nodes)

    def shown_cluster(self, name="c1"):
        return self.az("cluster", "show", "-n", name)

    def wait_for_cluster(self, name="c1", **counts):
        """Waits until the cluster has so many nodes in each state named (idle=2, running=0 …); gives it."""
        last = {}

        def there():
            last.update(self.shown_cluster(name))
            return all(last["nodeStateCounts"][state + "NodeCount"] == count for state, count in counts.items())

        wait_until(there, what=f"cluster {name} with {counts}, has {last.get('nodeStateCounts')}", every=0.05)
        return last

    def create(self, name, properties, cluster="c1", **options):
        """A job of these properties; gives the resource."""
        path = self.write(f"jobs/{name}.json", json.dumps({"properties": properties}))
        return self.az("job", "create", "-n", name, "-c", cluster, "-f", path, **options)

    def custom(self, name, line, cluster="c1", **more):
        return self.create(name, {"nodeCount": 1, "customToolkitSettings": {"commandLine": line},
                                  "stdOutErrPathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/team", **more}, cluster)

    def shown(self, name):
        return self.az("job", "show", "-n", name)

    def wait_for_job(self, name, *states):
        states = states or FINAL
        last = {}

        def there():
            last.update(self.shown(name))
            return last["executionState"] in states

        wait_until(there, what=f"job {name} in {states}, is {last.get('executionState')}", every=0.05)
        return last

    def files(self, job, directory="stdouterr", path="."):
        """name → text of the files of an output directory."""
        listed = self.az("job", "file", "list", "-j", job, "-d", directory, "-p", path)
        found = {}
        for file in listed:
            if file["fileType"] == "file":
                parts = urllib.parse.urlsplit(file["downloadUrl"])
                answer = self.ask("GET", parts.path + ("?" + parts.query if parts.query else ""), token=None)
                assert answer.status == 200, repr(answer)
                found[file["name"]] = answer.body.decode()
        return found


class BatchAiCase(SlipwayCase):
    """Tests that share one service."""

    @classmethod
    def setUpClass(cls):
        cls.s = BatchAiService()
        cls.addClassCleanup(cls.s.close)

    def assert_succeeded(self, job):
        self.assertEqual(job["executionState"], "succeeded", json.dumps(job["executionInfo"], indent=1))
        self.assertEqual(job["executionInfo"]["exitCode"], 0)
        self.assertIsNone(job["executionInfo"]["errors"])

    def error_of(self, job):
        """The only error of a job that failed: code and details."""
        self.assertEqual(job["executionState"], "failed")
        [error] = job["executionInfo"]["errors"]
        return error["code"], {one["name"]: one["value"] for one in error.get("details") or []}
