"""Users that share a pool: limits, turns, reservations, and what the queue says of them."""

import unittest

from harness import SlipwayCase, blocker, job, shell, wait_until


class Sharing(SlipwayCase):
    def token_of(self, s, name):
        return s.ok("token", "create", name, "-o", "json").json["token"]

    def submit_as(self, s, token, spec):
        answer = s.ask("POST", "/v1/jobs", spec, token=token)
        self.assertEqual(answer.status, 201, answer)
        return answer.json["id"]

    def lines(self, s, *more):
        return s.ok("queue", *more, "-o", "json").json["items"]

    def test_a_job_runs_no_more_tasks_than_it_asked_for(self):
        s = self.service()
        s.pool("lab", 2)
        command, release = blocker(s.data)
        one = s.submit(job(shell("t", command, count=3), name="few", max_parallel_tasks=1))
        line = wait_until(lambda: next((x for x in self.lines(s) if x["tasks"] == 2), None), what="one of three placed")
        self.assertEqual((line["place"], line["job"], line["pool"], line["user"]), (1, one, "lab", "admin"))
        self.assertIn("its max_parallel_tasks is 1", line["reason"])
        self.assertIn("its max_parallel_tasks is 1", s.ok("job", "why", one).out)
        shown = s.ok("queue", "--pool", "lab").out
        for words in ("POSITION", "REASON", "few", "1 core", "max_parallel_tasks"):
            self.assertIn(words, shown)
        self.assertEqual(s.ok("queue", "-o", "quiet").out, one + "\n")
        s.refused("queue", "--pool", "other", says="there is no pool other")
        release()
        s.wait_for(one, "succeeded")
        self.assertIn("nothing waits", s.ok("queue").err)

    def test_limits_hold_a_user_back_and_survive_a_restart(self):
        s = self.service()
        s.pool("lab", 2)
        shown = s.ok("pool", "policy", "lab", "--weight", "ana=2", "--user-max-running-tasks", 1, "--half-life", "10m").out
        for words in ("ana 2", "10 min", "at most 1 task at a time"):
            self.assertIn(words, shown)
        command, release = blocker(s.data)
        ana = self.token_of(s, "ana")
        first = self.submit_as(s, ana, job(shell("a", command)))
        s.wait_for(first, "running")
        second = self.submit_as(s, ana, job(shell("b", "true")))
        self.assertIn("pool lab allows each user 1", s.ok("job", "why", second).out)
        other = s.submit(job(shell("c", "true")))  # another user is not affected
        s.wait_for(other, "succeeded")
        s.kill_service()
        s.up()
        policy = s.get("/v1/pools/lab")["policy"]
        self.assertEqual((policy["weights"], policy["half_life"]), ({"ana": 2.0}, 600.0))
        self.assertEqual(policy["per_user"], {"max_nodes": 0, "max_running_tasks": 1})
        self.assertEqual(s.job(second)["state"], "queued")
        release()
        s.wait_for(second, "succeeded")

    def test_a_large_gang_is_not_starved_and_the_queue_says_so(self):
        s = self.service()
        s.pool("lab", 2)
        s.ok("pool", "policy", "lab", "--reserve-after", "0s")
        command, release = blocker(s.data)
        small = s.submit(job(shell("s", command)))
        s.wait_for(small, "running")
        gang = s.submit(job(shell("g", "true", nodes=2)))
        later = s.submit(job(shell("l", "true")))
        self.assertIn("capacity is reserved for it", wait_until(lambda: self.lines(s, "--pool", "lab")[0]["reason"]))
        self.assertIn(f"reserved for {gang}", s.ok("job", "why", later).out)
        release()
        for one in (gang, later):
            s.wait_for(one, "succeeded")
        self.assertLess(s.job(gang)["started_at"], s.job(later)["started_at"])

    def test_invalid_policies_are_refused(self):
        s = self.service()
        s.pool("lab", 1)
        for flags, says in ((("--weight", "ana"), "is not USER=WEIGHT"), (("--weight", "ana=x"), "is not a number"),
                            (("--weight", "ana=-1"), "cannot be -1"), (("--half-life", "0s"), "half life"),
                            (("--user-max-nodes", "-1"), "")):
            result = s.run("pool", "policy", "lab", *flags)
            self.assertIn(result.code, (1, 2), result)
            self.assertIn(says, result.err)
        s.refused("pool", "policy", "none", "--weight", "ana=2", says="there is no pool none")
        answer = s.ask("PATCH", "/v1/pools/lab", {"policy": {"per_user": {"max_cats": 1}}})
        self.assertEqual(answer.status, 400)
        self.assertIn("max_cats", answer.json["detail"])

    def test_the_time_of_nodes_adds_up(self):
        s = self.service()
        s.pool("lab", 2)
        good = s.submit(job(shell("good", "true", nodes=2)))
        bad = s.submit(job(shell("bad", "sleep 0.2; exit 3")))
        for one in (good, bad):
            s.wait_for(one)
        spent = s.get(f"/v1/jobs/{bad}/usage")["node_microseconds"]
        self.assertEqual(spent["computing"], 0)  # it left no checkpoint: all was in vain
        self.assertGreater(spent["lost"], 0)
        kept = s.submit(job(shell("kept", 'touch "$SLIPWAY_CHECKPOINT_DIR/mark"; exit 3', nodes=1)))
        s.wait_for(kept, "failed")
        s.kill_service()
        s.up()
        parts = ("computing", "staging", "waiting", "lost", "idle")
        for path in ("/v1/pools/lab/usage", f"/v1/jobs/{good}/usage", f"/v1/jobs/{bad}/usage", f"/v1/jobs/{kept}/usage"):
            usage = s.get(path)["node_microseconds"]
            self.assertEqual(sum(usage[part] for part in parts), usage["wall"], path)
        whole = s.get("/v1/pools/lab/usage")["node_microseconds"]
        jobs = [s.get(f"/v1/jobs/{one}/usage")["node_microseconds"] for one in (good, bad, kept)]
        for part in parts[:4]:  # each is rounded down by itself
            self.assertLessEqual(abs(sum(one[part] for one in jobs) - whole[part]), len(jobs))
        self.assertIn("idle", s.ok("pool", "usage", "lab").out)
        self.assertIn("of evicted or failed attempts", s.ok("job", "usage", bad).out)
        s.refused("pool", "usage", "none", says="there is no pool none")


if __name__ == "__main__":
    unittest.main()
