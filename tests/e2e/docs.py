"""Runs the command blocks of a document, in order, as its reader would, and compares what they print.

A block without a language is a session where it has lines that begin with `$ `: what follows each is what it prints. It is a list
of commands where its first line begins with one: each has to succeed. Comments of HTML, which readers do not see, say more:

    <!-- run: COMMANDS -->   done first: what the text takes for granted
    <!-- norun: WHY -->      the next block needs what a test does not have

What differs from run to run is compared by its form: ids, times, addresses, fractions, paths of tokens; lines about progress come
and go; lines of several processes come in any order; `…` stands for anything, alone in a line for any lines. `$ cat FILE` makes a file that is not there yet.
`[--flag X]` in a command is a flag one may add: the command's help has to have it.
"""

import os
import re
import shlex
import shutil
import stat
import subprocess

from harness import ROOT, SLIPWAY

COMMANDS = ("slipway", "slipway-train", "ln", "make", "scp", "ssh", "echo", "cat", "cd")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$|^<!-- (run|norun): (.*?) ?-->$", re.S | re.M)


class Block:
    def __init__(self, line, language, text, before, why_not):
        self.line, self.language, self.text = line, language, text
        self.before = before  # commands to do first
        self.why_not = why_not

    @property
    def is_session(self):
        return self.language in ("", "sh", "console") and re.search(r"^\$ ", self.text, re.M)

    @property
    def is_list(self):
        first = self.text.lstrip().split("\n", 1)[0].split()
        return self.language in ("", "sh", "console") and not self.is_session and bool(first) and (first[0] in COMMANDS or re.match(r"[A-Z_]+=\S* slipway", self.text))

    def steps(self):
        """(command, what it prints or None) of each command."""
        if self.is_session:
            parts = re.split(r"^\$ ", self.text, flags=re.M)[1:]
            return [tuple(part.split("\n", 1)) if "\n" in part else (part, "") for part in parts]
        lines = self.text.replace("\\\n", " ").split("\n")
        return [(line, None) for line in lines if line.strip() and not line.startswith("#")]


def blocks(path):
    with open(path) as file:
        text = file.read()
    found, before, why_not = [], [], None
    for match in FENCE.finditer(text):
        if match[3] == "run":
            before.append(match[4])
        elif match[3] == "norun":
            why_not = match[4].strip()
        else:
            found.append(Block(text[:match.start()].count("\n") + 1, match[1], match[2], before, why_not))
            before, why_not = [], None
    return found


UNIT = r"(?:us|ms|s|min|h|d)\b"
FORMS = [
    (re.compile(r"\bon (?:fashion-mnist|mnist|synthetic) \([^)]*\)"), "on DATA"),  # what is installed, or none
    (re.compile(r"\b\d+ samples\b"), "N samples"),
    (re.compile(r"http://[\w.\-]+:\d+"), "URL"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?"), "WHEN"),
    (re.compile(r"/[\w./\-]*/token\b"), "/TOKEN"),
    (re.compile(r"\b(?:\d+(?:\.\d+)? %s ?)+" % UNIT), "TIME "),
    (re.compile(r"\b\d[\d,]*\.\d+\b"), "FRACTION"),
    (re.compile(r"\bsw_\w+|\btoken_[0-9a-f]+\b"), "TOKEN"),
]
PROGRESS = re.compile(r"^\S+ (queued|running|starting): \d+ of ")


def form(text):
    """The lines, with what differs from run to run replaced."""
    names = {}

    def name(match):
        return names.setdefault(match[0], f"JOB{len(names) + 1}")

    lines = []
    for line in text.split("\n"):
        if PROGRESS.match(line) or not line.strip():
            continue
        for pattern, word in FORMS:
            line = pattern.sub(word, line)
        line = re.sub(r"\bjob_\d+\b", name, line)
        lines.append(" ".join(line.replace("-" * 3, " ").split()))
    lines = [line for line in lines if line]
    begin = 0
    for end in range(len(lines) + 1):  # processes print at once
        if end == len(lines) or not re.match(r"\[[\w-]+\] ", lines[end]):
            lines[begin:end] = sorted(lines[begin:end])
            begin = end + 1
    return lines


def fits(expected, actual):
    """Whether the lines are those expected; … stands for anything."""
    if not expected:
        return not actual
    if expected[0] == "…":
        return any(fits(expected[1:], actual[i:]) for i in range(len(actual) + 1))
    if not actual:
        return False
    pattern = ".*".join(re.escape(part.strip()) for part in expected[0].split("…"))
    return re.fullmatch(pattern, actual[0]) is not None and fits(expected[1:], actual[1:])


class Reader:
    """One who follows a document in a folder of his own, with the service that it starts."""

    def __init__(self, service):
        self.s = service
        self.folder = os.path.join(service.base, "reader")
        self.bin = os.path.join(service.base, "bin")
        os.makedirs(self.bin)
        shutil.copytree(os.path.join(ROOT, "examples"), os.path.join(self.folder, "examples"))
        self.cwd = self.folder
        # Any free port, as others run beside it.
        self.script("slipway", f'[ "$1" = up ] && set -- "$@" --listen 127.0.0.1:0\nexec {SLIPWAY} "$@"\n')
        self.script("fresh", 'slipway pool delete "$1" --force --yes 2>/dev/null\nwhile slipway pool show "$1" >/dev/null 2>&1; do sleep 0.1; done\n')
        trainer = os.path.join(os.path.dirname(SLIPWAY), "slipway-train")
        self.has_trainer = os.path.exists(trainer)
        if self.has_trainer:
            os.symlink(trainer, os.path.join(self.bin, "slipway-train"))

    def script(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

    def run(self, command, timeout=180):
        """Runs a line under bash where the one before left off; gives its exit code and all it printed."""
        note = os.path.join(self.s.base, "cwd")
        script = f"{command}\ncode=$?\npwd > {shlex.quote(note)}\nexit $code"
        environment = self.s.environment(USER="ana", HOME=self.s.home)
        environment["PATH"] = self.bin + ":" + environment["PATH"]
        done = subprocess.run(["bash", "-c", script], cwd=self.cwd, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
        if os.path.exists(note):
            with open(note) as file:
                self.cwd = file.read().strip()
        return done.returncode, done.stdout

    def prepare(self, block):
        for command in block.before:
            code, printed = self.run(command)
            if code != 0:
                raise AssertionError(f"line {block.line}: what is done first failed: {command}\n{printed}")

    def follow(self, block):
        """Does what a block says; gives what was wrong."""
        self.prepare(block)
        wrong = []
        for command, prints in block.steps():
            if prints is None:
                wrong += self.command(command)
                continue
            made = re.fullmatch(r"cat (\S+)", command.strip())
            if made and not os.path.exists(os.path.join(self.cwd, made[1])):
                with open(os.path.join(self.cwd, made[1]), "w") as file:
                    file.write(prints)
            _, printed = self.run(command)
            if not fits(form(prints), form(printed)):
                wrong.append(f"$ {command}\nshould print\n{prints}\nprints\n{printed}")
        return wrong

    def command(self, line):
        flags = re.findall(r"\[(--[\w-]+)[^\]]*\]", line)
        plain = re.sub(r" \[--[^\]]*\]", "", line)
        code, printed = self.run(plain)
        wrong = [] if code == 0 else [f"{plain}\nexits with {code}:\n{printed}"]
        words = [word for word in plain.split("#")[0].split() if re.fullmatch(r"[a-z][a-z-]*", word)]
        for flag in flags:
            helped = next((text for n in range(len(words), 0, -1) for code, text in [self.run(" ".join(words[:n]) + " --help")] if code == 0), "")
            if flag not in helped:
                wrong.append(f"{plain}: its help has no {flag}")
        return wrong
