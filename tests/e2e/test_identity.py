"""The database is the one its folder belongs to, and what it lost does not go unsaid."""

import glob
import os
import shutil
import signal
import unittest

from harness import SlipwayCase, job, shell, wait_until
from ledger import FarNode, own_storage


class Identity(SlipwayCase):
    def ran_job(self, s, text):
        submitted = s.submit(job(shell("a", f"echo {text}")))
        self.assertEqual(s.wait_for(submitted)["state"], "succeeded")
        return submitted

    def database(self, s, *suffixes):
        return [s.data + "/slipway.db" + suffix for suffix in suffixes or ("", "-wal", "-shm")]

    def test_a_database_that_is_gone_is_not_taken_for_a_new_one(self):
        s = self.service()
        s.pool("lab", 1)
        first = self.ran_job(s, "old")
        s.down()
        for harm in (os.unlink, lambda path: os.truncate(path, 0)):
            shutil.copy(s.data + "/slipway.db", s.base + "/kept.db")
            harm(s.data + "/slipway.db")
            s.refused("up", "--listen", "127.0.0.1:0", "--detach", says=["slipway.db", first, "--new", "slipway restore"])
            shutil.copy(s.base + "/kept.db", s.data + "/slipway.db")
        s.refused("up", "--listen", "127.0.0.1:0", "--detach", "--new", says="is there and whole")
        os.unlink(s.data + "/slipway.db")
        s.up("--new")
        s.pool("lab", 1)
        second = self.ran_job(s, "new")
        self.assertGreater(int(second.split("_")[1]), int(first.split("_")[1]))
        self.assertEqual(s.log(second, "a"), "new\n")
        self.assertEqual(s.ask("GET", f"/v1/jobs/{first}").status, 404)

    def test_a_database_removed_while_it_runs_is_noticed_at_once(self):
        s = self.service()
        s.pool("lab", 1)
        os.rename(s.data + "/slipway.db", s.data + "/away")
        wait_until(lambda: s.ask("GET", "/healthz").status == 503, 5, what="health says so")
        self.assertIn("was removed", s.ask("GET", "/healthz").json["why"])
        answer = s.ask("POST", "/v1/jobs", body=job(shell("a", "true")))
        self.assertEqual(answer.status, 503, answer)
        self.assertIn("was removed", answer.json["detail"])
        self.assertIn("restore", answer.json["hint"])
        self.assertIn("was removed", s.ok("status").out)
        os.rename(s.data + "/away", s.data + "/slipway.db")
        wait_until(lambda: s.get("/v1/service")["degraded"] is None, what="it is back")
        self.ran_job(s, "again")

    def test_a_database_cut_while_it_runs_is_noticed_at_once(self):
        for suffix, way_out in (("", "--new"), ("-wal", "--accept-loss")):
            s = self.service()
            s.pool("lab", 1)
            self.ran_job(s, "before")
            os.truncate(s.data + "/slipway.db" + suffix, 0)
            wait_until(lambda: s.ask("GET", "/healthz").status == 503, 5, what="health says so")
            answer = s.ask("POST", "/v1/jobs", body=job(shell("a", "true")))
            self.assertEqual(answer.status, 503, answer)
            self.assertIn("was cut", answer.json["detail"])
            self.assertIn("--accept-loss", answer.json["hint"])
            s.ok("down", "--keep-running")
            s.refused("up", "--listen", "127.0.0.1:0", "--detach", says="slipway.db")
            s.up(way_out)

    def test_what_nodes_know_better_is_said(self):
        s = self.service()
        s.pool("lab", 1)
        runs = s.submit(job(shell("a", f"until [ -e {s.base}/go ]; do sleep 0.05; done")))
        s.wait_for(runs, "running")
        before = s.get("/v1/service")["turn"]
        s.kill_service()
        kept = s.base + "/kept"
        os.makedirs(kept)
        for path in [*self.database(s), s.data + "/service.mark"]:
            shutil.copy(path, kept)
        s.up()
        lost = s.submit(job(shell("b", "true"), name="lost"))
        keeper = s.keeper("lab-1")
        turn = s.get("/v1/service")["turn"]

        def seen():
            with open(glob.glob(s.data + "/nodes/*/service.seen")[0]) as file:
                return int(file.read().split()[3])

        wait_until(lambda: seen() >= turn, what="the node has seen that turn")
        s.kill_service()
        agent = s.agent("lab-1")
        s.kill(agent, sig=signal.SIGSTOP)
        for path in [*self.database(s), s.data + "/service.mark"]:  # as a disk that forgot its last writes
            shutil.copy(os.path.join(kept, os.path.basename(path)), path)
        s.up()
        for _ in range(turn - before + 3):  # more turns than were lost, before the node is back
            s.submit(job(shell("a", "true"), name="new"))
        s.kill(agent, sig=signal.SIGCONT)
        wait_until(lambda: s.get("/v1/service")["degraded"], what="it says that it lost turns")
        self.assertIn("turns are lost", s.get("/v1/service")["degraded"])
        answer = s.ask("POST", "/v1/jobs", body=job(shell("a", "true")))
        self.assertEqual(answer.status, 503, answer)
        self.assertIn("--accept-loss", answer.json["hint"])
        self.assertEqual(s.keeper("lab-1"), keeper, "nothing was stopped")
        s.ok("down", "--keep-running")
        s.refused("up", "--listen", "127.0.0.1:0", "--detach", says=["turns are missing", "--accept-loss"])
        s.up("--accept-loss")
        wait_until(lambda: s.get("/v1/service")["degraded"] is None)
        open(s.base + "/go", "w").close()
        self.assertEqual(s.wait_for(runs)["state"], "succeeded")
        self.assertNotEqual(s.job(lost)["name"], "lost")
        checked = s.ok("store", "check", "-o", "json").json
        self.assertEqual((checked["problems"], len(checked["lost"])), ([], 1))

    def test_backups_check_and_restore(self):
        backups = f"/tmp/slipway-e2e-backups-{os.getpid()}"
        self.addCleanup(shutil.rmtree, backups, ignore_errors=True)
        s = self.service()
        s.pool("lab", 1)
        first = self.ran_job(s, "kept")
        s.down()
        s.up("--backup-dir", backups, "--backup-keep", 2)
        backup = wait_until(lambda: glob.glob(backups + "/slipway-*Z.db"), what="a backup")[0]
        self.assertEqual(os.stat(backup).st_mode & 0o777, 0o600)
        self.assertIn(f"up to {first}", s.ok("store", "check", backup).out)
        second = self.ran_job(s, "lost")
        self.assertIn("whole", s.ok("store", "check").out)
        s.refused("restore", backup, "--yes", says="a service runs")
        s.down()
        s.refused("restore", backup)  # a script must say that it means it
        s.refused("restore", s.data + "/token", "--yes", says="token")
        said = s.ok("restore", backup, "--yes").out
        self.assertIn("not in the backup", said)
        s.up()
        self.assertEqual(s.job(first)["state"], "succeeded")
        self.assertEqual(s.ask("GET", f"/v1/jobs/{second}").status, 404)
        s.wait_for_nodes(1)
        third = self.ran_job(s, "next")
        self.assertGreater(int(third.split("_")[1]), int(second.split("_")[1]))

    def test_a_restore_on_a_new_disk_shows_nothing_of_the_jobs_that_are_lost(self):
        s = self.service()
        s.ok("pool", "create", "far", "--provisioner", "none")
        s.ok("token", "create", "joiner", "--role", "node", "--uses", 100, "--to", s.base + "/join.token")
        s.listen = f"127.0.0.1:{s.port}"
        s.down()
        s.up("--backup-dir", s.base + "/backups")
        backup = wait_until(lambda: glob.glob(s.base + "/backups/slipway-*Z.db"), what="a backup")[0]
        node = FarNode(s, "n1", prefix=own_storage(self, s))
        self.addCleanup(node.stop)
        s.wait_for_nodes(1, "far")
        self.assertFalse(s.get("/v1/nodes/n1")["shares_storage"])
        lost = s.submit({**job(shell("a", "echo old | tee $SLIPWAY_CHECKPOINT_DIR/step")), "pool": "far"})
        self.assertEqual(s.wait_for(lost)["state"], "succeeded")
        self.assertEqual(s.log(lost, "a"), "old\n")
        s.kill_service()
        for name in set(os.listdir(s.data)) - {"secret.key", "token", "node-token"}:
            path = os.path.join(s.data, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        s.ok("restore", backup, "--yes")
        s.up()
        s.wait_for_nodes(1, "far")
        again = s.submit({**job(shell("a", "cat $SLIPWAY_CHECKPOINT_DIR/step; echo new")), "pool": "far"})
        self.assertEqual(s.wait_for(again)["state"], "succeeded")
        self.assertEqual(s.log(again, "a"), "new\n")
        self.assertGreater(int(again.split("_")[1]), int(lost.split("_")[1]))

    def test_answers_to_changes_carry_the_turn(self):
        s = self.service()
        s.ok("pool", "create", "lab", "--provisioner", "none")
        turns = []
        for _ in range(2):  # the second is the first again
            answer = s.ask("POST", "/v1/jobs", body=job(shell("a", "true"), pool="lab"), headers={"Idempotency-Key": "k"})
            turns.append(int(answer.headers["X-Slipway-Turn"]))
        self.assertLessEqual(turns[0], turns[1])
        self.assertGreater(turns[0], 0)
        self.assertGreaterEqual(s.get("/v1/service")["turn"], turns[1])

    def test_a_damaged_database_is_found_by_check(self):
        s = self.service()
        s.ok("pool", "create", "lab", "--provisioner", "none")
        for i in range(200):
            s.submit(job(shell("a", "true", environment={"X": "y" * 2000}), pool="lab"))
        s.down()
        with open(s.data + "/slipway.db", "r+b") as file:
            file.seek(4096 * 60)
            file.write(os.urandom(4096 * 4))
        s.refused("store", "check", says="damaged")


if __name__ == "__main__":
    unittest.main()
