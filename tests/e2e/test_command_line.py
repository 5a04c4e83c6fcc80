"""The first hour: what a new user types, mistypes and expects."""

import json
import os
import subprocess
import unittest

from harness import SLIPWAY, Service, SharedServiceCase, SlipwayCase, is_alive, job, read_line, shell, wait_until


class Refused(SharedServiceCase):
    """What used to be taken, or refused without a word that helps."""

    def test_a_quote_that_is_not_closed_names_its_line(self):
        file = self.s.write("quote.yaml", "tasks:\n  - name: a\n    command: 'echo hello\n  - name: b\n    command: 'echo'\n")
        self.s.refused("job", "submit", file, says=["line 3", "not closed", "line 4", "^"])

    def test_yaml_errors_have_line_column_and_caret(self):
        file = self.s.write("list.yaml", "tasks:\n  - name: a\n    command: [echo, hello\n    nodes: 2\n")
        ran = self.s.refused("job", "submit", file, says=["list.yaml line ", ", column ", "^", "try:"])
        self.assertNotIn("flow", ran.err)

    def test_an_unknown_placeholder_is_refused_with_the_list(self):
        file = self.s.write("place.yaml", "tasks:\n  - name: a\n    command: [echo, '{rnk}', '{{rnk}}']\n")
        self.s.refused("job", "submit", file, says=["line 3, column 21: there is", "^", "no placeholder {rnk}", "{rank}", "world_size"])

    def test_what_does_not_fit_is_pointed_at(self):
        self.s.write("codes/x", "")
        rows = [("unknown dependency", "name: j\ntasks: [{name: prep, command: x}, {name: b, command: x, depends_on: [perp]}]\n",
                 ["line 2, column 70: task b depends on perp, which does not exist", "did you mean 'prep'?"]),
                ("missing source", "source: ./code\ntasks: [{name: a, command: x}]\n",
                 ["line 1, column 9: source ", "is not a folder", "did you mean 'codes'?", "beside the job file"]),
                ("unknown key", "nmae: j\ntasks: [{name: a, command: x}]\n", ["line 1, column 1: unknown key 'nmae'", "did you mean 'name'?"]),
                ("wrong value", "tasks:\n  - name: a\n    command: x\n    count: ''\n", ["line 4, column 12: tasks[0].count should be"])]
        for rule, text, says in rows:
            with self.subTest(rule):
                ran = self.s.refused("job", "submit", self.s.write("point.yaml", text), says=says)
                why, caret = ran.err.splitlines()[1:3]
                column = int(says[0].split("column ")[1].split(":")[0])
                line = text.splitlines()[int(says[0].split(",")[0].removeprefix("line ")) - 1]
                self.assertIn(why.removeprefix("why:   "), line)
                self.assertEqual(caret.index("^") - 7, min(column - 1, 60), ran)

    def test_settings_need_a_value(self):
        file = self.s.write("sweep.yaml", "tasks:\n  - name: sweep\n    count: 200\n    command: 'true'\n")
        self.s.refused("job", "submit", file, "--set", "tasks.sweep.count=", says="has no value")

    def test_gpus_of_a_task_point_to_its_resources(self):
        file = self.s.write("gpus.yaml", "tasks:\n  - name: a\n    command: 'true'\n    gpus: 1\n")
        self.s.refused("job", "submit", file, says="resources")

    def test_suggestions_are_near_or_there_are_none(self):
        self.s.refused("job", "list", "--stat", "running", code=2, says="try:   --state")
        ran = self.s.refused("job", "list", "-q", code=2, says="has no flag -q")
        self.assertNotIn("try:   -o", ran.err)

    def test_deleting_without_a_terminal_needs_yes(self):
        submitted = self.s.submit(job(shell("a", "true")))
        self.s.wait_for(submitted)
        self.s.refused("job", "delete", submitted, says="--yes")
        self.s.refused("pool", "delete", "lab", says="--yes")
        self.s.ok("job", "delete", submitted, "--yes")

    def test_no_machine_joins_a_pool_that_starts_its_own_nodes(self):
        ran = self.s.refused("node", "run", "--pool", "lab", "--name", "other", says=["pool lab starts its own nodes", "--provisioner none"])
        self.assertEqual(len(self.s.get("/v1/nodes?pool=lab")["items"]), 2, ran)

    def test_the_cores_of_all_pools_count(self):
        s = self.service()
        cores = os.cpu_count()
        s.ok("pool", "create", "a", "--nodes", 1, "--cores-per-node", cores)
        s.refused("pool", "create", "b", "--nodes", 1, "--cores-per-node", 1, says=["other pools have", "(a)", "--overcommit"])
        s.ok("pool", "create", "b", "--nodes", 1, "--cores-per-node", 1, "--overcommit")
        s.ok("pool", "create", "c", "--provisioner", "none")
        s.ok("pool", "resize", "a", "--nodes", 1)

    def test_an_empty_pool_says_so(self):
        self.s.ok("pool", "create", "z", "--nodes", 0)
        self.addCleanup(self.s.ok, "pool", "delete", "z", "--yes")
        self.s.refused("run", "--pool", "z", "--", "true", says=["pool z is empty: resize it", "slipway pool resize z --nodes 1"])

    def test_a_join_token_says_what_is_needed(self):
        self.s.ok("token", "create", "rack", "--role", "node", "--to", "rack-token")
        self.s.refused("job", "list", "--token-file", "rack-token", says="needs a member or admin token")

    def test_submit_has_the_flags_its_messages_name(self):
        s = self.service()
        for name in ("lab", "rack"):
            s.pool(name, 1)
        file = s.write("plain.yaml", "tasks: [{name: a, command: 'echo $RATE'}]\n")
        submitted = s.ok("job", "submit", file, "--pool", "rack", "--name", "mine", "--priority", 7, "--env", "RATE=3", "--wait").out.split()[0]
        shown = s.job(submitted)
        self.assertEqual([shown["pool"], shown["name"], shown["priority"]], ["rack", "mine", 7])
        self.assertEqual(s.log(submitted, "a"), "3\n")

    def test_a_job_with_a_running_task_is_running(self):
        submitted = self.s.submit(job(shell("a", "sleep 1000", count=4)))
        self.s.wait_for_task(submitted, "a[0]", "running")
        self.assertEqual(self.s.job(submitted)["state"], "running")
        child = self.s.spawn("job", "wait", submitted)
        first = read_line(child, stream=child.stderr).decode()
        self.assertRegex(first, rf"^{submitted} running: 0 of 4 tasks done, ")
        child.kill()
        self.s.ok("job", "cancel", submitted)
        self.s.wait_for(submitted)

    def test_flag_values_complete_by_flag(self):
        script = self.s.write("completion.bash", self.s.ok("completion", "bash").out)
        self.s.wait_for(self.s.submit(job(shell("a", "true"), name="fine")))
        folder = os.path.dirname(SLIPWAY)

        def complete(*words):
            line = " ".join(f"'{word}'" for word in words)
            ask = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _slipway; printf '%s\\n' \"${{COMPREPLY[@]}}\""
            ran = subprocess.run(["bash", "-c", ask], env={**self.s.environment(), "PATH": folder + ":" + os.environ["PATH"]},
                                 capture_output=True, text=True, cwd=self.s.base)
            return ran.stdout.split()

        self.assertEqual(complete("slipway", "job", "list", "--pool", ""), ["lab"])
        self.assertEqual(complete("slipway", "job", "submit", "--pool", ""), ["lab"])
        self.assertIn("running", complete("slipway", "job", "list", "--state", ""))
        self.assertIn("yaml", complete("slipway", "job", "list", "-o", ""))
        self.assertIn("fine", complete("slipway", "job", "list", "--name", ""))
        self.assertEqual(complete("slipway", "pool", "create", "x", "--fill", ""), ["pack", "spread"])
        self.assertEqual(complete("slipway", "job", "list", "--token-file", ""), [])  # the shell offers files
        self.assertNotIn("lab", complete("slipway", "job", "list", "--limit", ""))

    def test_limit_zero_lists_nothing(self):
        self.assertEqual(self.s.ok("job", "list", "--limit", 0, "-o", "quiet").out, "")
        self.s.refused("job", "list", "--limit", "-1", code=2, says="must be 0 or more")


class Tags(SharedServiceCase):
    def test_tags_are_shown_and_found(self):
        file = self.s.write("tags.yaml", "name: tagged\ntags: {team: vision, stage: test}\ntasks: [{name: a, command: 'true'}]\n")
        submitted = self.s.ok("submit", file, "--tag", "stage=prod", "--tag", "by=ana", "-o", "quiet").out.strip()
        self.assertEqual(self.s.job(submitted)["tags"], {"team": "vision", "stage": "prod", "by": "ana"})
        self.assertIn("by=ana, stage=prod, team=vision", self.s.ok("job", "show", submitted).out)
        self.assertIn("team=vision", self.s.ok("job", "list", "-o", "wide").out)
        other = self.s.submit(job(shell("a", "true"), tags={"team": "vision"}))
        find = lambda *tags: self.s.ok("job", "list", "-o", "quiet", *[w for t in tags for w in ("--tag", t)]).out.split()
        self.assertEqual(find("team=vision"), [other, submitted])
        self.assertEqual(find("team=vision", "by=ana"), [submitted])
        self.assertEqual(find("team=speech"), [])
        self.assertEqual(self.s.ok("job", "list", "--pool", "none", "-o", "quiet").out, "")
        self.assertIn(other, self.s.ok("job", "list", "--user", "admin", "--pool", "lab", "-o", "quiet").out.split())
        self.s.refused("job", "list", "--tag", "team", says="tag 'team' is not NAME=VALUE")
        again = self.s.ok("job", "resubmit", submitted, "-o", "quiet").out.strip()
        self.assertEqual(self.s.job(again)["tags"], self.s.job(submitted)["tags"])

    def test_tags_of_compatibility_apis_are_reserved(self):
        answer = self.s.ask("POST", "/v1/jobs", body=job(shell("a", "true"), tags={"batchai.job": "x"}))
        self.assertEqual(answer.status, 400, answer)
        self.assertIn("reserved", answer.json["detail"])


class Recorded(SlipwayCase):
    def test_a_recording_has_the_pools_that_were_deleted(self):
        s = self.service()
        for pool in ("first", "second"):
            s.pool(pool, 1)
            s.wait_for(s.submit(job(shell("a", "sleep 0.1"), pool=pool)))
        s.ok("pool", "delete", "first", "--yes")
        wait_until(lambda: [p["name"] for p in s.get("/v1/pools?deleted=true")["items"]] == ["first"], what="the pool is gone")
        self.assertEqual(s.get("/v1/pools?deleted=true")["items"][0]["state"], "deleted")
        s.ok("events", "--export", "events.jsonl")
        both = s.ok("sim", "replay", "--from", "events.jsonl", "-o", "json").json
        self.assertEqual(both["recorded"]["tasks"]["succeeded"], 2)
        with open(os.path.join(s.base, "events.jsonl")) as file:
            lines = [line for line in file if '"name": "first"' not in line or '"kind": "pool"' not in line]
        lines = [line for line in lines if not (json.loads(line)["kind"] == "pool" and json.loads(line)["pool"]["name"] == "first")]
        s.write("without.jsonl", "".join(lines))
        ran = s.ok("sim", "replay", "--from", "without.jsonl", "-o", "json")
        self.assertEqual(ran.json["recorded"]["tasks"]["succeeded"], 1)
        self.assertIn("1 job of pools that the recording does not have left out", ran.err + ran.out)
        s.pool("first", 1)
        self.assertEqual(s.get("/v1/pools?deleted=true")["items"], [])


class Checkpoints(SlipwayCase):
    KEEPS = """if [ "$SLIPWAY_ATTEMPT" -gt 1 ]; then cat "$SLIPWAY_CHECKPOINT_DIR/step" > seen; exit 0; fi
i=0; while :; do i=$((i+1)); echo $i > "$SLIPWAY_CHECKPOINT_DIR/step"; sleep 0.2; done"""

    def begin(self, s, **more):
        submitted = s.submit(job(shell("t", self.KEEPS, **more)))
        name = "t[0]" if "count" in more else "t"
        s.wait_for_task(submitted, name, "running")
        step = lambda: self.read(s, submitted, name)
        wait_until(lambda: step() >= 10, what="ten checkpoints")
        return submitted

    def read(self, s, submitted, name):
        folder = f"{s.data}/workspaces/default/jobs/{submitted}"
        for path in (f"{folder}/_checkpoints/{name}/step", f"{folder}/{name}.1/checkpoint/step"):
            try:
                with open(path) as file:
                    return int(file.read() or 0)
            except FileNotFoundError:
                continue
        return 0

    def assert_little_is_lost(self, s, submitted):
        s.wait_for(submitted, "succeeded")
        spent = s.get(f"/v1/jobs/{submitted}/usage")["node_seconds"]
        self.assertLess(spent["lost"], spent["wall"] / 2, spent)  # of ten steps, at most a few

    def test_an_array_without_retries_finds_its_checkpoint_after_an_eviction(self):
        s = self.service()
        s.pool("lab", 2)
        submitted = self.begin(s, count=1)
        node = s.task(submitted, "t[0]")["nodes"][0]
        s.ok("node", "evict", node, "--notice", "0s")
        self.assert_little_is_lost(s, submitted)
        seen = s.ok("files", "get", f"{submitted}/t[0]", "wd/seen").out
        self.assertGreaterEqual(int(seen), 10)

    def test_marks_are_seen_when_the_keeper_dies(self):
        s = self.service()
        s.pool("lab", 1)
        submitted = self.begin(s)
        s.kill(s.keeper("lab-1"))
        self.assert_little_is_lost(s, submitted)

    def test_marks_are_seen_by_an_agent_that_was_started_anew(self):
        s = self.service()
        s.pool("lab", 1)
        submitted = self.begin(s, retries=1)
        agent = s.agent("lab-1")
        s.kill(agent)
        wait_until(lambda: s.agent("lab-1") not in (0, agent), what="a new agent")
        s.wait_for_nodes(1)
        pid = next(pid for pid, command in s.survivors().items() if "SLIPWAY_CHECKPOINT_DIR" in command)
        s.kill(pid)
        wait_until(lambda: not is_alive(pid))
        self.assert_little_is_lost(s, submitted)


class Forms(SharedServiceCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.one = cls.s.submit(job(shell("a", "true"), name="one"))
        cls.two = cls.s.submit(job(shell("a", "exit 3"), name="two"))
        cls.s.wait_for(cls.one)
        cls.s.wait_for(cls.two)

    def test_jsonpath(self):
        template = 'jsonpath={range .items[*]}{.name}{"="}{.state}{"\\n"}{end}'
        self.assertEqual(self.s.ok("job", "list", "-o", template, "--name", "two").out, "two=failed\n")
        self.assertEqual(self.s.ok("job", "show", "one", "-o", "jsonpath={.id} {.tasks.total}").out, f"{self.one} 1")
        self.s.refused("job", "list", "-o", "jsonpath={.items[", code=2, says="is no JSONPath template")

    def test_yaml_is_what_the_api_answers(self):
        import importlib.util
        if not importlib.util.find_spec("yaml"):
            self.skipTest("python3-yaml is not installed")
        import yaml
        shown = yaml.safe_load(self.s.ok("job", "show", "two", "-o", "yaml").out)
        self.assertEqual(shown, self.s.job(self.two))
        listed = yaml.safe_load(self.s.ok("job", "list", "-o", "yaml").out)
        self.assertEqual([one["id"] for one in listed["items"]][-2:], [self.two, self.one])

    def test_columns(self):
        self.assertEqual(self.s.ok("job", "list", "--columns", "state,job").out.split("\n")[0].split(), ["STATE", "JOB"])
        self.assertEqual(self.s.ok("job", "list", "--columns", "JOB", "--no-headers").out.split()[-2:], [self.two, self.one])
        self.s.refused("job", "list", "--columns", "jobs", code=2, says=["no column 'JOBS'", "JOB, NAME", "try:   JOB"])
        self.assertIn("USER", self.s.ok("job", "list", "-o", "wide").out)
        self.assertNotIn("USER", self.s.ok("job", "list").out)
        self.assertEqual(self.s.ok("job", "list", "-o", "name").out, self.s.ok("job", "list", "-o", "quiet").out)

    def test_help(self):
        self.assertIn("JSON", self.s.ok("help", "output").out.upper())
        self.assertEqual(self.s.ok("help", "job", "submit").out, self.s.ok("job", "submit", "--help").out)
        self.s.refused("help", "outpt", code=2, says=["the topics are names, output", "try:   output"])
        self.assertEqual(self.s.ok("--version").out, self.s.ok("version").out)
        root = self.s.ok("help").out
        self.assertGreater(root.index("  batchai "), root.index("Commands compatible with Azure's az:"))
        self.assertIn("slipway help TOPIC (names, output", root)
        self.assertIn("--fill pack|spread", self.s.ok("pool", "create", "--help").out)

    def test_old_names_of_commands_still_work(self):
        for command in (["formula", "eval", "--help"], ["node", "remove", "--help"], ["datastore", "ls", "--help"], ["datastore", "rm", "--help"]):
            self.s.ok(*command)

    def test_watching_a_list_without_a_terminal_prints_what_changes(self):
        child = self.s.spawn("job", "list", "--watch", "-o", "quiet")
        listed = self.s.ok("job", "list", "-o", "quiet").out.split()
        self.assertEqual([read_line(child).decode().strip() for _ in listed], listed)
        newest = self.s.submit(job(shell("a", "true")))
        self.assertEqual(read_line(child).strip(), newest.encode())


class Wording(SharedServiceCase):
    """The sentences of the command line, as they were asked for."""

    def test_sentences_of_help(self):
        root = self.s.ok("help").out
        self.assertIn("Simulate pools and scheduling policies", root)
        self.assertIn("Defaults for the Azure-compatible commands", root)
        self.assertIn("Replay a recording, optionally with other pools", self.s.ok("sim", "--help").out)
        self.assertIn("another node of the same task", self.s.ok("node", "--help").out)
        self.assertIn("Revoke a token", self.s.ok("token", "--help").out)
        self.assertIn("follow until the job ends", self.s.ok("logs", "--help").out)

    def test_starting_and_stopping(self):
        s = Service(start=False)
        self.addCleanup(s.close)
        self.assertRegex(s.up().out, r"(?m)^Token: \S+/token$")
        self.assertIn("Service stopped.", s.down().err)

    def test_tokens(self):
        wrong = self.s.write("wrong-token", "sw_no\n")
        self.s.refused("job", "list", "--token-file", wrong, says="pass --token-file")
        self.s.ok("token", "create", "rack", "--role", "node", "--to", "words-token")
        self.s.refused("job", "list", "--token-file", "words-token", says="needs a member or admin token")

    def test_counts_and_limits(self):
        s = self.service()
        s.pool("lab", 1)
        slow = s.submit(job(shell("a", "sleep 1000", max_wall_time=2)))
        s.wait_for(slow, "failed")
        self.assertIn("exceeded max_wall_time (2 s)", s.job(slow)["reason"])
        self.assertRegex(s.ok("job", "usage", slow).out, r"(?m)^total: +\d+(\.\d)? node-seconds$")

    def test_a_pool_with_work_says_how_much(self):
        s = self.service()
        s.pool("lab", 1)
        held = s.submit(job(shell("a", "sleep 1000")))
        waits = s.submit(job(shell("a", "true")))
        s.wait_for_task(held, "a", "running")
        s.refused("pool", "delete", "lab", "--yes", says=["2 unfinished jobs (1 running)", held, "--force"])
        s.ok("job", "cancel", held)
        s.wait_for(waits)
        s.ok("pool", "create", "z", "--nodes", 0)
        s.refused("run", "--pool", "z", "--", "true", says="pool z is empty: resize it")

    def test_a_stall_names_its_ranks(self):
        submitted = self.s.submit(job(shell("a", "echo x; sleep 1000", nodes=2, silence_timeout=1)))
        self.s.wait_for(submitted, "failed")
        self.assertIn("no output and no CPU time for 1 s: rank 0 on lab-1, rank 1 on lab-2", self.s.job(submitted)["reason"])

    def test_a_retry_says_why(self):
        ran = self.s.run("run", "--retries", 1, "--name", "again", "--", "sh", "-c", 'echo out; [ "$SLIPWAY_ATTEMPT" -gt 1 ]')
        self.assertEqual(ran.code, 0, ran)
        self.assertRegex(ran.err, r"(?m)^\S+: attempt 1 failed, retrying: it exited with code 1$")

    def test_a_pool_sized_by_demand_counts_what_was_needed(self):
        s = self.service()
        s.ok("pool", "create", "lab", "--min", 0, "--max", 1, "--cores-per-node", 1, "--overcommit")
        s.wait_for(s.submit(job(shell("a", "true"))), "succeeded")
        self.assertIn("1 node needed, had 0", s.ok("pool", "history", "lab").out)


if __name__ == "__main__":
    unittest.main()
