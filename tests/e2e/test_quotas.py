"""Quotas of users and workspaces: refused at the door, waited for while placing, and shown."""

import os
import unittest

from harness import SlipwayCase, blocker, job, shell, wait_until


class Quotas(SlipwayCase):
    def setUp(self):
        self.s = self.service()
        self.s.pool("lab", 2, 2)
        self.ana = self.s.ask("POST", "/v1/tokens", body={"name": "ana", "role": "member"}).json["token"]
        self.ana_file = self.s.write("ana.token", self.ana + "\n")

    def used(self, user="ana"):
        for quota in self.s.get("/v1/quota")["items"]:
            if quota["user"] == user:
                return quota["used"]
        return None

    def test_a_submit_beyond_the_quota_is_refused_and_a_raise_lets_it_in(self):
        s = self.s
        s.ok("quota", "set", "--user", "ana", "--jobs", 1, "--tasks", 3)
        wait, release = blocker(s.base)
        first = s.submit(job(shell("t", wait, count=2)), token=self.ana)
        file = s.write("one.yaml", "tasks: [{name: t, command: 'true'}]\n")
        refused = s.refused("job", "submit", file, "--token-file", self.ana_file)
        for text in ("ana has 1 job", "the quota of ana in workspace default is 1 job", "quota set --user ana --jobs N"):
            self.assertIn(text, refused.err)
        shown = s.ok("quota", "--token-file", self.ana_file).out
        self.assertIn("1 of 1", shown)
        self.assertIn("2 of 3", shown)
        self.assertNotIn("admin", shown)
        s.ok("quota", "set", "--user", "ana", "--jobs", "none")
        second = s.submit(job(shell("t", "true")), token=self.ana)
        answer = s.ask("POST", "/v1/jobs", body=job(shell("t", "true", count=4)), token=self.ana)
        self.assertEqual(answer.status, 403, answer)
        self.assertIn("the quota of ana in workspace default is 3 tasks", answer.json["detail"])
        s.wait_for(second)
        release()
        s.wait_for(first)
        self.assertEqual(self.used(), {"jobs": 0, "tasks": 0, "nodes": 0, "cores": 0, "gpus": 0})

    def test_what_is_held_waits_with_a_reason_and_survives_a_restart(self):
        s = self.s
        s.ok("quota", "set", "--user", "*", "--cores", 1.5)
        alone = s.ask("POST", "/v1/jobs", body=job(shell("t", "true", resources={"cores": 2})), token=self.ana)
        self.assertEqual(alone.status, 403, alone)
        self.assertIn("task t: this needs 2 cores, and the quota of ana in workspace default is 1.5 cores", alone.json["detail"])
        wait, release = blocker(s.base)
        first = s.submit(job(shell("t", wait, resources={"cores": 1})), token=self.ana)
        s.wait_for_task(first, "t", "running")
        second = s.submit(job(shell("t", "true", resources={"cores": 1})), token=self.ana)
        other = s.submit(job(shell("t", "true", resources={"cores": 1})))
        self.assertEqual(s.wait_for(other)["state"], "succeeded", "others are not held up")
        said = "ana has 1 core and needs 1 core more, and the quota of ana in workspace default is 1.5 cores"
        self.assertIn(said, s.ok("job", "why", second).out)
        self.assertIn(said, s.ok("queue").out)
        s.kill_service()
        s.up()
        wait_until(lambda: self.used()["cores"] == 1, what="what is held is counted again")
        self.assertEqual(self.used()["jobs"], 2)
        self.assertEqual(s.job(second)["tasks"]["queued"], 1)
        release()
        self.assertEqual(s.wait_for(second)["state"], "succeeded")
        self.assertEqual(s.wait_for(first)["state"], "succeeded")

    def test_a_full_disk_takes_no_jobs_until_some_are_deleted(self):
        s = self.s
        s.ok("quota", "set", "--user", "ana", "--disk", "1MiB")
        s.refused("quota", "set", "--user", "ana", "--disk", "much", code=2)
        large = s.submit(job(shell("t", "head -c 3000000 /dev/urandom > file")), token=self.ana)
        self.assertEqual(s.wait_for(large)["state"], "succeeded")
        wait_until(lambda: self.used().get("disk", 0) >= 3_000_000, what="the job is counted")
        file = s.write("one.yaml", "tasks: [{name: t, command: 'true'}]\n")
        for text in ("ana has 2.9 MiB of disk", "the quota of ana in workspace default is 1 MiB of disk", "slipway job delete",
                     "an admin of workspace default raises it: slipway quota set --user ana --disk N"):
            self.assertIn(text, s.refused("job", "submit", file, "--token-file", self.ana_file).err)
        self.assertIn("2.9 MiB of 1 MiB", s.ok("quota", "--token-file", self.ana_file).out)
        folder = s.base + "/code"
        os.makedirs(folder)
        s.write("code/train.py", "print(1)\n")
        sent = s.run("run", "--token-file", self.ana_file, "--source", folder, "--", "true")
        self.assertEqual(sent.code, 1, sent)
        self.assertIn("of disk", sent.err)
        self.assertEqual(s.wait_for(s.submit(job(shell("t", "true"))))["state"], "succeeded", "others are not held up")
        s.down()
        s.up()
        self.assertGreaterEqual(self.used()["disk"], 3_000_000, "it is kept")
        s.ok("job", "delete", large, "--yes", "--token-file", self.ana_file)
        self.assertEqual(self.used()["disk"], 0)
        s.ok("job", "submit", file, "--token-file", self.ana_file)

    def test_too_many_requests_a_second_are_refused_and_others_are_served(self):
        s = self.s
        s.ok("quota", "set", "--user", "ana", "--requests", 2)
        answers = [s.ask("GET", "/v1/pools", token=self.ana) for _ in range(60)]
        refused = [answer for answer in answers if answer.status == 429]
        self.assertGreater(len(refused), 20)
        self.assertEqual(refused[0].headers["Retry-After"], "1")
        self.assertIn("ana may send 2 requests a second", refused[0].json["detail"])
        self.assertEqual(s.ask("GET", "/v1/pools").status, 200)
        s.down()
        s.up()
        answers = [s.ask("GET", "/v1/pools", token=self.ana).status for _ in range(60)]
        self.assertIn(429, answers, "it is kept")


if __name__ == "__main__":
    unittest.main()
