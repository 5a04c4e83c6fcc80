"""Folders with very many files: listed page by page, deleted in steps that a kill does not stop."""

import glob
import os
import signal
import sqlite3
import threading
import time
import unittest

from harness import SlipwayCase, job, shell, wait_until
from ledger import FarNode, own_storage

MANY = "import os\nfor i in range(%d): os.close(os.open('f%%d' %% i, os.O_CREAT | os.O_WRONLY))\n"


class LargeFolders(SlipwayCase):
    def filled(self, s, count):
        submitted = s.submit(job({"name": "a", "command": ["python3", "-c", MANY % count]}))
        self.assertEqual(s.wait_for(submitted, timeout=240)["state"], "succeeded")
        return submitted, os.path.join(s.data, "workspaces/default/jobs", submitted)

    def test_a_list_is_paged_and_holds_up_nobody(self):
        s = self.service()
        s.pool("lab", 1)
        submitted, folder = self.filled(s, 12_000)
        slowest, stop = [0.0], threading.Event()

        def ask():
            while not stop.is_set():
                begun = time.monotonic()
                s.get("/v1/service")
                slowest[0] = max(slowest[0], time.monotonic() - begun)

        asking = threading.Thread(target=ask)
        asking.start()
        names, after, pages = [], "", 0
        while True:
            page = s.get(f"/v1/jobs/{submitted}/tasks/a/files?path=wd&limit=1000{after}")
            self.assertLessEqual(len(page["items"]), 1000)
            names += [one["path"] for one in page["items"]]
            pages += 1
            if not page["next"]:
                break
            after = "&after=" + page["next"]
        stop.set()
        asking.join()
        self.assertEqual((len(names), len(set(names)), pages), (12_000, 12_000, 12))
        self.assertLess(slowest[0], 5)
        self.assertEqual(len(s.ok("files", "list", f"{submitted}/a", "wd", "-o", "quiet").out.split()), 12_000)
        self.assertEqual(s.ask("GET", f"/v1/jobs/{submitted}/tasks/a/files?path=wd&after=x").status, 400)
        self.assertEqual(s.ask("GET", f"/v1/jobs/{submitted}/tasks/a/files?limit=1001").status, 400)

    def test_a_delete_is_resumed_after_a_kill(self):
        s = self.service()
        s.pool("lab", 1)
        submitted, folder = self.filled(s, 20_000)
        s.ok("job", "delete", submitted, "--yes")
        s.kill_service()
        self.assertTrue(os.path.isdir(folder), "it was too fast to be interrupted")
        s.up()
        self.assertEqual(s.ask("GET", f"/v1/jobs/{submitted}").status, 404)
        wait_until(lambda: not os.path.exists(folder), 240, what="the folder is gone")
        again = s.submit(job(shell("a", "echo next")))
        self.assertEqual(s.wait_for(again)["state"], "succeeded")

    def test_a_delete_reaches_nodes_with_storage_of_their_own(self):
        s = self.service()
        s.ok("pool", "create", "far", "--provisioner", "none")
        nodes = {name: FarNode(s, name, prefix=own_storage(self, s)) for name in ("n1", "n2")}
        for node in nodes.values():
            self.addCleanup(node.stop)
        s.wait_for_nodes(2, "far")
        submitted = s.submit({**job(shell("a", "echo x", nodes=2)), "pool": "far"})
        self.assertEqual(s.wait_for(submitted)["state"], "succeeded")

        def folders():
            return [name for name, node in nodes.items()
                    if glob.glob(f"{node.folder}/**/jobs/{submitted}", recursive=True)]

        self.assertEqual(sorted(folders()), ["n1", "n2"])
        agent = nodes["n2"].agent()
        os.kill(agent, signal.SIGSTOP)  # it is away when the job is deleted, and until the service was started anew
        s.ok("job", "delete", submitted, "--yes")
        wait_until(lambda: folders() == ["n2"], what="it is gone on the node that is there")
        s.listen = f"127.0.0.1:{s.port}"
        s.kill_service()
        s.up()
        os.kill(agent, signal.SIGCONT)
        wait_until(lambda: folders() == [], what="it is gone on the other as well")

    def test_rows_of_a_large_job_go_in_steps(self):
        s = self.service()
        s.ok("pool", "create", "lab", "--provisioner", "none")
        submitted = s.submit({"name": "wide", "pool": "lab", "tasks": [
            {"name": f"t{i}", "command": "true"} for i in range(20_000)]})
        s.ok("job", "cancel", submitted)
        s.wait_for(submitted)
        s.ok("job", "delete", submitted, "--yes")
        s.kill_service()
        s.up()
        self.assertEqual(s.ask("GET", f"/v1/jobs/{submitted}").status, 404)

        def rows():
            with sqlite3.connect(f"file:{s.data}/slipway.db?mode=ro", uri=True) as db:
                return sum(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                           for table in ("task_specs", "tasks", "task_groups", "attempts", "jobs_removed", "removals"))

        wait_until(lambda: rows() == 0, what="no row is left")


if __name__ == "__main__":
    unittest.main()
