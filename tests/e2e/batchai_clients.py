"""Microsoft's own clients of Batch AI, installed once and kept in ~/.cache/slipway (or XDG_CACHE_HOME)."""

import fcntl
import os
import shutil
import subprocess
import sys
import unittest

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "slipway")


def _install(folder, commands):
    """Runs the commands once; a folder is there with its mark `complete`, or it is made anew."""
    os.makedirs(CACHE, exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(os.path.join(folder, "complete")):
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for command in commands:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                raise unittest.SkipTest(f"{command[0]} could not install it here: {done.stderr[-500:]}")
        with open(os.path.join(folder, "complete"), "w"):
            pass
        return folder


def javascript():
    """The folder that has node_modules/@azure/arm-batchai."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise unittest.SkipTest("there is no node and npm here")
    package = "@azure/arm-batchai@2.2.1"
    return _install(os.path.join(CACHE, "arm-batchai-2.2.1"),
                    [["npm", "install", "--no-audit", "--no-fund", "--silent", package]])


def python(version):
    """The interpreter of an environment that has azure-mgmt-batchai of this version."""
    folder = os.path.join(CACHE, f"azure-mgmt-batchai-{version}")
    _install(folder, [[sys.executable, "-m", "venv", "env"],
                      ["env/bin/pip", "install", "--quiet", f"azure-mgmt-batchai=={version}", "msrest==0.7.1",
                       "setuptools<81"]])
    return os.path.join(folder, "env", "bin", "python")
