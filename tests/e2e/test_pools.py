"""Pools that grow, shrink and lose nodes: kinds of nodes, start tasks, evictions, autoscale, history."""

import datetime
import glob
import os
import shutil
import subprocess
import tempfile
import time
import unittest

from harness import Service, wait_until

PATIENT = "trap 'test -e \"$SLIPWAY_EVICTION_FILE\" && cp \"$SLIPWAY_EVICTION_FILE\" \"$SLIPWAY_SHARED/notice\"; exit 0' TERM; " \
    "echo ready; while :; do sleep 0.05; done"


def nodes_of(service, pool="lab"):
    return {node["name"]: node for node in service.get(f"/v1/nodes?pool={pool}")["items"]}


def wait_for_pool(service, check, what, pool="lab"):
    return wait_until(lambda: (lambda seen: check(seen) and seen)(service.get(f"/v1/pools/{pool}")), what=what)


def history(service, pool="lab"):
    return service.get(f"/v1/pools/{pool}/history?limit=1000")["items"]


class Pools(unittest.TestCase):
    def test_two_kinds_of_nodes_and_resize(self):
        with Service() as service:
            service.ok("pool", "create", "lab", "--dedicated", 1, "--low-priority", 2, "--cores-per-node", 0.1,
                       "--memory-per-node", "64MiB", "--fill", "spread", "--slots-per-node", 2)
            pool = wait_for_pool(service, lambda p: p["state"] == "steady", "a steady pool")
            self.assertEqual((pool["nodes"]["target_dedicated"], pool["nodes"]["target_low_priority"]), (1, 2))
            self.assertEqual((pool["fill"], pool["slots_per_node"]), ("spread", 2))
            kinds = sorted(node["low_priority"] for node in nodes_of(service).values())
            self.assertEqual(kinds, [False, True, True])
            shown = service.ok("pool", "show", "lab").out
            self.assertIn("1 dedicated, 2 low-priority", shown)
            self.assertIn("steady", shown)
            service.ok("pool", "resize", "lab", "--dedicated", 2, "--low-priority", 0)
            wait_until(lambda: sorted(n["low_priority"] for n in nodes_of(service).values()) == [False, False],
                       what="two dedicated nodes")
            wait_for_pool(service, lambda p: p["state"] == "steady", "a steady pool")
            reasons = " ".join(entry["reason"] for entry in history(service))
            self.assertIn("resized to 2 nodes by", reasons)
            self.assertIn("made by", reasons)
            lines = service.ok("pool", "history", "lab").out
            self.assertIn("TARGET", lines)
            self.assertIn("2+0", lines)

    def test_shrinking_follows_the_rule(self):
        for rule, becomes in [("requeue", "queued"), ("terminate", "failed"), ("task_completion", "succeeded")]:
            with self.subTest(rule), Service() as service:
                service.pool("lab", 1, 0.1)
                go = os.path.join(service.base, "go")
                job = service.submit({"name": "work", "pool": "lab", "tasks": [{
                    "name": "t", "resources": {"cores": 0.1}, "retries": 2,
                    "command": f"while ! [ -e {go} ]; do sleep 0.02; done"}]})
                service.wait_for_task(job, "t", "running")
                service.ok("pool", "resize", "lab", "--nodes", 0, "--deallocation", rule)
                if rule == "task_completion":
                    pool = service.get("/v1/pools/lab")
                    self.assertEqual(pool["state"], "resizing")
                    self.assertEqual(pool["nodes"]["draining"], 1)
                    # A second resize during this one is refused with a hint.
                    service.refused("pool", "resize", "lab", "--nodes", 2, says=["being resized", "--stop"])
                    service.write("go", "")
                task = service.wait_for_task(job, "t", becomes)
                wait_until(lambda: not nodes_of(service), what="no nodes")
                self.assertEqual(task["retries_used"], 0)
                self.assertEqual(task["evictions"], 0 if rule == "task_completion" else 1)

    def test_a_resize_can_be_stopped_and_times_out_with_a_reason(self):
        with Service() as service:
            service.pool("lab", 2, 0.1)
            go = os.path.join(service.base, "go")
            job = service.submit({"name": "work", "pool": "lab", "tasks": [{
                "name": "t", "count": 2, "resources": {"cores": 0.1},
                "command": f"while ! [ -e {go} ]; do sleep 0.02; done"}]})
            for index in range(2):
                service.wait_for_task(job, f"t[{index}]", "running")
            service.refused("pool", "resize", "lab", "--stop", says="not being resized")
            service.ok("pool", "resize", "lab", "--nodes", 0, "--deallocation", "task_completion")
            stopped = service.ok("pool", "resize", "lab", "--stop", "-o", "json").json
            self.assertEqual(stopped["state"], "steady")
            self.assertEqual(stopped["nodes"]["target"], 2)
            self.assertEqual(stopped["resize"]["errors"][0]["code"], "ResizeStopped")
            service.ok("pool", "resize", "lab", "--nodes", 1, "--deallocation", "task_completion", "--timeout", "1s")
            pool = wait_for_pool(service, lambda p: p["resize"]["errors"], "a resize error")
            self.assertEqual(pool["resize"]["errors"][0]["code"], "AllocationTimedOut")
            self.assertIn("still runs 1 tasks", pool["resize"]["errors"][0]["message"])
            service.write("go", "")
            self.assertEqual(service.wait_for(job)["state"], "succeeded")

    def test_deleting_a_pool_with_work_needs_force(self):
        with Service() as service:
            service.pool("lab", 1, 0.1)
            job = service.submit({"name": "w", "pool": "lab", "tasks": [
                {"name": "t", "resources": {"cores": 0.1}, "command": "sleep 600"}]})
            service.wait_for_task(job, "t", "running")
            service.refused("pool", "delete", "lab", "--yes", says=["1 unfinished job (1 running)", job, "--force"])
            service.ok("pool", "delete", "lab", "--yes", "--force")
            self.assertEqual(service.wait_for(job)["state"], "cancelled")
            wait_until(lambda: service.ask("GET", "/v1/pools/lab").status == 404, what="the pool is gone")

    def test_bad_input(self):
        with Service() as service:
            service.refused("pool", "create", "a", "--min", 5, "--max", 2, says="min 5 is over max 2")
            service.refused("pool", "create", "a", "--dedicated", -1, code=2)
            service.refused("pool", "create", "a", "--nodes", 1, "--evict-every", "soon", code=2, says="20s±10s")
            service.refused("pool", "create", "a", "--nodes", 1, "--start-task", "./no-such-file", says="no-such-file")
            answer = service.ask("POST", "/v1/pools", {"name": "a", "low_priority": -3})
            self.assertEqual(answer.status, 400)
            self.assertIn("low_priority", answer.json["detail"])
            answer = service.ask("POST", "/v1/pools", {"name": "a", "fill": "tight"})
            self.assertIn("pack and spread", answer.json["hint"])
            service.refused("node", "evict", "nobody-1", says=["there is no node nobody-1", "slipway node list"])
            self.assertEqual(service.get("/v1/pools")["items"], [])
            service.ok("pool", "create", "lab", "--nodes", 1, "--cores-per-node", 0.1, "--memory-per-node", "64MiB")
            service.refused("pool", "autoscale", "lab", "--demand", "--min", 3, "--max", 1, says="min 3 is over max 1")
            long = service.write("long.txt", "$TargetDedicatedNodes = 1; //" + "x" * 9000)
            service.refused("pool", "autoscale", "lab", "--formula", long, says="AutoScaleFormulaTooLong")
            wrong = service.write("wrong.txt", "$TargetDedicatedNodes = (1;")
            service.refused("pool", "autoscale", "lab", "--formula", wrong,
                            says=["AutoScalingFormulaSyntaxError", "Line 1, Col"])
            service.refused("pool", "autoscale", "lab", code=2, says="--demand")
            self.assertEqual(service.get("/v1/pools/lab")["autoscale"], {"by": "hand"})


    def test_a_pool_without_nodes_is_deleted_at_once(self):
        with Service() as service:
            service.ok("pool", "create", "a-name-that-is-too-long-to-lie-within-the-text-itself", "--nodes", 0)
            service.ok("pool", "delete", "a-name-that-is-too-long-to-lie-within-the-text-itself", "--yes")
            self.assertEqual(service.get("/v1/pools")["items"], [])


class StartTasks(unittest.TestCase):
    def create(self, service, script, *more):
        path = service.write("setup.sh", script)
        service.ok("pool", "create", "lab", "--nodes", 1, "--cores-per-node", 0.1, "--memory-per-node", "64MiB",
                   "--start-task", path, *more)

    def test_it_runs_once_before_work_and_its_output_is_kept(self):
        with Service() as service:
            self.create(service, "#!/bin/sh\necho prepared $SLIPWAY_NODE of $SLIPWAY_POOL\necho once >> "
                        f"{service.base}/ran\n")
            job = service.submit({"name": "w", "pool": "lab", "tasks": [
                {"name": "t", "resources": {"cores": 0.1}, "command": f"cat {service.base}/ran"}]})
            self.assertEqual(service.wait_for(job)["state"], "succeeded")
            self.assertEqual(service.log(job, "t"), "once\n")
            self.assertEqual(service.ok("node", "logs", "lab-1").out, "prepared lab-1 of lab\n")
            node = nodes_of(service)["lab-1"]
            self.assertEqual(node["start_task"]["state"], "succeeded")
            self.assertEqual([step["state"] for step in node["steps"]], ["joining", "starting", "idle"])
            # The agent comes back in the same boot: nothing is run again.
            agent = service.pids("agent")["default.lab-1"]
            os.kill(agent, 9)
            wait_until(lambda: service.pids("agent").get("default.lab-1", agent) != agent, what="another agent")
            again = service.submit({"name": "w", "pool": "lab", "tasks": [
                {"name": "t", "resources": {"cores": 0.1}, "command": f"cat {service.base}/ran"}]})
            self.assertEqual(service.wait_for(again)["state"], "succeeded")
            self.assertEqual(service.log(again, "t"), "once\n")

    def test_failed_start_task_gives_a_reason_takes_no_work_and_can_be_reset(self):
        with Service() as service:
            self.create(service, "#!/bin/sh\necho one more try >> "
                        f"{service.base}/tries\ntest -e {service.base}/fixed || {{ echo no driver >&2; exit 7; }}\n",
                        "--start-retries", 1)
            wait_until(lambda: nodes_of(service)["lab-1"]["state"] == "start_failed", what="start_failed")
            node = nodes_of(service)["lab-1"]
            self.assertIn("exited with code 7", node["reason"])
            self.assertIn("no driver", node["reason"])
            self.assertIn("no driver", node["start_task"]["last_lines"])
            with open(f"{service.base}/tries") as tries:
                self.assertEqual(len(tries.readlines()), 2)
            self.assertEqual(service.ok("node", "logs", "lab-1", "--stderr").out, "no driver\n")
            job = service.submit({"name": "w", "pool": "lab", "tasks": [
                {"name": "t", "resources": {"cores": 0.1}, "command": "true"}]})
            self.assertIn("start task", service.ok("job", "why", job).out)
            self.assertEqual(service.task(job, "t")["state"], "queued")
            service.write("fixed", "")
            service.ok("node", "reset", "lab-1")
            self.assertEqual(service.wait_for(job)["state"], "succeeded")

    def test_hung_start_task_and_its_daemons_are_ended(self):
        with Service() as service:
            self.create(service, "#!/bin/sh\n(setsid sleep 4711 &)\nsleep 4712\n", "--start-timeout", "1s")
            wait_until(lambda: nodes_of(service)["lab-1"]["state"] == "start_failed", what="start_failed")
            self.assertIn("longer than its time-out of 1 s", nodes_of(service)["lab-1"]["reason"])
            wait_until(lambda: not any("sleep 471" in command for command in service.survivors().values()),
                       what="no process of it is left")

    def test_start_task_that_fills_the_disk_fails_and_the_service_continues(self):
        folder = tempfile.mkdtemp(prefix="slipway-e2e-full-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", folder], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"mount is not permitted here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], capture_output=True)
        with Service(data=folder + "/data") as service:
            service.also.append(folder)
            self.create(service, "#!/bin/sh\nexec dd if=/dev/zero of=fill bs=64k\n")
            fill = wait_until(lambda: glob.glob(folder + "/data/workspaces/default/nodes/*/start.*/wd/fill"), what="a file")
            wait_until(lambda: os.statvfs(folder).f_bavail == 0, what="a full disk")
            # What could not be saved is reported again once there is free space.
            os.unlink(fill[0])
            wait_until(lambda: nodes_of(service).get("lab-1", {}).get("state") == "start_failed", what="start_failed")
            # Its output did not fit either; its exit code is known.
            self.assertIn("exited with code 1", nodes_of(service)["lab-1"]["reason"])
            self.assertIsNone(service.get("/v1/service")["degraded"])

    def test_not_waiting_for_success(self):
        with Service() as service:
            self.create(service, "#!/bin/sh\nexit 3\n", "--start-no-wait")
            job = service.submit({"name": "w", "pool": "lab", "tasks": [
                {"name": "t", "resources": {"cores": 0.1}, "command": "true"}]})
            self.assertEqual(service.wait_for(job)["state"], "succeeded")
            wait_until(lambda: nodes_of(service)["lab-1"]["start_task"]["state"] == "failed", what="it failed")
            self.assertEqual(nodes_of(service)["lab-1"]["state"], "idle")


class Evictions(unittest.TestCase):
    def test_notice_file_signal_deadline_and_requeue(self):
        with Service() as service:
            service.ok("pool", "create", "lab", "--low-priority", 1, "--cores-per-node", 0.1,
                       "--memory-per-node", "64MiB")
            job = service.submit({"name": "w", "pool": "lab", "tasks": [
                {"name": "t", "resources": {"cores": 0.1}, "retries": 1, "command": PATIENT}]})
            service.wait_for_task(job, "t", "running")
            wait_until(lambda: "ready" in service.log(job, "t"), what="it runs")
            evicted = service.ok("node", "evict", "lab-1", "--notice", "20s", "--reason", "the owner is back",
                                 "-o", "json").json
            self.assertEqual(evicted["state"], "evicted")
            wait_until(lambda: service.task(job, "t")["evictions"] == 1, what="an eviction")
            shared = os.path.join(service.data, "workspaces/default/jobs", job, "_shared/notice")
            with open(shared) as file:
                deadline, reason = file.read().splitlines()
            left = (datetime.datetime.fromisoformat(deadline.replace("Z", "+00:00")).timestamp() - time.time())
            self.assertTrue(0 < left <= 20, left)
            self.assertIn("the owner is back", reason)
            # Its node comes back, and it with it.
            service.wait_for_task(job, "t", "running")
            task = service.task(job, "t")
            self.assertEqual(task["retries_used"], 0)
            self.assertEqual(task["history"][0]["end"], "evicted")
            self.assertIn("the owner is back", task["history"][0]["detail"])
            self.assertEqual(service.job(job)["evictions"], 1)
            metrics = service.ask("GET", "/metrics").body.decode()
            self.assertIn("slipway_evictions_total 1", metrics)
            self.assertIn("evictions", service.ok("job", "show", job).out)
            # Without notice it is killed at once, also if it would not listen.
            service.ok("node", "evict", "lab-1", "--notice", "0s")
            wait_until(lambda: service.task(job, "t")["evictions"] == 2, what="a second eviction")
            service.refused("node", "evict", "lab-9", says="there is no node lab-9")
            service.ok("job", "cancel", job)

    def test_process_that_ignores_the_notice_is_killed_at_the_deadline(self):
        with Service() as service:
            service.ok("pool", "create", "lab", "--low-priority", 1, "--cores-per-node", 0.1,
                       "--memory-per-node", "64MiB")
            job = service.submit({"name": "w", "pool": "lab", "tasks": [
                {"name": "t", "resources": {"cores": 0.1}, "command": "trap '' TERM; echo ready; sleep 600 & wait"}]})
            wait_until(lambda: "ready" in service.log(job, "t"), what="it runs")
            service.ok("node", "evict", "lab-1", "--notice", "1s")
            service.refused("node", "evict", "lab-1", says="is being evicted already")
            wait_until(lambda: service.task(job, "t")["evictions"] == 1, what="it was evicted")
            service.ok("job", "cancel", job)

    def test_a_dedicated_pool_claims_the_cores(self):
        cores = os.cpu_count()
        with Service() as service:
            service.ok("pool", "create", "spare", "--low-priority", 1, "--cores-per-node", cores, "--notice", "2s")
            service.wait_for_nodes(1, "spare")
            job = service.submit({"name": "w", "pool": "spare", "tasks": [
                {"name": "t", "command": "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"}]})
            wait_until(lambda: "ready" in service.log(job, "t"), what="it runs")
            service.ok("pool", "create", "own", "--dedicated", 1, "--cores-per-node", cores)
            wait_until(lambda: service.task(job, "t")["evictions"] == 1, what="it had to go")
            service.wait_for_nodes(1, "own")
            self.assertIn("pool own claims its cores", service.task(job, "t")["history"][0]["detail"])
            pool = wait_for_pool(service, lambda p: p["nodes"]["low_priority"] == 0, "no nodes", "spare")
            self.assertEqual(pool["nodes"]["target_low_priority"], 1)
            service.ok("pool", "delete", "own", "--yes")
            service.wait_for_task(job, "t", "running")
            service.ok("job", "cancel", job)

    def test_a_rule_evicts_again_and_again_and_nothing_is_lost(self):
        with Service() as service:
            service.ok("pool", "create", "lab", "--low-priority", 2, "--cores-per-node", 0.1, "--memory-per-node",
                       "64MiB", "--evict-every", "1s±0.5s", "--notice", "0s", "--evict-seed", 7)
            job = service.submit({"name": "w", "pool": "lab", "tasks": [
                {"name": "t", "resources": {"cores": 0.1}, "command":
                 "n=$(cat $SLIPWAY_CHECKPOINT_DIR/n 2>/dev/null || echo 0); while [ $n -lt 60 ]; do sleep 0.1; "
                 "n=$((n+1)); echo $n > $SLIPWAY_CHECKPOINT_DIR/next; mv $SLIPWAY_CHECKPOINT_DIR/next "
                 "$SLIPWAY_CHECKPOINT_DIR/n; done; echo done"}]})
            ended = service.wait_for(job)
            self.assertEqual(ended["state"], "succeeded")
            task = service.task(job, "t")
            self.assertGreater(task["evictions"], 0)
            self.assertEqual(task["retries_used"], 0)


class Autoscale(unittest.TestCase):
    def test_by_demand_from_nothing_and_back(self):
        with Service() as service:
            service.ok("pool", "create", "lab", "--min", 0, "--max", 4, "--cores-per-node", 0.1, "--memory-per-node",
                       "64MiB", "--idle-timeout", "1s")
            self.assertEqual(nodes_of(service), {})
            job = service.submit({"name": "burst", "pool": "lab", "tasks": [
                {"name": "t", "count": 40, "resources": {"cores": 0.1}, "command": "sleep 0.1"}]})
            self.assertEqual(service.wait_for(job)["state"], "succeeded")
            most = max(entry["target"]["dedicated"] for entry in history(service))
            self.assertEqual(most, 4)
            wait_until(lambda: not nodes_of(service), what="no nodes again")
            reasons = [entry["reason"] for entry in history(service)]
            self.assertTrue(any("4 nodes needed, had 0" in reason for reason in reasons), reasons)
            self.assertTrue(any("idle" in reason for reason in reasons), reasons)
            self.assertIn("4+0", service.ok("pool", "history", "lab").out)
            # A gang counts whole; one that can never fit is refused.
            gang = service.submit({"name": "gang", "pool": "lab", "tasks": [
                {"name": "g", "nodes": 3, "resources": {"cores": 0.1}, "command": "true"}]})
            self.assertEqual(service.wait_for(gang)["state"], "succeeded")
            answer = service.ask("POST", "/v1/jobs", {"name": "big", "pool": "lab", "tasks": [
                {"name": "g", "nodes": 5, "resources": {"cores": 0.1}, "command": "true"}]})
            self.assertEqual(answer.status, 400, answer)

    def test_by_formula(self):
        with Service() as service:
            service.ok("pool", "create", "lab", "--nodes", 0, "--cores-per-node", 0.1, "--memory-per-node", "64MiB")
            formula = service.write("scale.txt", "$TargetDedicatedNodes = min(3, max(0, $PendingTasks.GetSample(1)));\n")
            wait_until(lambda: service.run("pool", "autoscale", "evaluate", "lab", "--formula", formula).code == 0,
                       what="a first sample")
            result = service.ok("pool", "autoscale", "evaluate", "lab", "--formula", formula, "-o", "json").json
            self.assertEqual(result["targets"], {"dedicated": 0, "low_priority": 0})
            self.assertIsNone(result["error"])
            bad = service.write("bad.txt", "$TargetDedicatedNodes = 1 / 0;")
            ran = service.run("pool", "autoscale", "evaluate", "lab", "--formula", bad, "-o", "json")
            self.assertEqual(ran.code, 1)
            self.assertEqual(ran.json["error"]["code"], "AutoScalingFormulaEvaluationError")
            service.ok("pool", "autoscale", "lab", "--formula", formula, "--interval", "1s")
            job = service.submit({"name": "w", "pool": "lab", "tasks": [
                {"name": "t", "count": 2, "resources": {"cores": 0.1}, "command": "sleep 1"}]})
            self.assertEqual(service.wait_for(job)["state"], "succeeded")
            self.assertTrue(any("the formula says $TargetDedicatedNodes=" in entry["reason"]
                                for entry in history(service)))
            service.refused("pool", "resize", "lab", "--nodes", 1, says="sized by formula")
            shown = service.get("/v1/pools/lab")
            self.assertIn("$TargetDedicatedNodes=", shown["last_run"]["results"])
            service.ok("pool", "autoscale", "lab", "--off")
            self.assertEqual(service.get("/v1/pools/lab")["autoscale"]["by"], "hand")

    def test_by_scenario(self):
        with Service() as service:
            service.ok("pool", "create", "lab", "--nodes", 0, "--cores-per-node", 0.1, "--memory-per-node", "64MiB")
            service.refused("pool", "autoscale", "lab", "--scenario", "active_tasks", "--min-dedicated", 3,
                            "--max-dedicated", 1, says="minimum")
            service.ok("pool", "autoscale", "lab", "--scenario", "pending_tasks", "--max-dedicated", 2,
                       "--interval", "1s", "--deallocation", "task_completion")
            shown = service.get("/v1/pools/lab")["autoscale"]
            self.assertEqual((shown["by"], shown["scenario"]["name"]), ("scenario", "pending_tasks"))
            job = service.submit({"name": "w", "pool": "lab", "tasks": [
                {"name": "t", "count": 3, "resources": {"cores": 0.1}, "command": "sleep 1"}]})
            self.assertEqual(service.wait_for(job)["state"], "succeeded")
            self.assertTrue(any("the scenario says" in entry["reason"] for entry in history(service)))
            service.ok("pool", "autoscale", "evaluate", "lab")

    def test_a_node_whose_start_task_failed_is_replaced(self):
        with Service() as service:
            setup = service.write("setup.sh", f"#!/bin/sh\ntest -e {service.base}/fixed\n")
            service.ok("pool", "create", "lab", "--max", 1, "--cores-per-node", 0.1, "--memory-per-node", "64MiB",
                       "--start-task", setup)
            job = service.submit({"name": "w", "pool": "lab", "tasks": [
                {"name": "t", "resources": {"cores": 0.1}, "command": "true"}]})
            wait_until(lambda: any("start_failed" == step["state"] for node in nodes_of(service).values()
                                   for step in node["steps"]), what="start_failed")
            service.write("fixed", "")
            self.assertEqual(service.wait_for(job)["state"], "succeeded")
            self.assertTrue(any("another takes its place" in entry["reason"] for entry in history(service)))

    def test_samples_and_settings_survive_a_restart(self):
        with Service() as service:
            service.ok("pool", "create", "lab", "--nodes", 1, "--cores-per-node", 0.1, "--memory-per-node", "64MiB",
                       "--low-priority", 1, "--notice", "7s")
            count = service.write("count.txt", "x = $PendingTasks.Count();")

            def samples():
                ran = service.run("pool", "autoscale", "evaluate", "lab", "--formula", count, "-o", "json")
                return int(float(ran.json["variables"]["x"]))

            wait_until(samples, what="samples")  # the first is saved at once, others once a minute
            # What is read may not be on the disk yet; an acknowledged change is, and all before it.
            service.ok("pool", "set", "lab", "--notice", "7s")
            service.kill_service()
            service.up()
            self.assertGreaterEqual(samples(), 1)
            before = samples()
            service.down()
            service.up()
            self.assertGreaterEqual(samples(), before)
            pool = service.get("/v1/pools/lab")
            self.assertEqual((pool["notice"], pool["nodes"]["target_low_priority"]), (7, 1))


if __name__ == "__main__":
    unittest.main()
