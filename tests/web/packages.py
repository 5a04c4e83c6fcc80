"""What the tests of the web UI need beside the service: the packages of web/package-lock.json, kept in ~/.cache/slipway, and Chromium."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WEB = os.path.join(ROOT, "web")
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "slipway")


def modules():
    """A folder with node_modules as web/package-lock.json has them."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise unittest.SkipTest("there is no node and npm here")
    digest = hashlib.sha256()
    for name in ("package.json", "package-lock.json"):
        with open(os.path.join(WEB, name), "rb") as file:
            digest.update(file.read())
    folder = os.path.join(CACHE, f"web-{digest.hexdigest()[:12]}")
    os.makedirs(CACHE, exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(os.path.join(folder, "complete")):
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(WEB, name), folder)
        done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise unittest.SkipTest(f"npm could not install it here: {done.stderr[-500:]}")
        with open(os.path.join(folder, "complete"), "w"):
            pass
    return folder


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    raise unittest.SkipTest("there is no Chromium here: tools/setup chromium installs it")
