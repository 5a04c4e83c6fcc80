"""The simulator: scenarios, comparisons, and real runs that are recorded and run again."""

import json
import os
import unittest

from harness import SharedServiceCase, SlipwayCase, job, shell

SCENARIO = """\
pools:
- {name: lab, nodes: 2, cores: 1, price: {dedicated: 3.6}}
jobs:
- name: sweep
  user: ana
  tasks:
  - {name: t, count: 4, duration: 10s}
"""


class Scenarios(SharedServiceCase):
    def test_a_scenario_in_its_three_forms(self):
        file = self.s.write("scenario.yaml", SCENARIO)
        shown = self.s.ok("sim", "run", file).out
        for words in ("makespan:", "20 s", "mean wait:", "5 s", "POOL", "USER", "ana"):
            self.assertIn(words, shown)
        figures = self.s.ok("sim", "run", file, "-o", "json").json
        self.assertEqual(figures["makespan"], 20)
        self.assertEqual(figures["wait"], {"mean": 5, "p50": 0, "p95": 10, "max": 10})
        self.assertEqual(figures["utilisation"], 1)
        self.assertAlmostEqual(figures["cost"], 0.04)
        self.assertEqual(figures["users"]["ana"]["tasks"]["succeeded"], 4)
        self.assertEqual(self.s.ok("sim", "run", file, "-o", "quiet").out, "20\n")

    def test_standard_input(self):
        self.assertEqual(self.s.ok("sim", "run", "-", "-o", "quiet", input=SCENARIO).out, "20\n")

    def test_the_seed_decides(self):
        file = self.s.write("random.yaml", SCENARIO.replace("10s", "{exponential: 10s}"))
        runs = [self.s.ok("sim", "run", file, "--seed", seed, "-o", "json").json for seed in (7, 7, 8)]
        self.assertEqual(runs[0], runs[1])
        self.assertNotEqual(runs[0]["makespan"], runs[2]["makespan"])

    def test_two_side_by_side(self):
        one = self.s.write("one.yaml", SCENARIO)
        two = self.s.write("two.yaml", SCENARIO.replace("nodes: 2", "nodes: 4"))
        shown = self.s.ok("sim", "compare", one, two).out
        for words in ("RATIO", "makespan", "20 s", "10 s", "0.50"):
            self.assertIn(words, shown)
        both = self.s.ok("sim", "compare", one, two, "-o", "json").json
        self.assertEqual((both["first"]["makespan"], both["second"]["makespan"]), (20, 10))
        self.s.refused("sim", "compare", one, code=2, says="two scenarios")

    def test_errors_name_the_line(self):
        for change, says in (
            (("nodes: 2", "nods: 2"), ["line 2", "unknown key 'nods'", "did you mean 'nodes'?"]),
            (("duration: 10s", "duration: soon"), ["line 7", "not a distribution", "exponential"]),
            (("nodes: 2", "nodes: -1"), ["line 2", "whole number"]),
            (("- name: sweep", "- pool: attic\n  name: sweep"), ["no pool attic", "the pools are lab"]),
        ):
            file = self.s.write("wrong.yaml", SCENARIO.replace(*change))
            self.s.refused("sim", "run", file, says=says)
        self.s.refused("sim", "run", "absent.yaml", says="absent.yaml")
        self.s.refused("sim", "replay", code=2, says="--export")

    def test_task_that_fits_no_node_is_reported(self):
        file = self.s.write("large.yaml", SCENARIO.replace("count: 4,", "cores: 8,"))
        ran = self.s.ok("sim", "run", file, "-o", "json")
        self.assertEqual(ran.json["jobs"]["refused"], 1)
        self.assertIn("sweep was refused", ran.err)


class Recordings(SlipwayCase):
    def test_a_real_run_is_predicted_and_another_policy_tried(self):
        s = self.service()
        s.pool("lab", 2, 1)
        jobs = [s.submit(job({"name": "uneven", "count": 10, "command": "sleep 0.$((2 + SLIPWAY_TASK_INDEX % 4))"},
                             name="sweep"))]
        jobs.append(s.submit(job({"name": "gang", "nodes": 2, "command": "sleep 0.6"}, name="gang")))
        s.wait_for(jobs[0])
        jobs.append(s.submit(job(shell("first", "sleep 0.7"), {**shell("then", "sleep 0.4"), "depends_on": ["first"]},
                                 {**shell("unlucky", "sleep 0.2; exit 3"), "retries": 1}, name="chain")))
        jobs.append(s.submit(job({"name": "late", "count": 6, "command": "sleep 0.5"}, name="late", priority=3)))
        for one in jobs:
            s.wait_for(one)
        s.ok("events", "--export", "events.jsonl")
        with open(os.path.join(s.base, "events.jsonl")) as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual(lines[0]["recording"]["version"], 1)
        kinds = {line["kind"] for line in lines}
        self.assertEqual(kinds, {"recording", "pool", "node", "event", "job", "attempt"})
        self.assertEqual(sum(line["kind"] == "attempt" for line in lines), 21)

        both = s.ok("sim", "replay", "--from", "events.jsonl", "-o", "json").json
        recorded, predicted = both["recorded"], both["predicted"]
        for name in ("tasks", "attempts", "retries"):
            self.assertEqual(recorded[name], predicted[name], name)
        self.assertLess(abs(predicted["makespan"] / recorded["makespan"] - 1), 0.1, both)
        self.assertLess(abs(predicted["wait"]["mean"] / recorded["wait"]["mean"] - 1), 0.1, both)

        s.write("policy.yaml", "pools:\n- {name: lab, nodes: 8}\n")
        all_three = s.ok("sim", "replay", "--from", "events.jsonl", "--with", "policy.yaml", "-o", "json").json
        self.assertEqual(all_three["predicted"], predicted)
        self.assertLess(all_three["changed"]["wait"]["mean"], predicted["wait"]["mean"] / 2)
        shown = s.ok("sim", "replay", "--from", "events.jsonl", "--with", "policy.yaml").out
        for words in ("RECORDED", "PREDICTED", "CHANGED", "RATIO"):
            self.assertIn(words, shown)
        s.write("wrong.yaml", "pools:\n- {name: attic, nodes: 8}\n")
        s.refused("sim", "replay", "--from", "events.jsonl", "--with", "wrong.yaml", says=["no pool attic", "are lab"])
        s.write("broken.jsonl", '{"kind": "job", "job": {}}\n')
        s.refused("sim", "replay", "--from", "broken.jsonl", says=["broken.jsonl line 1", "no id or no spec"])
        s.refused("events", "--export", "x", "-f", code=2, says="neither -f nor a filter")

    def test_nothing_to_replay(self):
        s = self.service()
        s.ok("events", "--export", "events.jsonl")
        s.refused("sim", "replay", "--from", "events.jsonl", says="no job of the recording has run")


if __name__ == "__main__":
    unittest.main()
