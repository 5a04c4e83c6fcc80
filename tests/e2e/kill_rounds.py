"""Kills the service, agents and keepers at random moments and checks a ledger that the tasks write themselves.

Every process of a task appends `start JOB TASK ATTEMPT RANK` to one file when it begins and `end … CODE` before
it exits. At the end the ledger and the API's records have to agree.
"""

import argparse
import collections
import http.client
import os
import random
import sys
import threading
import time

from harness import TERMINAL, Service, wait_until

# Fails once where it is asked to; one retry has to be enough however often nodes are lost.
SCRIPT = r"""
me="$SLIPWAY_JOB_ID $SLIPWAY_TASK_NAME $SLIPWAY_ATTEMPT $SLIPWAY_RANK"
echo "start $me" >> "$LEDGER"
sleep "$PAUSE"
code=0
case "$MODE" in
  once) if mkdir "$SLIPWAY_SHARED/failed-$SLIPWAY_TASK_NAME-$SLIPWAY_RANK" 2>/dev/null; then code=3; fi ;;
  always) code=5 ;;
esac
echo "end $me $code" >> "$LEDGER"
exit $code
"""


class Rounds:
    def __init__(self, rounds, seed, talk=print):
        self.rounds, self.seed, self.talk = rounds, seed, talk
        self.random = random.Random(seed)
        self.kills = collections.Counter()
        self.keys = []
        self.acknowledged = {}  # key → job id
        self.modes = {}  # job id → mode of each task name without its index

    def run(self):
        self.talk(f"seed {self.seed}, {self.rounds} rounds")
        with Service() as self.service:
            self.ledger = os.path.join(self.service.base, "ledger.txt")
            open(self.ledger, "w").close()
            self.service.pool("lab", 2)
            began = time.monotonic()
            for number in range(1, self.rounds + 1):
                self.round(number)
            self.make_whole()
            self.settle(0)
            self.check()
            self.talk(
                f"{self.rounds} rounds in {time.monotonic() - began:.0f} s: {len(self.acknowledged)} jobs, "
                f"{self.attempts} attempts, {self.again} of them after a lost node; kills: {dict(self.kills)}"
            )

    # One round: submit while something dies.

    def round(self, number):
        key = f"round-{self.seed}-{number}"
        spec = self.spec(number)
        self.keys.append(key)
        target = self.random.choice(["service", "agent", "keeper", "service+agents"])
        delay = self.random.uniform(0, 0.6)
        submitting = threading.Thread(target=self.submit, args=(key, spec))
        submitting.start()
        time.sleep(delay)  # a random delay; nothing is waited for by it
        self.kill(target)
        submitting.join()
        self.make_whole()
        if key not in self.acknowledged:  # it died under the request: the same key must give one job, not two
            self.submit(key, spec)
            assert key in self.acknowledged, f"round {number}: the submission was refused twice"
        self.modes[self.acknowledged[key]] = {task["name"]: task["environment"]["MODE"] for task in spec["tasks"]}
        self.settle(6)
        if number % 20 == 0:
            self.talk(f"round {number}: kills so far {dict(self.kills)}")

    def spec(self, number):
        def task(name, mode, **more):
            pause = f"{self.random.uniform(0, 0.4):.3f}"
            environment = {"LEDGER": self.ledger, "PAUSE": pause, "MODE": mode}
            return {"name": name, "command": ["sh", "-c", SCRIPT], "environment": environment, "stop_grace": 1, **more}

        tasks = [task("array", self.random.choice(["well", "once"]), count=self.random.randint(1, 4), retries=1)]
        if self.random.random() < 0.5:
            tasks.append(task("gang", "well", nodes=2))
        if self.random.random() < 0.4:
            tasks.append(task("twice", "once", retries=1))
        if self.random.random() < 0.2:
            tasks.append(task("bad", "always", retries=1))
        if self.random.random() < 0.4:
            tasks.append(task("after", "well", depends_on=["array"]))
        return {"name": f"round-{number}", "pool": "lab", "tasks": tasks}

    def submit(self, key, spec):
        try:
            answer = self.service.ask("POST", "/v1/jobs", body=spec, headers={"Idempotency-Key": key})
        except (OSError, http.client.HTTPException, FileNotFoundError, ValueError):
            return
        if answer.status in (200, 201):
            self.acknowledged[key] = answer.json["id"]

    def kill(self, target):
        service = self.service
        if target == "service":
            pids = [service.pid]
        elif target == "service+agents":
            pids = [service.pid, *service.pids("agent").values()]
        else:
            pids = list(service.pids(target).values())
            pids = [self.random.choice(sorted(pids))] if pids else []
        pids = [pid for pid in pids if pid]
        self.kills[target if pids else "nothing there"] += 1
        service.kill(*pids)

    def make_whole(self):
        if not self.service.pid:
            self.service.up()

    def settle(self, unfinished_max):
        """Waits until no more than so many jobs are still to end."""
        self.ended = getattr(self, "ended", set())

        def few():
            for job in set(self.acknowledged.values()) - self.ended:
                if self.service.job(job)["state"] in TERMINAL:
                    self.ended.add(job)
            return len(set(self.acknowledged.values()) - self.ended) <= unfinished_max

        try:
            wait_until(few, 120, what="the end of jobs", every=0.05)
        except AssertionError:
            for job in sorted(set(self.acknowledged.values()) - self.ended):
                self.talk(f"{job} has not ended: {self.service.ask('GET', f'/v1/jobs/{job}/why').body.decode()}")
            raise

    # The two stories, compared.

    def check(self):
        problems = []
        starts, ends, order = collections.Counter(), collections.defaultdict(list), {}
        with open(self.ledger) as file:
            for line in file:
                words = line.split()
                job, task, attempt, rank = words[1], words[2], int(words[3]), int(words[4])
                name = (job, task, attempt, rank)
                if words[0] == "start":
                    starts[name] += 1
                else:
                    ends[name].append(int(words[5]))
                if attempt < order.get((job, task), 0):
                    problems.append(f"{line.strip()!r} came after attempt {order[job, task]} had begun")
                order[job, task] = max(attempt, order.get((job, task), 0))
        for name, count in starts.items():
            if count > 1:
                problems.append(f"{name} started {count} times")

        known, self.attempts, self.again = set(), 0, 0
        jobs, after = [], ""
        while True:
            page = self.service.get("/v1/jobs?limit=1000" + after)
            jobs += page["items"]
            if not page.get("next"):
                break
            after = "&after=" + page["next"]
        if sorted(job["id"] for job in jobs) != sorted(self.acknowledged.values()):
            problems.append(f"{len(self.keys)} keys, acknowledged {sorted(self.acknowledged.values())}, "
                            f"there are {sorted(job['id'] for job in jobs)}")
        for job in jobs:
            modes = self.modes.get(job["id"], {})
            if job["state"] not in TERMINAL:
                problems.append(f"{job['id']} has not ended: {job['state']}")
            for task in self.service.tasks(job["id"]):
                problems += self.check_task(job["id"], modes, task, starts, ends, known)
        for name in starts:
            if name[:3] not in known:
                problems.append(f"{name} started, and no attempt says so")
        if problems:
            keep = os.path.join("/tmp", f"kill-test-{self.seed}")
            self.keep(keep)
            raise AssertionError(f"seed {self.seed}: {len(problems)} problems (see {keep}):\n" + "\n".join(problems[:40]))

    def check_task(self, job, modes, task, starts, ends, known):
        problems = []
        name = task["name"]
        bad = modes.get(name.split("[")[0]) == "always"
        wanted = "failed" if bad else "succeeded"
        if task["state"] != wanted:
            problems.append(f"{job}/{name} is {task['state']}, not {wanted}: {task['reason']}")
        history = self.service.task(job, name)["history"]
        if len(history) != task["attempts"]:
            problems.append(f"{job}/{name} has {task['attempts']} attempts and a history of {len(history)}")
        failures = 0
        for attempt in history:
            self.attempts += 1
            self.again += attempt["end"] == "node_lost"
            number = attempt["attempt"]
            known.add((job, name, number))
            where = f"{job}/{name} attempt {number} ({attempt['end']}, {attempt['detail']})"
            if attempt["end"] not in ("exited", "node_lost"):
                problems.append(f"{where}: nobody asked for this end")
            for rank in range(attempt["processes"]):
                key = (job, name, number, rank)
                if attempt["end"] != "exited":
                    continue
                if starts[key] != 1:
                    problems.append(f"{where} rank {rank} has {starts[key]} start lines")
                # Only the rank that failed is sure to have come to its end.
                if attempt["exit_code"] == 0 or attempt["rank"] in (None, rank):
                    if ends[key] != [attempt["exit_code"]]:
                        problems.append(f"{where} rank {rank} wrote ends {ends[key]}, not {attempt['exit_code']}")
            failures += attempt["end"] == "exited" and attempt["exit_code"] != 0
        if bad and failures != 2:
            problems.append(f"{job}/{name} failed {failures} times; with one retry it should be 2")
        if failures != task["retries_used"] + bad:
            problems.append(f"{job}/{name} used {task['retries_used']} retries for {failures} failures of its own")
        last = history[-1] if history else {}
        if not bad and (last.get("end"), last.get("exit_code")) != ("exited", 0):
            problems.append(f"{job}/{name} ended with {last}")
        return problems

    def keep(self, folder):
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        shutil.copy(self.ledger, folder)
        for name in ("service.log", "nodes"):
            path = os.path.join(self.service.data, name)
            if os.path.isdir(path):
                for node in os.listdir(path):
                    for log in ("agent.log", "keeper.log"):
                        file = os.path.join(path, node, log)
                        if os.path.exists(file):
                            shutil.copy(file, os.path.join(folder, f"{node}.{log}"))
            elif os.path.exists(path):
                shutil.copy(path, folder)
        events, after = [], 0
        while True:
            page = self.service.get(f"/v1/events?limit=1000&after={after}")
            events += page["items"]
            if not page.get("next"):
                break
            after = page["next"]
        with open(os.path.join(folder, "events.txt"), "w") as file:
            for event in events:
                file.write(f"{event['time']} {event['kind']} {event['job']}/{event['task']} {event['text']}\n")


def main():
    parser = argparse.ArgumentParser(prog="tools/kill-test", description="Kill -9 at random moments, check the ledger.")
    parser.add_argument("rounds", nargs="?", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    arguments = parser.parse_args()
    Rounds(arguments.rounds, arguments.seed, lambda text: print(text, flush=True)).run()


if __name__ == "__main__":
    sys.exit(main())
