"""What the framework tests stand on: an example of examples/toolkits as a job, what its processes say, and their deaths.

The environments come from tools/frameworks; job files say python3, and PATH leads that to the right one. Data is drawn.
"""

import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

from harness import PATIENCE, NeverHappened, SharedServiceCase, processes_of, wait_until  # noqa: E402

EXAMPLES = os.path.join(ROOT, "examples", "toolkits")


def folder_of_python(name):
    """Where the Python of an environment lies; fails with what to do where it was not made."""
    asked = [os.path.join(ROOT, "tools", "frameworks"), "python", name]
    return os.path.dirname(subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


def environment_of(pid):
    try:
        with open(f"/proc/{pid}/environ", errors="replace") as file:
            return dict(entry.split("=", 1) for entry in file.read().split("\0") if "=" in entry)
    except OSError:
        return {}


class Training:
    """A task that was submitted, and its attempts."""

    def __init__(self, service, job, task):
        self.service, self.job, self.task = service, job, task

    def output(self, process, attempt=None):
        """What a process has written so far; of the last attempt unless told otherwise. Without mpirun's tags."""
        query = {"process": process, **({"attempt": attempt} if attempt else {})}
        return re.sub(r"^\[(?:\d+,)?\d+\]<stdout>: ?", "", self.service.log(self.job, self.task, **query), flags=re.MULTILINE)

    def history(self, lines=40):
        """How each attempt ended, and the last lines each of its processes wrote: what a failed test prints."""
        task = self.service.task(self.job, self.task)
        text = [f"{self.job}/{self.task}: {task['state']}: {task['reason']}"]
        for attempt in task["history"]:
            number = attempt["attempt"]
            text.append(f"attempt {number}: {attempt['end']}: {attempt['detail']} (placed {attempt['placed_at']}, ended {attempt['ended_at']})")
            for process in task["process_names"]:
                for stream in ("stdout", "stderr"):
                    text.append(f"--- attempt {number}, {stream} of {process}")
                    text.append(self.service.log(self.job, self.task, process=process, attempt=number, stream=stream, tail=lines).rstrip())
        return "\n".join(text)

    def wait_for(self, process, pattern):
        wait_until(
            lambda: re.search(pattern, self.output(process)) or self.has_ended(),
            4 * PATIENCE,
            what=f"{process} of {self.job} says {pattern}",
            every=0.1,
        )

    def has_ended(self):
        return self.service.job(self.job)["state"] not in ("queued", "running")

    def processes(self):
        """pid → environment and command line, of all that still run for the job."""
        found = {}
        for pid, command in processes_of(self.service.data + "/").items():
            environment = environment_of(pid)
            if environment.get("SLIPWAY_JOB_ID") == self.job:
                found[pid] = environment, command
        return found

    def kill_rank(self, program, number, *variables):
        """kill -9 of the process that runs the program and finds its number in one of these variables. Its launcher, which
        has the program's name among its arguments, is not meant."""
        pids = [
            pid
            for pid, (environment, command) in self.processes().items()
            if number in map(environment.get, variables)
            and re.search(program + r"( |$)", command)
            and not re.search(r"torch\.distributed\.run|mpirun|horovodrun|slipway node|^(/bin/)?sh ", command)
        ]
        assert len(pids) == 1, f"{pids} of {self.processes()} run {program} as number {number}"
        self.service.kill(*pids)

    def kill_role(self, program, role, index):
        def is_it(environment):
            return json.loads(environment.get("TF_CONFIG", "{}")).get("task") == {"type": role, "index": index}

        pids = [pid for pid, (environment, command) in self.processes().items() if program in command and is_it(environment)]
        assert len(pids) == 1, f"{pids} of {self.processes()} run {program} as {role} {index}"
        self.service.kill(*pids)


class FrameworkCase(SharedServiceCase):
    pool_nodes = 4
    framework = ""  # an environment of tools/frameworks
    environment = {}

    @classmethod
    def setUpClass(cls):
        cls.path = folder_of_python(cls.framework) + ":" + os.environ["PATH"]
        super().setUpClass()

    def start(self, example, task="train", **environment):
        environment = {"PATH": self.path, "SLIPWAY_DATA": "synthetic", **self.environment, **environment}
        settings = [word for name, value in environment.items() for word in ("--set", f"environment.{name}={value}")]
        job = self.s.ok("job", "submit", os.path.join(EXAMPLES, example), "-o", "quiet", *settings).out.strip()
        return Training(self.s, job, task)

    def finish(self, training, attempts=1):
        """Waits for the end, which has to be a good one after so many attempts that leaves nothing running."""
        try:
            state = self.s.wait_for(training.job, timeout=6 * PATIENCE)["state"]
        except NeverHappened as never:
            self.fail(f"{never}\n{training.history()}")
        seen = state, self.s.task(training.job, training.task)["attempts"]
        if seen != ("succeeded", attempts):
            self.fail(f"{seen} instead of {('succeeded', attempts)}\n{training.history()}")
        wait_until(lambda: not training.processes(), what=f"{training.processes()} ended")
        return training

    def run_whole(self, example, task="train", **environment):
        return self.finish(self.start(example, task, **environment))

    # Checks of what a process wrote

    def assert_loss_fell(self, output, to=0.5):
        losses = [float(loss) for loss in re.findall(r"^step \d+  loss ([\d.]+)", output, re.MULTILINE)]
        self.assertGreater(len(losses), 1, output)
        self.assertLess(losses[-1], to * losses[0], output)

    def assert_accuracy(self, output, least=90):
        found = re.search(r"^done: \d+ steps.* test accuracy ([\d.]+) %", output, re.MULTILINE)
        self.assertTrue(found, output)
        self.assertGreater(float(found[1]), least, output)

    def assert_resumed(self, output, what="step"):
        found = re.search(rf"^resumed at {what} (\d+)", output, re.MULTILINE)
        self.assertTrue(found and int(found[1]) > 0, output)

    def weights(self, output):
        found = re.search(r"the weights add up to (-?[\d.]+)", output)
        self.assertTrue(found, output)
        return found[1]
