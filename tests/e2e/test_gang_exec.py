"""Commands on sibling nodes, mpirun and Horovod through them: the programs of a gang, started by hand on loopback.

The variables are those the control plane gives to each process of such a task.
"""

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import textwrap
import threading
import unittest

from harness import SLIPWAY, NeverHappened, Ran, is_alive, processes_of, wait_until

SECRET = "5ec2e7" * 6
NETWORK = f"127.65.{os.getpid() % 256}"  # of this test alone: ports found free stay so

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
  printf("rank=%d size=%d sum=%d node=%s mine=%s parent=%d\\n", rank, size, sum, getenv("SLIPWAY_NODE"), getenv("MINE"),
         getppid());
  fflush(stdout);
  if (argc > 1 && rank == size - 1) exit(atoi(argv[1]));
  if (argc > 1) for (;;) pause();
  MPI_Finalize();
  return 0;
}
"""

# Plays Horovod's client of the key-value store: puts its own value, waits for everyone's, says it is done.
STORE_CLIENT = """
import http.client, os, sys, time
def ask(method, path, body=None):
    server = http.client.HTTPConnection(os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"],
                                        int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"]), timeout=30)
    server.request(method, path, body)
    answer = server.getresponse()
    return answer.status, answer.read()
rank, size = int(os.environ["HOROVOD_RANK"]), int(os.environ["HOROVOD_SIZE"])
assert ask("GET", "/global/never")[0] == 404
assert ask("GET", "/short")[0] == 400
assert ask("PUT", "/global/big", b"x" * (2 << 20))[0] == 413
assert ask("PUT", f"/global/{rank}", f"value {rank}".encode())[0] == 200
total = 0
for other in range(size):
    while True:
        status, value = ask("GET", f"/global/{other}")
        if status == 200:
            break
        assert status == 404, status
        time.sleep(0.01)
    total += int(value.split()[1])
print(f"rank {rank} of {size} total {total} on {os.environ['SLIPWAY_NODE']} as {os.environ['HOROVOD_HOSTNAME']}"
      f" local {os.environ['HOROVOD_LOCAL_RANK']}/{os.environ['HOROVOD_LOCAL_SIZE']}"
      f" cross {os.environ['HOROVOD_CROSS_RANK']}/{os.environ['HOROVOD_CROSS_SIZE']}"
      f" by {os.environ['HOROVOD_GLOO_IFACE']} {os.environ['NCCL_SOCKET_IFNAME']} {os.environ['HOROVOD_CONTROLLER']}"
      f" {sys.argv[1]}")
"""


def free_port(address):
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


class Gang:
    """Nodes lab-1 to lab-N; every one but the first serves starts."""

    def __init__(self, nodes, each=1, serve=True):
        self.folder = tempfile.mkdtemp(prefix="slipway-gang-")
        self.names = [f"lab-{i + 1}" for i in range(nodes)]
        self.ports = [free_port(f"{NETWORK}.{i + 1}") for i in range(nodes)]
        self.hostfile = os.path.join(self.folder, "hostfile")
        with open(self.hostfile, "w") as file:
            file.writelines(f"{name} slots={each}\n" for name in self.names)
        hosts = ",".join(f"{n}={NETWORK}.{i + 1}:{p}" for i, (n, p) in enumerate(zip(self.names, self.ports)))
        self.variables = {k: v for k, v in os.environ.items() if not k.startswith(("SLIPWAY_", "OMPI_"))}
        self.variables.update(
            SLIPWAY_START_HOSTS=hosts,
            SLIPWAY_START_SECRET=SECRET,
            SLIPWAY_PROCESSES_PER_NODE=str(each),
            SLIPWAY_HOSTFILE=self.hostfile,
            TMPDIR=self.folder,
            GANG_FOLDER=self.folder + "/",  # in every process that belongs to it
        )
        self.servers = {}
        self.children = []
        if serve:
            for name in self.names[1:]:
                self.serve(name)

    def environment(self, node, **more):
        return {**self.variables, "SLIPWAY_NODE": node, **more}

    def log(self, node):
        with open(os.path.join(self.folder, node + ".log")) as file:
            return file.read()

    def serve(self, node):
        with open(os.path.join(self.folder, node + ".log"), "w") as log:
            self.servers[node] = subprocess.Popen(
                [SLIPWAY, "node", "serve-starts"],
                env=self.environment(node),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def start(self, *args, node="lab-1", **more):
        child = subprocess.Popen(
            [SLIPWAY, "node", *args],
            env=self.environment(node, **more),
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.children.append(child)
        return child

    def run(self, *args, node="lab-1", input=b"", **more):
        child = self.start(*args, node=node, **more)
        try:
            out, err = child.communicate(input, timeout=120)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
        return Ran(args, child.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def others(self):
        """What runs besides the servers."""
        servers = {child.pid for child in self.servers.values()}
        return {pid: line for pid, line in processes_of(self.folder + "/").items() if pid not in servers}

    def close(self):
        for child in self.children:  # those of a test that failed on its way
            if child.poll() is None:
                child.kill()
                child.communicate()
        codes = {}
        for name, child in self.servers.items():
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGTERM)
            codes[name] = child.wait(60)
        with contextlib.suppress(NeverHappened):
            wait_until(lambda: not processes_of(self.folder + "/"), 10)
        left = processes_of(self.folder + "/")
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not left, f"left running: {left}"
        assert all(code == 0 for code in codes.values()), f"serve-starts ended with {codes}"


class Sniffer:
    """Passes on what comes to an address of the gang's network, and keeps a copy of both directions."""

    def __init__(self, target):
        self.target, self.seen = target, b""
        self.listener = socket.create_server((f"{NETWORK}.200", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.relay)
        self.thread.start()

    def dial(self):
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(self.target)

    def relay(self):
        client, _ = self.listener.accept()
        with client, wait_until(self.dial, what="the server listens") as server:
            other = {client: server, server: client}
            while True:
                for end in select.select(list(other), [], [])[0]:
                    piece = end.recv(1 << 16)
                    self.seen += piece
                    other[end].sendall(piece)
                    if not piece:
                        return

    def close(self):
        self.thread.join()
        self.listener.close()


class GangExecCase(unittest.TestCase):
    maxDiff = None

    def gang(self, *args, **options):
        gang = Gang(*args, **options)
        self.addCleanup(gang.close)
        return gang

    def mpi_program(self, gang):
        source = gang.write("sum.c", SUM)
        program = os.path.join(gang.folder, "sum")
        subprocess.run(["mpicc", "-o", program, source], check=True)
        return program


class StartRemote(GangExecCase):
    def test_runs_like_ssh(self):
        gang = self.gang(2)
        ran = gang.run("start-remote", "-x", "-l", "ana", "bob@lab-2", "cat;", "echo", '"a  b"', ">&2;", "exit", "7",
                       input=b"through\nboth\n")
        self.assertEqual((ran.code, ran.out, ran.err), (7, "through\nboth\n", "a  b\n"), ran)
        self.assertEqual(gang.run("start-remote", NETWORK + ".2", "kill -9 $$").code, 128 + 9)
        self.assertEqual(gang.run("start-remote", "lab-1", "echo $SLIPWAY_NODE").out, "lab-1\n")
        big = os.urandom(3 << 20).hex()
        ran = gang.run("start-remote", "lab-2", "cat; echo $MINE $SLIPWAY_NODE $CUDA_VISIBLE_DEVICES",
                       input=big.encode(), MINE="from here", CUDA_VISIBLE_DEVICES="3")
        self.assertEqual(ran.out, big + "from here lab-2\n")
        log = gang.log("lab-2")
        self.assertRegex(log, r"start.began pid=\d+ program=cat\n")
        self.assertRegex(log, r"start.ended pid=\d+ program=cat exit_code=7\n")
        self.assertNotIn(SECRET, log)

    def test_h7_who_listens_on_the_wire_learns_nothing_of_a_sibling_start(self):
        gang = self.gang(2)
        for trusted in ("", "1"):
            sniffer = Sniffer((f"{NETWORK}.2", gang.ports[1]))
            hosts = gang.variables["SLIPWAY_START_HOSTS"].replace(f"{NETWORK}.2:{gang.ports[1]}", f"{NETWORK}.200:{sniffer.port}")
            told = {"SLIPWAY_START_HOSTS": hosts, "MINE": "of-the-environment"}
            if trusted:
                told["SLIPWAY_TRUSTED_NETWORK"] = gang.variables["SLIPWAY_TRUSTED_NETWORK"] = "1"
                gang.servers["lab-2"].send_signal(signal.SIGTERM)
                gang.servers["lab-2"].wait(60)
                gang.serve("lab-2")
            ran = gang.run("start-remote", "lab-2", "cat; echo of-the-output $MINE", input=b"of-the-input\n", **told)
            sniffer.close()
            self.assertEqual(ran.out, "of-the-input\nof-the-output of-the-environment\n", ran)
            self.assertNotIn(SECRET.encode(), sniffer.seen)
            for secret in (b"of-the-environment", b"of-the-input", b"of-the-output"):
                self.assertEqual(secret in sniffer.seen, bool(trusted), secret)

    def test_retries_until_the_server_listens(self):
        gang = self.gang(2, serve=False)
        child = gang.start("start-remote", "-n", "lab-2", "echo $SLIPWAY_NODE")
        wait_until(lambda: is_asleep(child.pid), what="the first refusal")
        gang.serve("lab-2")
        self.assertEqual(child.communicate(timeout=60)[0], b"lab-2\n")

    def test_errors_name_the_cause(self):
        gang = self.gang(2, serve=False)
        for words, variables, says in (
            (["lab-9", "ls"], {}, "lab-9 is not a node of this gang\ntry:   one of lab-1, lab-2"),
            (["lab-2", "ls"], {"SLIPWAY_START_HOSTS": ""}, "works only inside a task with toolkit mpi or horovod"),
            (["lab-2"], {}, "needs a host and a command"),
        ):
            ran = gang.run("start-remote", *words, **variables)
            self.assertEqual(ran.code, 255, ran)
            self.assertIn(says, ran.err)
        with socket.create_server((NETWORK + ".2", gang.ports[1])):
            ran = gang.run("serve-starts", node="lab-2")
        self.assertEqual(ran.code, 1, ran)
        self.assertIn(f"port {gang.ports[1]} of {NETWORK}.2 is taken", ran.err)

    def test_another_secret_is_refused(self):
        gang = self.gang(2)
        ran = gang.run("start-remote", "lab-2", f"touch {gang.folder}/never", SLIPWAY_START_SECRET="0" * 36)
        self.assertEqual(ran.code, 255, ran)
        self.assertIn("is not node lab-2 of this attempt", ran.err)
        self.assertFalse(os.path.exists(gang.folder + "/never"))

    def test_a_command_ends_with_its_caller(self):
        gang = self.gang(2)
        stubborn = gang.write("stubborn.sh", "trap '' TERM; echo $$; sleep 1000 & wait; while :; do wait; sleep 1000; done")
        child = gang.start("start-remote", "lab-2", "exec", "sh", stubborn)
        pid = int(child.stdout.readline())
        child.kill()
        child.communicate()
        wait_until(lambda: not is_alive(pid), what="the end of the command")
        wait_until(lambda: not gang.others(), what="the end of what it started")
        self.assertIn("exit_code=137", gang.log("lab-2"))


def is_asleep(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "S"


class Mpi(GangExecCase):
    def test_ranks_run_on_their_nodes(self):
        gang = self.gang(4, each=2)
        ran = gang.run("launch-mpi", "--", self.mpi_program(gang), MINE="yes")
        self.assertEqual(ran.code, 0, ran)
        ranks = {}
        for line in ran.out.splitlines():
            row = dict(word.split("=") for word in line.split())
            ranks[int(row.pop("rank"))] = row
        self.assertEqual(sorted(ranks), list(range(8)), ran)
        for rank, row in ranks.items():
            self.assertEqual((row["size"], row["sum"], row["mine"]), ("8", "28", "yes"), ran)
            self.assertEqual(row["node"], f"lab-{rank // 2 + 1}", ran)
        for name in gang.names[1:]:  # each rank's daemon was started by its node's server, and no other
            self.assertEqual(gang.log(name).count("start.began"), 1)
            self.assertEqual(gang.log(name).count("program=orted exit_code=0"), 1)
        wait_until(lambda: not gang.others(), what="the end of everything")

    def test_failed_rank_sets_the_exit_code(self):
        gang = self.gang(3)
        ran = gang.run("launch-mpi", "--", self.mpi_program(gang), "7")
        self.assertEqual(ran.code, 7, ran)
        wait_until(lambda: not gang.others(), what="the end of the other ranks")

    def test_killed_launcher_ends_its_ranks(self):
        gang = self.gang(3)
        child = gang.start("launch-mpi", "--", "sh", "-c", "echo here; exec sleep 1000")
        for _ in range(3):
            self.assertEqual(child.stdout.readline(), b"here\n")
        ranks = wait_until(lambda: self.sleepers(gang, 3), what="three ranks that sleep")
        tops = {gang.servers[name].pid for name in gang.names[1:]} | {child.pid}
        self.assertEqual({self.top(pid, tops) for pid in ranks}, tops, "each under the server of its node")
        child.kill()
        child.communicate()
        wait_until(lambda: not gang.others(), what="the end of the ranks")

    def sleepers(self, gang, count):
        found = [pid for pid, line in gang.others().items() if line == "sleep 1000"]
        return found if len(found) == count else None

    def top(self, pid, tops):
        """The first of these processes above one."""
        while pid > 1 and pid not in tops:
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rsplit(")", 1)[1].split()[1])
        return pid

    def test_a_server_that_is_stopped_ends_its_ranks(self):
        gang = self.gang(2)
        child = gang.start("launch-mpi", "--", "sh", "-c", "echo here; exec sleep 1000")
        for _ in range(2):
            self.assertEqual(child.stdout.readline(), b"here\n")
        server = gang.servers["lab-2"]
        server.terminate()
        self.assertEqual(server.wait(60), 0)
        child.communicate(timeout=120)
        self.assertNotEqual(child.returncode, 0)
        wait_until(lambda: not gang.others(), what="the end of the ranks")

    def test_missing_programs_are_named(self):
        gang = self.gang(2)
        os.mkdir(gang.folder + "/none")
        ran = gang.run("launch-mpi", "--", "true", PATH=gang.folder + "/none")
        self.assertEqual(ran.code, 127, ran)
        self.assertIn("mpirun is not on node lab-1\ntry:   install openmpi-bin", ran.err)
        os.mkdir(gang.folder + "/two")
        path = gang.write("two/mpiexec", "#!/bin/sh\necho HYDRA build details:\n")
        os.chmod(path, 0o755)
        ran = gang.run("launch-mpi", "--", "true", PATH=gang.folder + "/two:" + os.environ["PATH"])
        self.assertEqual(ran.code, 1, ran)
        self.assertIn("is Open MPI, " + path + " is MPICH", ran.err)
        ran = gang.run("start-remote", "lab-2", "/nowhere/orted", "-mca")
        self.assertEqual(ran.code, 127, ran)
        self.assertIn("orted cannot be run on node lab-2\ntry:   install openmpi-bin on lab-2", ran.err)


class Horovod(GangExecCase):
    def test_gloo_ranks_rendezvous_in_the_store(self):
        gang = self.gang(3, each=2)
        program = gang.write("client.py", textwrap.dedent(STORE_CLIENT))
        ran = gang.run("launch-horovod", "--", "python3", program, "it's 1 $word", SLIPWAY_HOROVOD="gloo")
        self.assertEqual(ran.code, 0, ran)
        wanted = [
            f"[{r}]<stdout>:rank {r} of 6 total 15 on lab-{r // 2 + 1} as lab-{r // 2 + 1} local {r % 2}/2 cross {r // 2}/3"
            " by lo lo gloo it's 1 $word"
            for r in range(6)
        ]
        self.assertEqual(sorted(ran.out.splitlines()), wanted, ran)
        wait_until(lambda: not gang.others(), what="the end of everything")

    def test_gloo_first_failure_ends_the_rest(self):
        gang = self.gang(2, each=2)
        ran = gang.run("launch-horovod", "--", "sh", "-c", '[ "$HOROVOD_RANK" = 3 ] && exit 9; exec sleep 1000',
                       SLIPWAY_HOROVOD="gloo")
        self.assertEqual(ran.code, 9, ran)
        self.assertIn("rank 3 on node lab-2 ended with exit code 9", ran.err)
        wait_until(lambda: not gang.others(), what="the end of the other ranks")

    def test_uses_open_mpi_where_it_is_installed(self):
        gang = self.gang(2)
        ran = gang.run("launch-horovod", "--", self.mpi_program(gang), MINE="yes")
        self.assertEqual(ran.code, 0, ran)
        self.assertIn("[1,1]<stdout>:rank=1 size=2 sum=1 node=lab-2 mine=yes", ran.out)


if __name__ == "__main__":
    unittest.main()
