"""A command in a container: same process, variables and folders, another root."""

import concurrent.futures
import io
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import unittest

from harness import SLIPWAY, SlipwayCase, is_alive, job, read_line, shell, wait_until

PROGRAMS = ["sh", "cat", "id", "ls", "mkdir", "mount", "sleep", "touch"]
NOBODY = 65534


def libraries(program):
    listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(0x", listed)


def make_rootfs(folder):
    """A root file system of this machine's own shell and a few programs with the libraries they need."""
    for name in ("usr/bin", "usr/lib", "usr/lib64", "etc", "home/other", "opt"):
        os.makedirs(os.path.join(folder, name))
    for name in ("bin", "lib", "lib64"):
        os.symlink("usr/" + name, os.path.join(folder, name))
    for name in PROGRAMS:
        program = shutil.which(name)
        shutil.copy(program, os.path.join(folder, "usr/bin", name))
        for library in libraries(program):
            place = folder + library
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if not os.path.exists(place):
                shutil.copy(library, place)
    with open(os.path.join(folder, "etc/marker"), "w") as file:
        file.write("another root\n")
    return folder


def user_namespaces_work():
    return subprocess.run(as_nobody(["unshare", "--user", "--map-root-user", "--mount", "true"]),
                          capture_output=True).returncode == 0


def as_nobody(command):
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]


def may_mount():
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0 or subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "true"], capture_output=True).returncode == 0


class ContainCase(SlipwayCase):
    @classmethod
    def setUpClass(cls):
        cls.base = tempfile.mkdtemp(prefix="slipway-e2e-")
        cls.addClassCleanup(shutil.rmtree, cls.base, ignore_errors=True)
        os.chmod(cls.base, 0o755)
        cls.rootfs = make_rootfs(os.path.join(cls.base, "rootfs"))

    def setUp(self):
        self.attempt = tempfile.mkdtemp(prefix="attempt-", dir=self.base)
        self.wd, self.outputs = self.folder("wd"), self.folder("outputs")
        os.chmod(self.attempt, 0o777)

    def folder(self, name):
        path = os.path.join(self.attempt, name)
        os.mkdir(path)
        os.chmod(path, 0o777)
        return path

    def environment(self, **more):
        return {"PATH": "/usr/bin:/bin", "SLIPWAY_OUTPUTS": self.outputs, "SLIPWAY_NODE": "lab-1",
                "SLIPWAY_NODE_CACHE": os.path.join(self.attempt, "cache"), **more}

    def command(self, *command, rootfs=None, switches=()):
        return [SLIPWAY, "node", "contain", "--rootfs", rootfs or self.rootfs, *switches, "--", *command]

    def run_command(self, command, **variables):
        return subprocess.run(command, cwd=self.wd, env=self.environment(**variables), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120)

    def contain(self, *command, rootfs=None, switches=(), **variables):
        return self.run_command(self.command(*command, rootfs=rootfs, switches=switches), **variables)

    def script(self, text, code=0, **options):
        ran = self.contain("sh", "-c", text, **options)
        self.assertEqual(ran.returncode, code, ran)
        return ran.stdout


@unittest.skipUnless(may_mount(), "this machine allows no mount namespace")
class Rootfs(ContainCase):
    def test_variables_and_paths_are_those_outside(self):
        checkpoints, hosts = tempfile.mktemp(prefix="not yet there ", dir=self.base), self.folder("hosts")
        with open(hosts + "/file", "w") as file:
            file.write("lab-1 slots=2\n")
        out = self.script(
            'pwd; echo "$GREETING"; cat /etc/marker "$SLIPWAY_HOSTFILE"; echo found > "$SLIPWAY_OUTPUTS/f";'
            'echo c > "$SLIPWAY_CHECKPOINT_DIR/c"; echo w > w',
            GREETING="two words\nand a line", SLIPWAY_CHECKPOINT_DIR=checkpoints, SLIPWAY_HOSTFILE=hosts + "/file")
        self.assertEqual(out, f"{self.wd}\ntwo words\nand a line\nanother root\nlab-1 slots=2\n")
        for place, content in ((self.outputs + "/f", "found\n"), (checkpoints + "/c", "c\n"), (self.wd + "/w", "w\n")):
            with open(place) as file:
                self.assertEqual(file.read(), content)

    def test_the_root_is_read_only_and_tmp_its_own(self):
        before = sorted(os.listdir(self.rootfs))
        out = self.script("for f in /x /usr/x /etc/x /home/other/x /proc/sys/kernel/x; do touch $f 2>/dev/null && echo wrote $f; done;"
                          "ls -A /tmp; echo here > /tmp/mine; cat /tmp/mine; echo x > /dev/null; ls -d /dev/shm /sys/class /proc/self/")
        # What is shared from the machine's /tmp shows there, and nothing else of it.
        shown = os.path.relpath(self.base, "/tmp").split("/")[0] + "\n" if self.base.startswith("/tmp/") else ""
        self.assertEqual(out, shown + "here\n/dev/shm\n/proc/self/\n/sys/class\n")
        self.assertFalse(os.path.exists("/tmp/mine"))
        self.assertEqual(sorted(os.listdir(self.rootfs)), before, "nothing is written into the root file system")

    def test_the_root_cannot_be_made_writable_again(self):
        self.script("mount -o remount,rw /usr 2>/dev/null && echo done; mount --bind /tmp /usr 2>/dev/null && echo done; exit 3", code=3)
        out = self.script("cat /proc/self/status")
        self.assertIn("NoNewPrivs:\t1", out)

    def test_a_path_the_root_has_in_part(self):
        out = self.script("ls /usr; ls /usr/share | cat > seen; touch /usr/x 2>/dev/null && echo wrote",
                          switches=["--mount", "/usr/share:ro"], code=1)
        self.assertEqual(out.split(), ["bin", "lib", "lib64", "share"])
        with open(self.wd + "/seen") as file:
            self.assertEqual(sorted(file.read().split("\n")[:-1]), sorted(os.listdir("/usr/share")))
        self.assertFalse(os.path.exists(self.rootfs + "/usr/share"))

    def test_more_mounts(self):
        data = self.folder("data")
        private = tempfile.mkdtemp(prefix="slipway-e2e-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, private)
        self.script(f"touch {private}/no 2>/dev/null && exit 1; touch {data}/yes",
                    switches=["--mount", private + ":ro", "--mount", data])
        self.assertEqual(os.listdir(data), ["yes"])
        ran = self.contain("true", switches=["--mount", "/no/such/folder:ro"])
        self.assertEqual(ran.returncode, 127, ran)
        self.assertIn("/no/such/folder", ran.stderr)

    def test_the_process_stays_the_one_that_was_started(self):
        child = subprocess.Popen(self.command("sh", "-c", "echo $$; exec sleep 1000"), cwd=self.wd,
                                 env=self.environment(), stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.assertEqual(int(read_line(child)), child.pid)
        child.terminate()
        self.assertEqual(child.wait(20), -signal.SIGTERM)
        self.assertFalse(is_alive(child.pid))
        self.assertEqual(self.contain("sh", "-c", "exit 42").returncode, 42)
        ran = self.contain("sh", "-c", "trap 'exit 5' TERM; kill -TERM $$; sleep 10")
        self.assertEqual(ran.returncode, 5)

    def test_a_command_that_is_not_there(self):
        ran = self.contain("python9", "x", PATH="/usr/local/bin:/bin")
        self.assertEqual(ran.returncode, 127)
        self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)
        self.assertIn("/usr/local/bin/python9, /bin/python9", ran.stderr)
        self.assertIn(self.rootfs, ran.stderr)
        self.assertEqual(self.contain("/etc/marker").returncode, 126)

    def test_what_is_no_root_file_system(self):
        empty, wrong = self.folder("empty"), os.path.join(self.attempt, "wrong.tar")
        with open(wrong, "w") as file:
            file.write("this is no archive")
        for rootfs, code, word in ((self.attempt + "/none", 127, "lab-1"), (empty, 126, "bin/"),
                                   (wrong, 126, "tar"), ("/", 126, "own root"), ("/dev/null", 126, "neither")):
            ran = self.contain("true", rootfs=rootfs)
            self.assertEqual(ran.returncode, code, ran)
            self.assertIn(word, ran.stderr)
            self.assertEqual(len([line for line in ran.stderr.splitlines() if "error:" in line]), 1, ran.stderr)
        self.assertEqual([name for name in os.listdir(self.cache()) if not name.endswith(".lock")], [])

    def cache(self, uid=None):
        return os.path.join(self.attempt, "cache", f"rootfs-{os.geteuid() if uid is None else uid}")

    def pack(self, name, mode, *more):
        path = os.path.join(self.attempt, name)
        with tarfile.open(path, mode) as archive:
            archive.add(self.rootfs, ".")
            for entry in more:
                archive.addfile(entry, io.BytesIO(b"x" * entry.size))
        return path

    def test_a_tarball_is_unpacked_once_by_many(self):
        tarball = self.pack("root.tar.gz", "w:gz")
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            runs = list(pool.map(lambda _: self.contain("cat", "/etc/marker", rootfs=tarball), range(5)))
        self.assertEqual([ran.stdout for ran in runs], ["another root\n"] * 5, runs)
        self.assertEqual(sum(ran.stderr.count("unpacking") for ran in runs), 1, runs)
        folders = [name for name in os.listdir(self.cache()) if not name.endswith(".lock")]
        self.assertEqual(len(folders), 1, folders)
        # A changed tarball is another root.
        with open(os.path.join(self.rootfs, "etc/second"), "w"):
            self.addCleanup(os.unlink, os.path.join(self.rootfs, "etc/second"))
        self.pack("root.tar.gz", "w:gz")
        ran = self.contain("ls", "/etc/second", rootfs=tarball)
        self.assertEqual((ran.returncode, ran.stdout), (0, "/etc/second\n"), ran)

    def test_a_killed_start_leaves_no_half_of_a_root(self):
        tarball = self.pack("root.tar", "w")
        # tar waits for its decompressor, which here waits for ever.
        slow = self.folder("slow")
        with open(os.path.join(slow, "tar"), "w") as file:
            file.write('#!/bin/sh\nwhile [ "$1" != --directory ]; do shift; done; mkdir "$2/bin"; exec sleep 1000\n')
        os.chmod(os.path.join(slow, "tar"), 0o755)
        child = subprocess.Popen(self.command("true", rootfs=tarball), cwd=self.wd, stderr=subprocess.DEVNULL,
                                 env=self.environment(PATH=slow + ":/usr/bin:/bin"))
        wait_until(lambda: os.path.isdir(self.cache()) and any(
            ".partial-" in name and os.path.isdir(os.path.join(self.cache(), name, "bin"))
            for name in os.listdir(self.cache())), what="tar has begun")
        child.kill()
        child.wait()
        ran = self.contain("cat", "/etc/marker", rootfs=tarball)
        self.assertEqual(ran.stdout, "another root\n", ran)
        self.assertEqual([name for name in os.listdir(self.cache()) if ".partial-" in name], [])

    def test_a_tarball_cannot_write_outside(self):
        target = os.path.join(self.attempt, "target")
        os.mkdir(target)
        out, link, through, device = (tarfile.TarInfo(name) for name in
                                      ("../../../escaped", "leave", "leave/escaped", "dev/sda"))
        out.size = through.size = 1
        link.type, link.linkname = tarfile.SYMTYPE, target
        device.type, device.devmajor = tarfile.CHRTYPE, 8
        tarball = self.pack("root.tar", "w", device, link, through, out)
        ran = self.contain("sh", "-c", "ls /dev/sda 2>/dev/null; cat /etc/marker", rootfs=tarball)
        self.assertEqual(os.listdir(target), [])
        self.assertNotIn("escaped", os.listdir(self.attempt))
        self.assertNotIn("/dev/sda", ran.stdout)

    @unittest.skipUnless(os.geteuid() == 0, "takes root to become someone else")
    @unittest.skipUnless(user_namespaces_work(), "this machine allows ordinary users no user namespace")
    def test_an_ordinary_user(self):
        device = tarfile.TarInfo("opt/device")  # which an ordinary user cannot make, and nobody misses
        device.type, device.devmajor = tarfile.CHRTYPE, 8
        tarball = self.pack("root.tar", "w", device)
        for rootfs in (self.rootfs, tarball):
            ran = self.run_command(as_nobody(self.command(
                "sh", "-c", 'id -u; id -g; pwd; cat /etc/marker; touch "$SLIPWAY_OUTPUTS/f"; touch /usr/x 2>/dev/null && echo bad;'
                "echo x > /dev/null; ls -d /sys/class; echo t > /tmp/t && exit 6", rootfs=rootfs)))
            self.assertEqual(ran.returncode, 6, ran)
            self.assertEqual(ran.stdout, f"{NOBODY}\n{NOBODY}\n{self.wd}\nanother root\n/sys/class\n")
            self.assertEqual(os.stat(self.outputs + "/f").st_uid, NOBODY)

    @unittest.skipUnless(os.geteuid() == 0, "takes root to become someone else")
    @unittest.skipUnless(user_namespaces_work(), "this machine allows ordinary users no user namespace")
    def test_where_namespaces_are_switched_off(self):
        inner = self.command("true")
        ran = self.run_command(as_nobody(
            ["unshare", "--user", "--map-root-user", "sh", "-c",
             'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all "$@"', "_", *inner]))
        self.assertEqual(ran.returncode, 126, ran)
        self.assertIn("sysctl -w user.max_user_namespaces", ran.stderr)


@unittest.skipUnless(may_mount(), "mount namespaces are not allowed here")
class Jobs(ContainCase):
    def test_a_gang_in_a_root_of_its_own(self):
        s = self.service()
        s.pool("lab", 2)
        command = "cat /etc/marker; echo $RANK of $WORLD_SIZE > $SLIPWAY_OUTPUTS/rank-$RANK; echo x > /new || echo read-only; exit $RANK"
        submitted = s.submit(job(shell("t", command, nodes=2, toolkit="torch", container={"rootfs": self.rootfs})))
        self.assertEqual(s.wait_for(submitted)["state"], "failed")
        task = s.get(f"/v1/jobs/{submitted}/tasks/t")
        self.assertEqual((task["exit_code"], task["reason"]), (1, "rank 1 on lab-2 exited with code 1"))
        self.assertEqual(s.log(submitted, "t", process=1), "another root\nread-only\n")
        self.assertEqual(s.ok("files", "get", f"{submitted}/t", "outputs/rank-1").out, "1 of 2\n")

    @unittest.skipIf(shutil.which("podman") or shutil.which("apptainer") or shutil.which("singularity"), "there is an engine")
    def test_an_image_without_an_engine_is_refused_at_submit(self):
        s = self.service()
        s.pool("lab", 1)
        answer = s.ask("POST", "/v1/jobs", job(shell("t", "true", container={"image": "debian"})))
        self.assertEqual(answer.status, 400, answer)
        self.assertIn("no node of pool lab has podman, apptainer or docker", answer.json["detail"])
        self.assertIn("apt install podman", answer.json["hint"])


class Image(ContainCase):
    def test_no_engine(self):
        ran = self.run_command([SLIPWAY, "node", "contain", "--image", "lab/torch:2", "--", "true"], PATH="/no/such/folder")
        self.assertEqual(ran.returncode, 127)
        self.assertIn("no container engine on node lab-1; install podman, apptainer or docker", ran.stderr)

    def archive(self):
        """An image made of the root file system; skips where podman cannot be used."""
        if not shutil.which("podman"):
            self.skipTest("podman is not installed")
        tarball, archive = os.path.join(self.attempt, "root.tar"), os.path.join(self.attempt, "image.tar")
        with tarfile.open(tarball, "w") as packed:
            packed.add(self.rootfs, ".")
        name = "slipway-e2e:" + os.path.basename(self.attempt).replace("-", "").lower()
        for command in (["import", tarball, name], ["save", "--format=oci-archive", "-o", archive, name], ["rmi", name]):
            done = subprocess.run(["podman", *command], capture_output=True, text=True)
            if done.returncode != 0:
                self.skipTest("podman cannot be used here: " + done.stderr.strip()[-200:])
        self.addCleanup(subprocess.run, ["podman", "rmi", "--force", name], capture_output=True)  # once it is loaded
        return archive

    def test_podman(self):
        archive = self.archive()
        # crun does not start where both kinds of cgroups have controllers; without the newer kind it does.
        inner = [SLIPWAY, "node", "contain", "--image", "oci-archive:" + archive, "--"]
        if os.path.isdir("/sys/fs/cgroup/unified") and os.geteuid() == 0:
            inner = ["unshare", "--mount", "sh", "-c", 'umount /sys/fs/cgroup/unified; exec "$@"', "_", *inner]
        probe = self.run_command([*inner, "sh", "-c", "exit 3"])
        if probe.returncode != 3:
            self.skipTest("podman starts no container here: " + probe.stderr.strip()[-200:])
        ran = self.run_command([*inner, "sh", "-c", 'pwd; echo "$GREETING"; cat /etc/marker; touch "$SLIPWAY_OUTPUTS/f"; exit 9'],
                               GREETING="two words")
        self.assertEqual((ran.returncode, ran.stdout), (9, f"{self.wd}\ntwo words\nanother root\n"), ran)
        self.assertEqual(os.stat(self.outputs + "/f").st_uid, os.geteuid())

        child = subprocess.Popen([*inner, "sh", "-c", "trap 'exit 5' TERM; echo up; while :; do sleep 0.1; done"],
                                 cwd=self.wd, env=self.environment(), stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.assertEqual(read_line(child), b"up\n")
        child.terminate()
        self.assertEqual(child.wait(30), 5)


if __name__ == "__main__":
    unittest.main()
