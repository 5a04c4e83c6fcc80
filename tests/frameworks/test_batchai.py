"""Batch AI's published walk-through, line by line with `az` leading to slipway, with real frameworks."""
import json
import os
import pathlib
import re
import subprocess
import unittest

from training import PATIENCE, ROOT, folder_of_python

from harness import SLIPWAY, Service

EXAMPLES = os.path.join(ROOT, "examples", "batchai")
MNIST = os.path.join(os.path.dirname(ROOT), "shared", "data", "mnist")
FILES = [f"{which}-{what}-ubyte.gz" for which in ("train", "t10k") for what in ("images-idx3", "labels-idx1")]

TRANSCRIPT = """set -e
az() { "$SLIPWAY" "$@"; }
az group create --name myResourceGroup --location eastus
az configure --defaults group=myResourceGroup location=eastus
az storage share create --name batchaisample
az storage directory create --share-name batchaisample --name mnist_dataset
az storage file upload --share-name batchaisample --source train-images-idx3-ubyte.gz --path mnist_dataset
az storage file upload --share-name batchaisample --source train-labels-idx1-ubyte.gz --path mnist_dataset
az storage file upload --share-name batchaisample --source t10k-images-idx3-ubyte.gz --path mnist_dataset
az storage file upload --share-name batchaisample --source t10k-labels-idx1-ubyte.gz --path mnist_dataset
az storage directory create --share-name batchaisample --name tensorflow_samples
az storage file upload --share-name batchaisample --source mnist_replica.py --path tensorflow_samples
az batchai cluster create -n nc6 -i UbuntuDSVM -s Standard_NC6 --min 2 --max 2 --afs-name batchaisample --afs-mount-path external -u $USER -k ~/.ssh/id_rsa.pub
az batchai job create -n distributed_tensorflow --cluster-name nc6 -c job.json
az batchai job stream-file --job-name distributed_tensorflow --output-directory-id stdouterr --name stderr-wk-0.txt > stream.txt
az batchai job list -o table
az batchai job file list -j distributed_tensorflow -d MODEL -o table
"""

# Digits that were drawn, in files like those of MNIST.
DRAW = """import gzip, struct, sys
import digits
for which, (x, y) in {"train": digits._draw(12000, 1), "t10k": digits._draw(2000, 2)}.items():
    with gzip.open(which + "-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">4i", 2051, len(y), 28, 28) + (x * 255).astype("uint8").tobytes())
    with gzip.open(which + "-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">2i", 2049, len(y)) + y.astype("uint8").tobytes())
"""

# How many of the test's digits the model in a folder reads right, reckoned without TensorFlow's graphs.
JUDGE = """import gzip, sys
import numpy as np, tensorflow as tf
model = tf.train.load_checkpoint(tf.train.latest_checkpoint(sys.argv[1]) or sys.argv[2])
w = {name: model.get_tensor(name) for name in ("hid_w", "hid_b", "sm_w", "sm_b")}
x = np.frombuffer(gzip.open("t10k-images-idx3-ubyte.gz").read(), np.uint8, offset=16).reshape(-1, 784) / 255
y = np.frombuffer(gzip.open("t10k-labels-idx1-ubyte.gz").read(), np.uint8, offset=8)
print((np.argmax(np.maximum(x @ w["hid_w"] + w["hid_b"], 0) @ w["sm_w"] + w["sm_b"], 1) == y).mean())
"""

# Two ranks that meet at a file and add up what they have.
PARALLEL = """import argparse, torch, torch.distributed as dist
parser = argparse.ArgumentParser()
for name in ("--world-size", "--rank"): parser.add_argument(name, type=int)
for name in ("--dist-backend", "--dist-url"): parser.add_argument(name)
o = parser.parse_args()
dist.init_process_group(o.dist_backend, init_method=o.dist_url, rank=o.rank, world_size=o.world_size)
sum = torch.tensor([float(o.rank + 1)])
dist.all_reduce(sum)
print("rank", o.rank, "of", dist.get_world_size(), "has", sum.item(), "by", o.dist_url, flush=True)
"""


class BatchAi(unittest.TestCase):
    def start(self, framework):
        python = folder_of_python(framework)
        self.python = os.path.join(python, "python3")
        self.s = Service(start=False)
        self.addCleanup(self.s.close)
        home = pathlib.Path(self.s.home)
        (home / ".ssh").mkdir()
        (home / ".ssh" / "id_rsa.pub").write_text("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDexample lab\n")
        self.s.variables = {"USER": "lab", "PATH": python + ":" + os.environ["PATH"],
                            "SLIPWAY_BATCHAI_CONTAINERS": "host"}
        self.s.up()

    def shell(self, *words, timeout=6 * PATIENCE, **more):
        done = subprocess.run(words, cwd=self.s.base, env=self.s.environment(SLIPWAY=SLIPWAY, **more), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False)
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
        return done.stdout

    def put_digits(self):
        if os.path.exists(os.path.join(MNIST, FILES[0])):
            for name in FILES:
                os.symlink(os.path.join(MNIST, name), os.path.join(self.s.base, name))
        else:
            self.shell(self.python, "-c", DRAW, PYTHONPATH=os.path.join(ROOT, "examples", "toolkits"))

    def test_walk_through(self):
        self.start("tensorflow")
        self.put_digits()
        for name in ("job.json", "mnist_replica.py"):
            os.symlink(os.path.join(EXAMPLES, name), os.path.join(self.s.base, name))
        output = self.shell("bash", "-c", TRANSCRIPT)
        streamed = pathlib.Path(self.s.base, "stream.txt").read_text()
        job = self.s.ok("batchai", "job", "show", "-n", "distributed_tensorflow").json
        self.assertEqual((job["executionState"], job["executionInfo"]["exitCode"]), ("succeeded", 0), streamed)
        self.assertRegex(output, r"distributed_tensorflow +nc6 .* tensorflow +2  succeeded +0")
        self.assertIn("model.ckpt-", output)
        self.assertRegex(streamed, r"Worker 0: training step 100 done")
        self.assertRegex(streamed, r"Training elapsed time: ")
        self.assertGreater(float(re.search(r"test accuracy = ([\d.]+)", streamed)[1]), 0.85, streamed)
        # Both took part, and the server that never ends was ended.
        other = self.s.ok("batchai", "job", "file", "stream", "-j", "distributed_tensorflow", "-f", "stderr-wk-1.txt").out
        steps = [int(re.search(r", (\d+) steps of", text)[1]) for text in (streamed, other)]
        self.assertGreater(min(steps), 0)
        # The model comes home and is good.
        folder = f"{job['jobOutputDirectoryPathSegment']}/outputs/models"
        os.makedirs(os.path.join(self.s.home, "model"))
        names = self.s.ok("storage", "file", "list", "--share-name", "batchaisample", "--path", folder, "--query", "[].name").json
        for name in names:
            self.s.ok("storage", "file", "download", "--share-name", "batchaisample", "--path", f"{folder}/{name}",
                      "--dest", os.path.join(self.s.home, "model", name))
        # The checkpoint file names the place of the training; the model is beside it.
        [index] = [name for name in names if name.endswith(".index")]
        place = os.path.join(self.s.home, "model")
        judged = self.shell(self.python, "-c", JUDGE, place, os.path.join(place, index[: -len(".index")]),
                            TF_CPP_MIN_LOG_LEVEL="3")
        self.assertGreater(float(judged.split()[-1]), 0.85)

    def test_pytorch_ranks_meet_at_a_file(self):
        """05-pytorch.json, with its code on the file server."""
        self.start("torch")
        az = ("batchai",)
        self.s.ok(*az, "file-server", "create", "-n", "nas", "-f", os.path.join(EXAMPLES, "nfs.json"))
        self.s.ok("datastore", "upload", "nfs.default.nas", self.s.write("parallel.py", PARALLEL), "code/parallel.py")
        self.s.ok(*az, "cluster", "create", "-n", "c1", "-s", "STANDARD_D2", "-t", "2", "-u", "lab", "-p", "x", "--nfs", "nas")
        with open(os.path.join(EXAMPLES, "05-pytorch.json")) as file:
            job = json.load(file)
        del job["properties"]["containerSettings"]
        job["properties"]["pyTorchSettings"]["pythonInterpreterPath"] = self.python  # no container that has PyTorch
        self.s.ok(*az, "job", "create", "-n", "ranks", "-c", "c1", "-f", self.s.write("ranks.json", json.dumps(job)))
        self.s.ok(*az, "job", "wait", "-n", "ranks", timeout=6 * PATIENCE)
        for rank in (0, 1):
            output = self.s.ok(*az, "job", "file", "stream", "-j", "ranks", "-f", f"stdout-{rank}.txt").out
            self.assertRegex(output, rf"rank {rank} of 2 has 3.0 by file:///mnt/batch/tasks/shared/LS_root/jobs/.*/shared/")


if __name__ == "__main__":
    unittest.main()
