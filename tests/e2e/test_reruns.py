"""Tasks run again, are cancelled one by one, wait for ends and failures; jobs are planned without being submitted."""

import unittest

from harness import SlipwayCase, job, shell, wait_until


class Reruns(SlipwayCase):
    def setUp(self):
        self.s = self.service()
        self.s.pool("lab", 2)

    def states(self, made):
        return {task["name"]: task["state"] for task in self.s.get(f"/v1/jobs/{made}/tasks?limit=1000")["items"]}

    def test_failed_tasks_run_again_with_their_checkpoints_also_after_a_restart(self):
        s = self.s
        made = s.submit(job(
            shell("sweep", "cd $SLIPWAY_CHECKPOINT_DIR; echo {attempt} >> seen; cat seen; [ {index} != 1 ] || [ -e " + s.base + "/go ]", count=3),
            shell("sum", "echo done", depends_on=["sweep"])))
        self.assertEqual(s.wait_for(made)["state"], "failed")
        self.assertEqual(self.states(made), {"sweep[0]": "succeeded", "sweep[1]": "failed", "sweep[2]": "succeeded", "sum": "skipped"})
        self.assertIn("sweep[1] failed", s.ok("task", "list", made).out)
        s.kill_service()
        s.up()
        open(s.base + "/go", "w").close()
        self.assertEqual(s.ok("job", "rerun", made, "--failed", "--wait").out.strip(), made)
        self.assertEqual(set(self.states(made).values()), {"succeeded"})
        attempts = lambda task: [one["attempt"] for one in s.get(f"/v1/jobs/{made}/tasks/{task}")["history"]]
        self.assertEqual(attempts("sweep[1]"), [1, 2])
        self.assertEqual(attempts("sweep[0]"), [1])
        self.assertEqual(s.ok("logs", made + "/sweep[1]").out, "1\n2\n", "its checkpoint folder is the same")
        refused = s.refused("job", "rerun", made, says="no task of")
        self.assertIn("resubmit", refused.err)
        s.refused("job", "rerun", "job_999", says="there is no job_999")
        self.assertEqual(s.ask("POST", f"/v1/jobs/{made}/rerun", body={"only": "x"}).status, 400)

    def test_one_task_is_retried_and_one_cancelled_while_the_job_runs(self):
        s = self.s
        made = s.submit(job(shell("bad", f"[ -e {s.base}/go ]"), shell("long", f"until [ -e {s.base}/end ]; do sleep 0.05; done"),
                            shell("late", "true", after=["long"])))
        wait_until(lambda: self.states(made)["bad"] == "failed")
        s.refused("task", "retry", f"{made}/long", says="running")
        open(s.base + "/go", "w").close()
        self.assertIn("runs again", s.ok("task", "retry", f"{made}/bad").out)
        wait_until(lambda: self.states(made)["bad"] == "succeeded")
        self.assertEqual(s.job(made)["state"], "running")
        self.assertIn(f"{made}/long", s.ok("task", "cancel", f"{made}/long", "--reason", "too slow").out)
        ended = s.wait_for(made)
        self.assertEqual((ended["state"], self.states(made)["late"]), ("cancelled", "succeeded"))
        self.assertIn("too slow", s.ok("task", "show", f"{made}/long").out)
        s.refused("task", "cancel", made, code=2, says="names no task")
        s.refused("task", "cancel", f"{made}/long", says="cancelled")

    def test_tasks_of_an_array_are_cancelled_before_they_start(self):
        s = self.s
        blocked = s.submit(job(shell("a", f"until [ -e {s.base}/go ]; do sleep 0.05; done", nodes=2)))
        s.wait_for(blocked, "running")
        made = s.submit(job(shell("sweep", "true", count=5), shell("other", "true", count=4)))
        s.ok("task", "cancel", f"{made}/sweep.3")
        s.ok("task", "cancel", f"{made}/other", "-o", "json")
        s.kill_service()
        s.up()
        open(s.base + "/go", "w").close()
        self.assertEqual(s.wait_for(made)["state"], "cancelled")
        states = self.states(made)
        self.assertEqual([states[f"sweep[{i}]"] for i in range(5)], ["succeeded"] * 3 + ["cancelled", "succeeded"])
        self.assertEqual({states[f"other[{i}]"] for i in range(4)}, {"cancelled"})

    def test_ends_and_failures_are_waited_for_and_arrays_may_fail_so_often(self):
        s = self.s
        made = s.submit(job(shell("a", "exit 3"), shell("b", "true", depends_on=["a"]), shell("c", "true", depends_on=["b"]),
                            shell("always", "true", after=["a"]), shell("alarm", "true", after_failure=["a"]),
                            shell("calm", "true", after_failure=["always"])))
        self.assertEqual(s.wait_for(made)["state"], "failed")
        self.assertEqual(self.states(made), {"a": "failed", "b": "skipped", "c": "skipped", "always": "succeeded", "alarm": "succeeded",
                                             "calm": "skipped"})
        reasons = {task["name"]: task["reason"] for task in s.get(f"/v1/jobs/{made}/tasks")["items"]}
        self.assertEqual((reasons["b"], reasons["c"], reasons["calm"]), ("a failed", "a failed", "no task of always failed"))
        good = s.submit(job(shell("a", "true"), shell("alarm", "true", after_failure=["a"])))
        self.assertEqual(s.wait_for(good)["state"], "succeeded")
        many = s.submit(job(shell("sweep", "exit 1", count=200, max_failures=2)))
        self.assertEqual(s.wait_for(many)["state"], "failed")
        counts = s.job(many)["tasks"]
        self.assertGreaterEqual(counts["failed"], 3)
        self.assertGreater(counts["cancelled"], 150)
        self.assertIn("max_failures is 2", s.ok("task", "list", many, "--state", "cancelled").out)
        refused = s.ask("POST", "/v1/jobs", body=job(shell("a", "true", after=["b"]), shell("b", "true", after_failure=["a"])))
        self.assertEqual(refused.status, 400)
        self.assertIn("circle", refused.json["detail"])

    def test_a_job_is_submitted_again_with_other_values(self):
        s = self.s
        first = s.submit(job(shell("a", "echo $RATE $OWN; exit $CODE", environment={"OWN": "own"}), environment={"RATE": "1", "CODE": "3"}))
        self.assertEqual(s.wait_for(first)["state"], "failed")
        again = s.refused("job", "resubmit", first, "--set", "environment.CODE=0", "--set", "tasks.a.nodes=3", says="nodes")
        self.assertEqual(again.out, "")
        s.ok("job", "resubmit", first, "--set", "environment.CODE=0", "--set", "environment.RATE=0.5", "--set", "name=second", "--wait")
        third = s.ok("job", "resubmit", first, "--set", "retries=2").out.strip()
        self.assertEqual(s.wait_for(third)["state"], "failed")
        self.assertEqual(s.task(third, "a")["attempts"], 3)
        self.assertEqual(s.ok("logs", "second").out, "0.5 own\n")
        s.refused("job", "resubmit", first, "--set", "tasks.b.nodes=1", says="no item 'b'")
        s.refused("job", "resubmit", first, "--set", "nothing=1", says="nothing")

    def test_a_job_is_checked_and_planned_without_being_submitted(self):
        s = self.s
        path = s.base + "/train.yaml"
        with open(path, "w") as file:
            file.write("name: train\ntasks:\n  - {name: sweep, count: 5, command: 'true'}\n"
                       "  - {name: sum, command: 'true', depends_on: [sweep]}\n")
        self.assertIn("6 tasks", s.ok("job", "validate", path).out)
        plan = s.ok("job", "submit", path, "--dry-run", "-o", "json").json
        self.assertEqual(plan["pool"], "lab")
        self.assertEqual((plan["tasks"][0]["placed"], plan["tasks"][0]["placements"]), (2, [["lab-1"], ["lab-2"]]))
        self.assertEqual(plan["tasks"][1]["reason"], "waits for sweep")
        table = s.ok("submit", path, "--dry-run").out
        self.assertIn("lab-1; lab-2", table)
        self.assertEqual(s.get("/v1/jobs")["items"], [])
        s.refused("job", "submit", path, "--dry-run", "--set", "tasks.sweep.resources.cores=500", says="500 cores")
        with open(path, "a") as file:
            file.write("  - {name: bad, command: 'true', after: [swep]}\n")
        refused = s.refused("job", "validate", path, says="did you mean 'sweep'")
        self.assertIn("line 5", refused.err)
        self.assertEqual(s.ask("POST", "/v1/jobs?dry_run=maybe", body=job(shell("a", "true"))).status, 400)


if __name__ == "__main__":
    unittest.main()
