"""Gangs: environment of each rank, start together, completion, failure, stalls, elastic growth, recovery."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import unittest

from harness import SLIPWAY, SharedServiceCase, SlipwayCase, blocker, job, shell, wait_until

SUM = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, size, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank=%d size=%d sum=%d node=%s\\n", rank, size, sum, getenv("SLIPWAY_NODE"));
  fflush(stdout);
  if (argc > 1 && rank == size - 1) { fprintf(stderr, "rank %d gives up\\n", rank); return atoi(argv[1]); }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""


def role(count, command, **more):
    return {"count": count, "command": command, **more}


def compile_mpi(folder):
    source = os.path.join(folder, "sum.c")
    with open(source, "w") as file:
        file.write(SUM)
    subprocess.run(["mpicc", "-o", os.path.join(folder, "sum"), source], check=True)
    return os.path.join(folder, "sum")


class Gangs(SharedServiceCase):
    pool_nodes = 4

    def run_job(self, *tasks, **more):
        submitted = self.s.submit(job(*tasks, **more))
        return submitted, self.s.wait_for(submitted)

    def attempts(self, submitted, task):
        return self.s.get(f"/v1/jobs/{submitted}/tasks/{task}")["history"]

    def test_tensorflow_ends_with_its_chief(self):
        show = "echo \"$TF_CONFIG\"; echo {ps_hosts} {worker_hosts} {role} {index}"
        submitted, ended = self.run_job({
            "name": "train", "toolkit": "tensorflow", "roles": {
                "chief": role(1, f"{show}; exit 0", resources={"cores": 0.5}),
                "worker": role(2, f"{show}; sleep 0.3; echo finished", resources={"cores": 0.5}),
                "ps": role(1, f"{show}; exec sleep 1000", resources={"cores": 0.5}),
                "evaluator": role(1, f"{show}; exit 9", resources={"cores": 0.5})}})
        self.assertEqual(ended["state"], "succeeded", ended)
        task = self.s.get(f"/v1/jobs/{submitted}/tasks/train")
        self.assertEqual(task["process_names"], ["chief-0", "worker-0", "worker-1", "ps-0", "evaluator-0"])
        seen = {name: self.s.log(submitted, "train", process=name).split("\n") for name in task["process_names"]}
        configs = {name: json.loads(lines[0]) for name, lines in seen.items()}
        cluster = configs["ps-0"]["cluster"]
        self.assertEqual({kind: len(hosts) for kind, hosts in cluster.items()}, {"chief": 1, "ps": 1, "worker": 2})
        every = [host for hosts in cluster.values() for host in hosts]
        self.assertEqual(len({host.rsplit(":", 1)[1] for host in every}), 4, "no port twice on this machine")
        for name, config in configs.items():
            kind, index = name.rsplit("-", 1)
            self.assertEqual(config, {"cluster": cluster, "task": {"type": kind, "index": int(index)}, "environment": "cloud"})
            self.assertEqual(seen[name][1], " ".join([",".join(cluster["ps"]), ",".join(cluster["worker"]), kind, index]))
        self.assertEqual(seen["worker-1"][2], "finished", "workers get their grace")
        out = self.s.ok("logs", f"{submitted}/train/worker-1").out
        self.assertTrue(out.endswith("worker 1\nfinished\n"), out)
        together = self.s.ok("logs", f"{submitted}/train").out.splitlines()
        self.assertIn("[worker-1] finished", together)
        self.s.refused("logs", f"{submitted}/train/worker-7", says=["worker-7"])

    def test_a_worker_that_outlives_its_grace_is_stopped(self):
        submitted, ended = self.run_job({
            "name": "t", "toolkit": "tensorflow", "end_grace": "0.2s", "roles": {
                "worker": role(2, "[ {index} = 0 ] || exec sleep 1000"), "ps": role(1, "exec sleep 1000")}})
        self.assertEqual(ended["state"], "succeeded", ended)

    def test_a_server_that_dies_first_fails_the_attempt(self):
        submitted, ended = self.run_job({
            "name": "t", "toolkit": "tensorflow", "roles": {
                "worker": role(2, "exec sleep 1000"), "ps": role(1, "echo out of disk >&2; exit 4")}})
        self.assertEqual(ended["state"], "failed")
        task = self.s.get(f"/v1/jobs/{submitted}/tasks/t")
        self.assertRegex(task["reason"], r"^ps-0 on lab-\d exited with code 4$")
        self.assertEqual(task["exit_code"], 4)
        self.assertEqual(task["last_lines"], "out of disk")

    def test_the_rank_that_failed_is_named_with_its_last_lines(self):
        noise = "for i in $(seq 30); do echo line $i >&2; done"
        submitted, ended = self.run_job(
            shell("t", f"{noise}; [ {{rank}} = 2 ] && exit 3; exec sleep 1000", nodes=4, toolkit="torch"))
        self.assertEqual(ended["state"], "failed")
        task = self.s.get(f"/v1/jobs/{submitted}/tasks/t")
        self.assertEqual(task["reason"], "rank 2 on lab-3 exited with code 3")
        lines = "\n".join(f"line {i}" for i in range(11, 31))
        self.assertEqual(task["last_lines"], lines)
        self.assertIn("line 30", self.s.ok("task", "show", f"{submitted}/t").out)
        self.assertIn("line 30", self.s.ok("job", "why", submitted).out)

    def test_the_next_attempt_finds_the_checkpoints(self):
        submitted, ended = self.run_job(
            shell("t", "cat $SLIPWAY_CHECKPOINT_DIR/step-{rank} 2>/dev/null; echo $SLIPWAY_ATTEMPT > $SLIPWAY_CHECKPOINT_DIR/step-{rank};"
                       "[ $SLIPWAY_ATTEMPT = 1 ] && [ {rank} = 0 ] && exit 1; exit 0",
                  nodes=2, toolkit="torch", retries=1))
        self.assertEqual(ended["state"], "succeeded", ended)
        self.assertEqual(self.s.log(submitted, "t", process=0, attempt=2), "1\n")
        first, second = self.attempts(submitted, "t")
        self.assertEqual((first["end"], first["exit_code"], second["end"]), ("exited", 1, "exited"))

    def test_nothing_starts_before_every_node_is_ready(self):
        wait, go = blocker(self.s.base, "capacity")
        holders = [self.s.submit(job(shell("hold", wait))) for _ in range(4)]
        for one in holders:
            self.s.wait_for(one, "running")
        self.s.write("code/main.txt", "hello\n")
        file = self.s.write("gang.yaml", "source: ./code\ntasks:\n  - {name: gang, nodes: 4, retries: 1, command: cat main.txt}\n")
        gang = self.s.ok("job", "submit", file).out.strip()
        blobs = os.path.join(self.s.data, "blobs")
        shutil.move(blobs, blobs + ".away")
        try:
            go()
            failed = wait_until(lambda: [one for one in self.attempts(gang, "gang") if one["end"]], what="an attempt that failed")[0]
        finally:
            shutil.rmtree(blobs, ignore_errors=True)
            shutil.move(blobs + ".away", blobs)
        self.assertEqual(failed["end"], "start_failed")
        self.assertRegex(failed["detail"], r"^node lab-\d could not get ready for it: its files could not be laid out: ")
        self.assertIsNone(failed["started_at"])
        self.assertEqual(self.s.wait_for(gang)["state"], "succeeded")
        self.assertEqual(self.s.task(gang, "gang")["retries_used"], 1, "code that is missing for good would be tried without end")
        self.assertEqual(self.s.log(gang, "gang", process=3), "hello\n")

    def test_taken_port_is_reported_and_retried(self):
        wait, go = blocker(self.s.base, "port")
        submitted = self.s.submit(job(shell(
            "t", f"echo $MASTER_PORT; [ $SLIPWAY_ATTEMPT = 1 ] || exit 0; [ {{rank}} = 0 ] || exec sleep 1000; {wait}; exit 1",
            nodes=2, toolkit="torch")))
        port = int(wait_until(lambda: self.s.log(submitted, "t"), what="the port"))
        with socket.socket() as thief:
            thief.bind(("127.0.0.1", port))
            thief.listen()
            go()
            ended = self.s.wait_for(submitted)
        self.assertEqual(ended["state"], "succeeded", ended)
        first = self.attempts(submitted, "t")[0]
        self.assertEqual(first["end"], "start_failed")
        self.assertIn(f"port {port}, found for it, was taken by another program", first["detail"])
        self.assertEqual(self.s.task(submitted, "t")["retries_used"], 0)

    def test_stalled_gang_is_ended_and_its_ranks_are_named(self):
        submitted, ended = self.run_job(shell("t", "exec sleep 1000", nodes=2, toolkit="torch", silence_timeout="0.6s"))
        self.assertEqual(ended["state"], "failed")
        first = self.attempts(submitted, "t")[0]
        self.assertEqual(first["end"], "timed_out")
        self.assertEqual(first["detail"], "no output and no CPU time for 600 ms: rank 0 on lab-1, rank 1 on lab-2")

    def test_cpu_time_or_output_is_no_stall(self):
        submitted, ended = self.run_job(
            shell("busy", "[ {rank} = 0 ] && exec sleep 1000; while :; do :; done", nodes=2, toolkit="torch",
                  silence_timeout="1s", max_wall_time="4s"),
            shell("talks", "for i in $(seq 13); do echo $i; sleep 0.3; done", silence_timeout="3s"))
        self.assertIn("max_wall_time", self.attempts(submitted, "busy")[0]["detail"])
        self.assertEqual(self.s.task(submitted, "talks")["state"], "succeeded")

    def test_files_go_into_the_working_folder(self):
        self.s.write("one/train.sh", "#!/bin/sh\necho $(cat data/rate.txt) of {rank}\n")
        os.chmod(os.path.join(self.s.base, "one/train.sh"), 0o755)
        self.s.write("one/rate.txt", "0.5")
        file = self.s.write("one/job.yaml", "tasks:\n  - name: t\n    nodes: 2\n    toolkit: hostfile\n    command: [./train.sh]\n"
                                            "    files: {train.sh: ./train.sh, data/rate.txt: rate.txt}\n")
        submitted = self.s.ok("job", "submit", file, "--wait").out.strip()
        self.assertEqual(self.s.log(submitted, "t", process=1), "0.5 of {rank}\n")

    def test_a_host_file_names_hosts_and_slots(self):
        submitted, ended = self.run_job(
            shell("t", "cat $SLIPWAY_HOSTFILE; echo $RANK $WORLD_SIZE $CROSS_RANK $OMP_NUM_THREADS $PYTHONUNBUFFERED",
                  toolkit="hostfile", nodes=2, processes_per_node=2, resources={"cores": 0.5}))
        self.assertEqual(ended["state"], "succeeded", ended)
        self.assertRegex(self.s.log(submitted, "t", process=3),
                         r"^127\.64\.0\.\d+ slots=2\n127\.64\.0\.\d+ slots=2\n3 4 1 1 1\n$")

    def test_a_command_that_cannot_be_executed_says_which_path(self):
        self.s.write("plain/notes.txt", "no program\n")
        file = self.s.write("plain/job.yaml", "tasks:\n  - {name: t, nodes: 2, toolkit: torch, command: [./notes.txt], files: {notes.txt: notes.txt}}\n")
        submitted = self.s.run("job", "submit", file, "--wait").out.strip()
        reason = self.s.task(submitted, "t")["reason"]
        self.assertIn("./notes.txt", reason)
        self.assertIn("Permission denied", reason)

    def test_openmpi_over_four_nodes(self):
        program = compile_mpi(self.s.base)
        submitted, ended = self.run_job(shell("sum", [program], toolkit="mpi", nodes=4, processes_per_node=2, resources={"cores": 0.5}))
        self.assertEqual(ended["state"], "succeeded", self.s.log(submitted, "sum", stream="stderr"))
        lines = sorted(self.s.log(submitted, "sum", process="launcher").split("\n")[:-1])
        self.assertEqual(lines, [f"rank={rank} size=8 sum=28 node=lab-{rank // 2 + 1}" for rank in range(8)])

    def test_a_rank_of_mpi_that_fails_ends_the_task(self):
        program = compile_mpi(self.s.base)
        submitted, ended = self.run_job(shell("sum", [program, "5"], toolkit="mpi", nodes=3))
        self.assertEqual(ended["state"], "failed")
        task = self.s.get(f"/v1/jobs/{submitted}/tasks/sum")
        self.assertEqual((task["exit_code"], task["history"][0]["process"]), (5, "launcher"))
        self.assertIn("rank 2 gives up", self.s.log(submitted, "sum", stream="stderr"))

    def test_missing_mpirun_is_reported(self):
        submitted, ended = self.run_job(shell("t", ["true"], toolkit="mpi", environment={"PATH": "/nowhere"}))
        self.assertEqual(ended["state"], "failed")
        self.assertRegex(self.s.get(f"/v1/jobs/{submitted}/tasks/t")["last_lines"],
                         r"(?s)mpirun is not on node lab-\d.*openmpi-bin")

    def test_bad_gangs_are_refused_with_a_reason(self):
        def refused(task, *says):
            answer = self.s.ask("POST", "/v1/jobs", {"tasks": [{"name": "t", **task}]})
            self.assertEqual(answer.status, 400, answer)
            for text in says:
                self.assertIn(text, answer.json["detail"] + " " + answer.json["hint"])

        one = role(1, "true")
        refused({"command": "true", "toolkit": "caffe"}, "no toolkit 'caffe'", "tensorflow, horovod, mpi, torch, jax")
        refused({"toolkit": "mpi", "roles": {"worker": one}}, "toolkit mpi has no roles", "processes_per_node")
        refused({"toolkit": "tensorflow", "roles": {"worker": role(0, "true"), "ps": one}}, "role worker has a count of 0")
        refused({"toolkit": "tensorflow", "roles": {"ps": one}}, "no worker")
        refused({"toolkit": "tensorflow", "roles": {"worker": one, "boss": one}}, "no role boss", "chief, worker, ps and evaluator")
        refused({"toolkit": "tensorflow", "roles": {"worker": one}, "ends_with": "chief"}, "ends with role chief", "worker")
        refused({"toolkit": "tensorflow", "roles": {"worker": role(2, "true", resources={"cores": 3})}}, "no node of pool lab has that much")
        refused({"toolkit": "tensorflow", "roles": {"worker": role(9, "true")}}, "needs 9 nodes", "pool resize lab")
        refused({"toolkit": "tensorflow", "roles": {"worker": {"count": 1}}}, "role worker has no command")
        refused({"toolkit": "tensorflow", "roles": {"worker": one}, "command": "true"}, "a command and roles")
        refused({"toolkit": "torch", "command": "true", "nodes": {"min": 3, "max": 2}}, "min 3 is above max 2")
        refused({"toolkit": "jax", "command": "true", "launcher": "torchrun"}, "torchrun needs toolkit torch")
        refused({"toolkit": "torch", "command": "true", "nodes": {"min": 1, "max": 2}, "elastic": "framework"},
                "one that can continue with other nodes", "launcher: torchrun")
        refused({"toolkit": "horovod", "command": "true", "nodes": 2, "elastic": "framework"}, "a number of nodes that may change")
        refused({"toolkit": "torch", "command": "true", "elastic": "always"}, "elastic cannot be 'always'", "framework")
        refused({"command": "true", "container": {}}, "names nothing to run in")
        refused({"command": "true", "container": {"image": "a", "rootfs": "/b"}}, "an image and a rootfs")
        refused({"command": "true", "files": {"a": "b"}}, "files")

    def test_a_file_that_is_not_there_is_refused_before_anything_is_sent(self):
        before = self.s.get("/v1/jobs")["items"]
        file = self.s.write("f/job.yaml", "tasks:\n  - {name: t, command: 'true', files: {train.py: ./train.py}}\n")
        self.s.refused("job", "submit", file, says=["train.py", "No such file", "beside the job file"])
        self.assertEqual(len(self.s.get("/v1/jobs")["items"]), len(before))


class StartAndElasticity(SlipwayCase):
    def test_start_timeout_names_the_missing_nodes(self):
        s = self.service()
        s.ok("pool", "create", "lab", "--nodes", 2, "--cores-per-node", 1, "--overcommit", "--lost-after", "60s")
        s.wait_for_nodes(2)
        agent = s.agent("lab-2")
        s.kill(agent, sig=19)
        self.addCleanup(s.kill, agent, sig=18)
        submitted = s.submit(job(shell("t", "true", nodes=2, toolkit="torch", start_timeout="2s")))
        wait_until(lambda: s.task(submitted, "t")["reason"], what="the time-out")
        self.assertEqual(s.task(submitted, "t")["reason"],
                         "not all had started within start_timeout: rank 0 on lab-1 (was ready), rank 1 on lab-2 (never got ready)")
        s.kill(agent, sig=18)
        self.assertEqual(s.wait_for(submitted)["state"], "failed")

    def test_elastic_gang_starts_with_free_nodes_and_grows(self):
        s = self.service()
        s.pool("lab", 1)
        submitted = s.submit(job(shell("t", "echo $WORLD_SIZE; [ $WORLD_SIZE = 3 ] || exec sleep 1000", toolkit="torch",
                                       nodes={"min": 1, "max": 3})))
        wait_until(lambda: s.log(submitted, "t") == "1\n", what="a world of one")
        s.ok("pool", "resize", "lab", "--nodes", 3)
        self.assertEqual(s.wait_for(submitted)["state"], "succeeded")
        task = s.get(f"/v1/jobs/{submitted}/tasks/t")
        self.assertEqual(task["retries_used"], 0)
        self.assertEqual({one["end"] for one in task["history"][:-1]}, {"evicted"})
        self.assertEqual(len(task["history"][-1]["nodes"]), 3)

    def test_elastic_gang_continues_with_fewer_nodes_after_a_loss(self):
        s = self.service()
        s.pool("lab", 2)
        submitted = s.submit(job(shell("t", "echo $WORLD_SIZE; [ $WORLD_SIZE = 1 ] || exec sleep 1000", toolkit="torch",
                                       nodes={"min": 1, "max": 2})))
        wait_until(lambda: s.log(submitted, "t") == "2\n", what="a world of two")
        s.ok("pool", "resize", "lab", "--nodes", 1)
        self.assertEqual(s.wait_for(submitted)["state"], "succeeded")
        self.assertEqual(s.task(submitted, "t")["retries_used"], 0)

    def test_running_gang_is_adopted_after_the_service_is_killed(self):
        s = self.service()
        s.pool("lab", 3)
        wait, go = blocker(s.base)
        submitted = s.submit(job({"name": "t", "toolkit": "tensorflow", "roles": {
            "worker": role(2, wait), "ps": role(1, "exec sleep 1000")}}))
        s.wait_for_task(submitted, "t", "running")
        s.kill_service()
        s.up()
        go()
        self.assertEqual(s.wait_for(submitted)["state"], "succeeded")
        self.assertEqual(s.task(submitted, "t")["attempts"], 1)


class SeveralMachines(SlipwayCase):
    """Three network namespaces on a bridge, each with an agent of its own."""

    def setUp(self):
        made = subprocess.run(["ip", "netns", "add", f"slw{os.getpid()}-0"], capture_output=True, text=True, check=False) \
            if shutil.which("ip") else None
        if made is None or made.returncode != 0:
            self.skipTest("network namespaces are not allowed here" + (": " + made.stderr.strip() if made else ": no ip program"))
        self.spaces = [f"slw{os.getpid()}-{i}" for i in range(3)]
        self.bridge = f"slwbr{os.getpid() % 100000}"
        self.addCleanup(self.take_down)
        net = f"10.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250}"
        self.ip("link", "add", self.bridge, "type", "bridge")
        self.ip("addr", "add", f"{net}.254/24", "dev", self.bridge)
        self.ip("link", "set", self.bridge, "up")
        for i, space in enumerate(self.spaces):
            if i > 0:
                self.ip("netns", "add", space)
            outside = f"slw{os.getpid() % 100000}v{i}"
            self.ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", space)
            self.ip("link", "set", outside, "master", self.bridge, "up")
            self.ip("-n", space, "addr", "add", f"{net}.{i + 1}/24", "dev", "eth0")
            self.ip("-n", space, "link", "set", "eth0", "up")
            self.ip("-n", space, "link", "set", "lo", "up")
        self.net = net

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    def take_down(self):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "delete", space], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", self.bridge], capture_output=True, check=False)

    def test_openmpi_over_three_machines(self):
        s = self.service(listen="0.0.0.0:0", arguments=["--insecure"])
        s.ok("pool", "create", "far", "--provisioner", "none")
        token = os.path.join(s.base, "join.token")
        s.ok("token", "create", "joiner", "--role", "node", "--uses", 3, "--to", token)
        for i, space in enumerate(self.spaces):
            folder = os.path.join(s.base, f"machine-{i}")
            child = subprocess.Popen(
                ["ip", "netns", "exec", space, SLIPWAY, "node", "run", "--service", f"http://{self.net}.254:{s.port}", "--token-file", token, "--pool", "far",
                 "--name", f"far-{i}", "--folder", folder, "--cores", "2"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "SLIPWAY_HOME": folder})
            self.addCleanup(self.end_agent, child)
        s.wait_for_nodes(3, "far")
        program = compile_mpi(s.base)
        submitted = s.submit(job(shell("sum", [program], toolkit="mpi", nodes=3, processes_per_node=2), pool="far"))
        ended = s.wait_for(submitted)
        self.assertEqual(ended["state"], "succeeded", self.s_log(s, submitted))
        lines = sorted(s.log(submitted, "sum", process="launcher").split("\n")[:-1])
        nodes = s.task(submitted, "sum")["nodes"]  # in the order they joined
        self.assertEqual(lines, [f"rank={rank} size=6 sum=15 node={nodes[rank // 2]}" for rank in range(6)])

    @staticmethod
    def end_agent(child):
        child.terminate()  # its keeper goes with it when it has nothing to keep
        child.wait()
        child.stdout.close()

    @staticmethod
    def s_log(s, submitted):
        with contextlib.suppress(AssertionError):
            return s.log(submitted, "sum", stream="stderr")
        return ""


if __name__ == "__main__":
    unittest.main()
