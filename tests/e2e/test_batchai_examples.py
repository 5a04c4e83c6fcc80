"""The ten example jobs of Batch AI through its commands, and what each of their processes sees."""
import json
import os
import re
import socket
import unittest

from batchai import EXAMPLES, EXPERIMENT, GROUP, LS_ROOT, MOUNTS, STAND_IN, SUBSCRIPTION, WORKSPACE, BatchAiCase, unpacked

PORTS_FROM = 2222
GROUP_PATH = f"{SUBSCRIPTION}/{GROUP}/workspaces/{WORKSPACE}"
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

# The parameter server is stopped when the workers have ended: no process continues before all four have printed what they see.
ALL_BEGIN = """
import time
shared = os.environ["AZ_BATCHAI_SHARED_JOB_TEMP"]
open(f"{shared}/began-{os.getpid()}", "w").close()
while sum(name.startswith("began-") for name in os.listdir(shared)) < 4: time.sleep(0.01)
"""


def read(name):
    return json.loads((EXAMPLES / name).read_text())["properties"]


def can_listen(port):
    with socket.socket() as one:
        try:
            one.bind(("", port))
        except OSError:
            return False
        return True


class Job:
    """A job that ended: the resource, its paths, its files, and what its processes saw."""

    def __init__(self, shown, files):
        self.shown, self.files = shown, files
        self.temp = f"{LS_ROOT}/jobs/{WORKSPACE}/{EXPERIMENT}/{shown['name']}"
        self.segment = shown["jobOutputDirectoryPathSegment"]

    def seen(self, name="stdout.txt"):
        return unpacked(self.files[name])

    def path(self, text):
        return text.replace("$AZ_BATCHAI_JOB_MOUNT_ROOT", self.temp + "/mounts").replace("$AZ_BATCHAI_MOUNT_ROOT", MOUNTS)

    def variables(self, hosts, index="0", **more):
        """Every variable of Batch AI that a process of this job has to have, and its value."""
        named = {
            "AZ_BATCHAI_ROOT": LS_ROOT,
            "AZ_BATCHAI_MOUNT_ROOT": MOUNTS,
            "AZ_BATCHAI_JOB_MOUNT_ROOT": self.temp + "/mounts",
            "AZ_BATCHAI_JOB_TEMP": self.temp,
            "AZ_BATCHAI_JOB_TEMP_DIR": self.temp,
            "AZ_BATCHAI_SHARED_JOB_TEMP": self.temp + "/shared",
            "AZ_BATCHAI_STDOUTERR_DIR": f"{self.path(self.shown['stdOutErrPathPrefix'])}/{self.segment}/stdouterr",
            "AZ_BATCHAI_MPI_HOST_FILE": self.temp + "/hostfile",
            "AZ_BATCH_HOST_LIST": ",".join(hosts),
            "AZ_BATCHAI_JOB_MASTER_NODE_IP": hosts[0],
            "AZ_BATCHAI_MPI_MASTER_NODE": hosts[0],
            "AZ_BATCHAI_TASK_INDEX": index,
        }
        for name in ("NUM_GPUS", "NUM_GPUS_PER_NODE", "GPU_COUNT_FOUND", "GPU_COUNT_NEED"):
            named["AZ_BATCHAI_" + name] = "0"
        for one in self.shown["inputDirectories"] or []:
            named["AZ_BATCHAI_INPUT_" + one["id"]] = self.path(one["path"])
        for one in self.shown["outputDirectories"] or []:
            suffix = "/" + one["pathSuffix"] if one["pathSuffix"] else ""
            named["AZ_BATCHAI_OUTPUT_" + one["id"]] = f"{self.path(one['pathPrefix'])}/{self.segment}/outputs{suffix}"
            named["AZ_BATCHAI_PREV_OUTPUT_" + one["id"]] = ""
        return {**named, **more}


class Examples(BatchAiCase):
    """On the cluster of cluster.json, with two more shares, and a folder of this machine in the place of a gluster volume."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.s.az("workspace", "create", "-n", WORKSPACE)
        cls.s.az("file-server", "create", "-n", "nas", "-f", EXAMPLES / "nfs.json")
        cls.s.put("nfs.main.nas", "setup.sh",
                  "#!/bin/sh\necho $MODE, ${#LICENCE} letters, $AZ_BATCHAI_NUM_GPUS cards\necho $AZ_BATCHAI_STDOUTERR_DIR\n"
                  "ls $AZ_BATCHAI_MOUNT_ROOT\necho oil >&2\nenv | grep AZ_BATCHAI_JOB | wc -l\n").chmod(0o755)
        cls.volume = os.path.join(cls.s.base, "volume")
        os.makedirs(cls.volume)
        cluster = {"properties": read("cluster.json")}
        volumes = cluster["properties"]["nodeSetup"]["mountVolumes"]
        if os.geteuid() == 0:
            volumes["unmanagedFileSystems"][0]["mountCommand"] = f"mount --bind {cls.volume}"
        else:
            del volumes["unmanagedFileSystems"]
        volumes["azureFileShares"] += [
            {"accountName": "lab", "azureFileUrl": f"https://lab.file.core.windows.net/{name}", "credentials": {},
             "relativeMountPath": name} for name in ("team", "external")]
        cls.created = cls.s.az("cluster", "create", "-n", "c1", "-f", cls.s.write("cluster.json", json.dumps(cluster)))
        cls.s.command("pip", 'echo "pip $*"\nexec env\n')
        cls.s.command("apt", 'echo "apt $*"\n')
        cls.s.command("cntk", 'exec python3 $HOME/cntk.py "$@"\n')
        cls.s.write("home/cntk.py", STAND_IN)
        cls.s.write("home/.bashrc", '[ -n "$PS1" ] && export INTERACTIVE=yes\nexport FROM_BASHRC=$((FROM_BASHRC + 1))\n')

    def run_example(self, name, properties, reads_files=True):
        self.s.create(name, properties)
        shown = self.s.wait_for_job(name)
        files = self.s.files(name) if reads_files else {}
        self.assertEqual(shown["executionState"], "succeeded", f"{json.dumps(shown['executionInfo'])}\n{files}")
        self.assertEqual(shown["executionInfo"]["exitCode"], 0)
        self.assertIsNone(shown["executionInfo"]["errors"])
        self.assertRegex(shown["jobOutputDirectoryPathSegment"],
                         f"^{GROUP_PATH}/experiments/{EXPERIMENT}/jobs/{name}/{UUID}$")
        return Job(shown, files)

    def seen_by_ranks(self, job):
        """What all ranks under an mpirun saw."""
        notes = self.s.store("nfs.main.nas", "seen", job.shown["name"])
        return [one for path in notes.iterdir() for one in unpacked(path.read_text())]

    def addresses(self, job):
        """node → address, of the nodes that the job ran on."""
        return {node["nodeId"]: node["ipAddress"] for node in self.s.az("job", "node", "list", "-j", job.shown["name"])}

    def hosts_of(self, job, seen):
        """The addresses, the master's first. All processes have to agree, and have to mean the nodes of the job."""
        [hosts] = {one["variables"]["AZ_BATCH_HOST_LIST"] for one in seen}
        addresses = self.addresses(job)
        self.assertEqual(sorted(hosts.split(",")), sorted(addresses.values()))
        self.assertEqual(len(addresses), job.shown["nodeCount"])
        lines = "".join(f"{host} slots=1 max-slots=1\n" for host in hosts.split(","))  # one where there are no GPUs
        for one in seen:
            self.assertEqual(one["host_file"], lines)
        return hosts.split(",")

    def assert_sees(self, job, one, hosts, index="0", **more):
        found = {name: value for name, value in one["variables"].items()
                 if name.startswith(("AZ_BATCH", "TF_CONFIG")) and not name.startswith("AZ_BATCHAI_STORAGE")}
        self.assertEqual(found, job.variables(hosts, index, **more))
        self.assertEqual(one["cwd"], job.temp)
        self.assertTrue(one["script"].startswith(LS_ROOT) or "cntk" in one["script"], one["script"])
        self.assertEqual(one["variables"]["FROM_BASHRC"], "1")
        self.assertEqual(one["variables"]["INTERACTIVE"], "yes")
        self.assertNotIn("PS1", one["variables"])
        self.assertEqual(one["variables"].get("CUDA_VISIBLE_DEVICES"), "")  # granted none: it sees none

    def address_of(self, job, one):
        return self.addresses(job)[one["variables"]["SLIPWAY_NODE"]]

    def assert_files(self, job, *streams, nodes=()):
        """The two streams of each name, and of each node its journal."""
        names = [f"{kind}{name}.txt" for name in streams for kind in ("stdout", "stderr")]
        names += [f"execution-{node}.log" for node in nodes] or ["execution.log"]
        self.assertEqual(sorted(job.files), sorted(names))

    # The set-up task

    def test_00_cluster(self):
        shown = self.s.shown_cluster()
        suffix = shown["nodeSetup"]["setupTask"]["stdOutErrPathSuffix"]
        self.assertRegex(suffix, f"^{GROUP_PATH}/clusters/c1/{UUID}$")
        self.assertEqual((shown["vmPriority"], shown["errors"]), ("lowpriority", None))
        self.assertEqual(shown["scaleSettings"]["autoScale"]["initialNodeCount"], 1)
        self.s.wait_for_cluster(idle=1)
        folder = self.s.store("nfs.main.nas", suffix)
        nodes = sorted(path.name[len("stdout-"):-len(".txt")] for path in folder.glob("stdout-*.txt"))
        self.assertTrue(nodes)
        volumes = ["afs", "bfs", "external", *(["gfs"] if os.geteuid() == 0 else []), "nfs", "team"]
        for node in nodes:
            self.assertEqual((folder / f"stdout-{node}.txt").read_text().splitlines(),
                             ["gpu, 14 letters, 0 cards", f"{MOUNTS}/nfs/{suffix}", *volumes, "0"])
            self.assertEqual((folder / f"stderr-{node}.txt").read_text(), "oil\n")
        listed = [file["name"] for file in self.s.az("cluster", "file", "list", "-c", "c1")]
        self.assertEqual(listed, sorted(f"{kind}-{node}.txt" for kind in ("stderr", "stdout") for node in nodes))

    # The ten

    def test_01_custom(self):
        self.s.put("lab.file.team", "code/fit.py", STAND_IN)
        job = self.run_example("custom", read("01-custom.json"))
        [one] = job.seen()
        hosts = self.hosts_of(job, [one])
        self.assert_sees(job, one, hosts)
        model = one["variables"]["AZ_BATCHAI_OUTPUT_MODEL"]
        self.assertEqual(one["argv"], ["--model", model])
        self.assertEqual(job.shown["toolType"], "custom")
        self.assert_files(job, "")
        self.assertEqual(self.s.files("custom", "MODEL"), {"fit.log": job.files["stdout.txt"]})
        self.assertTrue(self.s.store("lab.file.team", job.segment, "outputs/models/fit.log").exists())

    def test_01_custom_says_hi(self):
        properties = {**read("01-custom.json"), "customToolkitSettings": {"commandLine": "echo hi"}}
        job = self.run_example("hi", properties)
        self.assertEqual((job.files["stdout.txt"], job.files["stderr.txt"]), ("hi\n", ""))
        [file] = [one for one in self.s.az("job", "file", "list", "-j", "hi") if one["name"] == "stdout.txt"]
        self.assertEqual(file["contentLength"], 3)

    def test_02_tensorflow(self):
        self.s.put("lab.file.scripts", "digits/train.py", STAND_IN)
        job = self.run_example("tensorflow", read("02-tensorflow.json"))
        self.assert_files(job, "-wk-0", "-job_prep")
        [one] = job.seen("stdout-wk-0.txt")
        hosts = self.hosts_of(job, [one])
        [port] = re.findall(r":(\d+)$", one["variables"]["AZ_BATCHAI_WORKER_HOSTS"])
        worker = f"{hosts[0]}:{port}"
        config = {"cluster": {"worker": [worker]}, "task": {"type": "worker", "index": 0}, "environment": "cloud"}
        self.assert_sees(job, one, hosts, AZ_BATCHAI_PS_HOSTS="", AZ_BATCHAI_WORKER_HOSTS=worker,
                         TF_CONFIG=one["variables"]["TF_CONFIG"])
        self.assertEqual(json.loads(one["variables"]["TF_CONFIG"]), config)
        self.assertEqual((one["argv"], one["script"]), ([], f"{job.temp}/mounts/scripts/digits/train.py"))
        # The preparation: the same variables but those of processes, and its own files.
        output = job.files["stdout-job_prep.txt"].splitlines()
        self.assertEqual(output[0], "pip install tqdm")
        found = dict(line.split("=", 1) for line in output[1:] if "=" in line)
        wanted = job.variables(hosts)
        for name in ("AZ_BATCHAI_TASK_INDEX", "AZ_BATCHAI_JOB_MASTER_NODE_IP", "AZ_BATCHAI_MPI_MASTER_NODE",
                     "AZ_BATCHAI_GPU_COUNT_FOUND", "AZ_BATCHAI_GPU_COUNT_NEED"):
            del wanted[name]
        self.assertEqual({name: found.get(name) for name in wanted}, wanted)

    def test_03_tensorflow_parameter_server(self):
        script = STAND_IN + ALL_BEGIN + "import signal\nif '--job_name=ps' in sys.argv: signal.pause()\n"
        self.s.put("lab.blob.data", "code/replica.py", script)
        free = [port for port in range(PORTS_FROM, PORTS_FROM + 500) if can_listen(port)]
        job = self.run_example("replicas", read("03-tensorflow-ps.json"))
        nodes = self.addresses(job)
        self.assert_files(job, "-ps-0", "-wk-0", "-wk-1", "-wk-2", nodes=nodes)
        ps, *workers = [job.seen(f"stdout-{name}.txt")[0] for name in ("ps-0", "wk-0", "wk-1", "wk-2")]
        hosts = self.hosts_of(job, [ps, *workers])
        # Nodes of one machine share its ports: the count continues.
        ps_hosts = f"{hosts[0]}:{free[0]}"
        worker_hosts = ",".join(f"{host}:{port}" for host, port in zip(hosts, free[1:]))
        cluster = {"ps": [ps_hosts], "worker": worker_hosts.split(",")}
        settings = job.shown["tensorFlowSettings"]
        for one, role, index, host, arguments in (
            (ps, "ps", 0, hosts[0], settings["parameterServerCommandLineArgs"]),
            (workers[0], "worker", 0, hosts[0], settings["masterCommandLineArgs"]),
            (workers[1], "worker", 1, hosts[1], settings["workerCommandLineArgs"]),
            (workers[2], "worker", 2, hosts[2], settings["workerCommandLineArgs"]),
        ):
            config = one["variables"]["TF_CONFIG"]
            wanted = {"cluster": cluster, "task": {"type": role, "index": index}, "environment": "cloud"}
            self.assertEqual(json.loads(config), wanted)
            self.assertEqual(list(json.loads(config)), list(wanted), "the order of Batch AI")
            self.assert_sees(job, one, hosts, str(index), AZ_BATCHAI_PS_HOSTS=ps_hosts,
                             AZ_BATCHAI_WORKER_HOSTS=worker_hosts, TF_CONFIG=config)
            variables = one["variables"]
            self.assertEqual(one["argv"], re.sub(r"\$(\w+)", lambda name: variables[name[1]], arguments).split())
            self.assertEqual(self.address_of(job, one), host)
        self.assertTrue(self.s.store("lab.file.logs", job.segment, "outputs/models").is_dir())
        self.assertTrue(self.s.store("lab.file.logs", job.segment, "outputs/events").is_dir())

    def test_04_horovod(self):
        self.s.put("nfs.main.nas", "code/horovod/train.py", STAND_IN)
        job = self.run_example("horovod", read("04-horovod.json"))
        nodes = self.addresses(job)
        self.assert_files(job, "", *[f"-job_prep-{node}" for node in nodes], nodes=nodes)
        seen = self.seen_by_ranks(job)
        hosts = self.hosts_of(job, seen)
        self.assertEqual(len(seen), 8)
        for one in seen:
            self.assert_sees(job, one, hosts)
            self.assertEqual(one["argv"], ["--epochs", "3"])
        ranks = sorted((int(one["variables"].get("OMPI_COMM_WORLD_RANK") or one["variables"]["HOROVOD_RANK"]),
                        self.address_of(job, one)) for one in seen)
        self.assertEqual(ranks, [(rank, hosts[rank // 4]) for rank in range(8)])
        for node in nodes:
            self.assertEqual(job.files[f"stdout-job_prep-{node}.txt"].splitlines()[:3],
                             ["apt update", "apt install -y mpi-default-bin mpi-default-dev", "pip install horovod"])

    def test_05_pytorch(self):
        self.s.put("nfs.main.nas", "code/parallel.py", STAND_IN)
        job = self.run_example("pytorch", read("05-pytorch.json"))
        self.assert_files(job, "-0", "-1", nodes=self.addresses(job))
        seen = [job.seen(f"stdout-{rank}.txt")[0] for rank in (0, 1)]
        hosts = self.hosts_of(job, seen)
        [url] = {one["variables"]["AZ_BATCHAI_PYTORCH_INIT_METHOD"] for one in seen}
        self.assertRegex(url, f"^file://{job.temp}/shared/[^/]+$")
        for rank, one in enumerate(seen):
            self.assert_sees(job, one, hosts, str(rank), AZ_BATCHAI_PYTORCH_INIT_METHOD=url, AZ_BATCHAI_PYTORCH_BACKEND="gloo")
            self.assertEqual(one["argv"],
                             ["--world-size", "2", "--rank", str(rank), "--dist-backend", "gloo", "--dist-url", url])
            self.assertEqual(self.address_of(job, one), hosts[rank])
        self.assertEqual(job.shown["pyTorchSettings"]["processCount"], 2)

    def test_06_caffe2(self):
        self.s.put("nfs.main.nas", "code/shards.py", STAND_IN)
        job = self.run_example("caffe2", read("06-caffe2.json"))
        self.assert_files(job, "-0", "-1", nodes=self.addresses(job))
        seen = [job.seen(f"stdout-{rank}.txt")[0] for rank in (0, 1)]
        hosts = self.hosts_of(job, seen)
        for rank, one in enumerate(seen):
            self.assert_sees(job, one, hosts, str(rank))
            self.assertEqual(one["argv"], ["--num_shards", "2", "--shard_id", str(rank), "--run_id", "0",
                                           "--file_store_path", f"{job.temp}/shared"])
            self.assertEqual(self.address_of(job, one), hosts[rank])

    def test_07_cntk(self):
        job = self.run_example("cntk", read("07-cntk.json"))
        self.assert_files(job, "")
        [one] = job.seen()
        self.assert_sees(job, one, self.hosts_of(job, [one]))
        self.assertEqual(one["argv"], [f"configFile={MOUNTS}/external/cntk/net.cntk", "rootDir=.",
                                       f"dataDir={MOUNTS}/external/digits",
                                       f"outputDir={MOUNTS}/external/{job.segment}/outputs/Models"])
        self.assertEqual((job.shown["toolType"], job.shown["cntkSettings"]["languageType"]), ("cntk", "BrainScript"))

    @unittest.skipUnless(os.geteuid() == 0, "only root may mount")
    def test_08_chainer(self):
        logs, code = (os.path.join(self.volume, name) for name in ("logs", "code"))
        os.makedirs(logs)
        os.makedirs(os.path.join(code, "chainer"))
        with open(os.path.join(code, "chainer", "train.py"), "w") as file:
            file.write(STAND_IN)
        properties = read("08-chainer.json")
        for one, place in zip(properties["mountVolumes"]["unmanagedFileSystems"], (logs, code)):
            one["mountCommand"] = f"mount --bind {place}"
        job = self.run_example("chainer", properties, reads_files=False)
        # The service cannot see what the nodes mount by themselves, and says so.
        self.s.refused("batchai", "job", "file", "list", "-j", "chainer", says=["stdouterr", f"mount --bind {logs}"])
        folder = os.path.join(logs, job.segment, "stdouterr")
        for name in os.listdir(folder):
            with open(os.path.join(folder, name)) as file:
                job.files[name] = file.read()
        self.assert_files(job, "", nodes=self.addresses(job))
        seen = self.seen_by_ranks(job)
        hosts = self.hosts_of(job, seen)
        for one in seen:
            self.assert_sees(job, one, hosts)
            self.assertEqual(one["argv"], ["-g", "-o", f"{job.temp}/mounts/logs/{job.segment}/outputs"])
        self.assertEqual(sorted(self.address_of(job, one) for one in seen), sorted(hosts))
        self.assertEqual(job.shown["containerSettings"]["imageSourceRegistry"]["credentials"]["username"], "ci")

    def test_09_mpi(self):
        """With the machine's own mpirun, and every variable on every rank."""
        self.s.put("lab.file.logs", "code/label.py", STAND_IN)
        job = self.run_example("mpi", read("09-mpi.json"))
        self.assert_files(job, "", nodes=self.addresses(job))
        seen = sorted(self.seen_by_ranks(job), key=lambda one: int(one["variables"]["OMPI_COMM_WORLD_RANK"]))
        hosts = self.hosts_of(job, seen)
        self.assertEqual([one["variables"]["OMPI_COMM_WORLD_RANK"] for one in seen], ["0", "1", "2", "3"])
        self.assertEqual([self.address_of(job, one) for one in seen], hosts)
        for one in seen:
            self.assert_sees(job, one, hosts)
            self.assertEqual(one["argv"], ["--images", f"{job.temp}/mounts/logs/images", "--out",
                                           one["variables"]["AZ_BATCHAI_OUTPUT_LABELS"]])

    def test_10_mpirun_by_hand(self):
        """One rank a node, as that is what the host file has slots for where there are no GPUs."""
        self.s.put("nfs.main.nas", "code/train.py", STAND_IN)
        properties = read("10-mpirun.json")
        line = properties["customToolkitSettings"]["commandLine"]
        properties["customToolkitSettings"]["commandLine"] = line.replace("-np 8", "-np 2")
        job = self.run_example("by-hand", properties)
        self.assert_files(job, "", nodes=self.addresses(job))
        seen = self.seen_by_ranks(job)
        output = job.files["stdout.txt"].splitlines()
        hosts = output[2].split(",")
        self.assertEqual(output[:3], [*(f"{host} slots=1 max-slots=1" for host in hosts), ",".join(hosts)])
        self.assertEqual(sorted(self.addresses(job).values()), sorted(hosts))
        self.assertEqual(sorted(one["variables"]["OMPI_COMM_WORLD_RANK"] for one in seen), ["0", "1"])
        self.assertEqual(sorted(self.address_of(job, one) for one in seen), sorted(hosts))
        for one in seen:
            self.assertEqual(one["variables"]["RATE"], "0.1")
            self.assertEqual(one["variables"]["RUN_DIR"], f"{MOUNTS}/nfs/{job.segment}/outputs/m/run")
        self.assertEqual((job.shown["schedulingPriority"], job.shown["constraints"]["maxWallClockTime"]), ("high", "PT6H"))
        self.assertEqual(job.files["stdout.txt"].count("seen:"), 2)
        self.assertEqual(job.shown["secrets"], [{"name": "TOKEN", "value": None, "valueSecretReference": None}])

    def test_11_hosts_reach_each_other_by_ssh(self):
        properties = {**read("10-mpirun.json"), "customToolkitSettings": {
            "commandLine": "for host in ${AZ_BATCH_HOST_LIST//,/ }; do ssh $host 'echo $SLIPWAY_NODE'; done"}}
        job = self.run_example("ssh", properties)
        self.assertEqual(sorted(job.files["stdout.txt"].split()), sorted(self.addresses(job)))


if __name__ == "__main__":
    unittest.main()
