# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Python with PyTorch that the tests of this folder run: build/venv, where it is installed if it is missing. And its recordings."""
import os
import re
import subprocess

from recording import workdir
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import skip_all

B = os.environ.get("B", "build")
VERSION = "2.13.0"


def has_torch(python):
    return os.access(python, os.X_OK) and not subprocess.run([python, "-c", "import torch"], capture_output=True).returncode


def python():
    """The path of an interpreter that has PyTorch; without one the test is skipped."""
    chosen = os.environ.get("SONDE_TORCH_PYTHON", os.path.join(B, "venv/bin/python"))
    if has_torch(chosen):
        return chosen
    if "SONDE_TORCH_PYTHON" not in os.environ:
        if not os.path.exists(chosen):
            subprocess.run(["/usr/bin/python3", "-m", "venv", os.path.join(B, "venv")], capture_output=True)
        pip = [chosen, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        # the variant for CPUs has a fraction of the other's size, but not every index has it
        for package in (f"torch=={VERSION}+cpu", f"torch=={VERSION}"):
            if os.path.exists(chosen) and not subprocess.run([*pip, package, "numpy"], capture_output=True).returncode:
                break
    if not has_torch(chosen):
        skip_all("PyTorch can't be installed")
    return chosen


class Recording:
    """A recording of a program that prints "ready", does its work after a line on stdin, prints "done" and waits for another line. The
    recording begins and ends while it waits. Its other lines are .output."""

    def __init__(self, program, *options):
        if os.geteuid():
            skip_all("tracing needs root")
        self.target = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.pid = self.target.pid
        self.output = self.until("ready")
        self.path = os.path.join(workdir(), f"{self.pid}.sonde")
        sonde = Sonde(self.path, "-t", "torch", "-p", str(self.pid), *options)
        self.go()
        self.output += self.until("done")
        self.status = sonde.end()
        self.messages = sonde.messages
        self.changed = changed_text(self.pid, "libtorch_cpu.so")
        self.go()
        self.target.wait(timeout=60)
        self.trace = Trace(self.path)

    def go(self):
        self.target.stdin.write("go\n")
        self.target.stdin.flush()

    def until(self, word):
        lines = []
        for line in self.target.stdout:
            if line.strip() == word:
                return lines
            lines.append(line)
        raise SystemExit(f"Bail out! the program ended without '{word}'")


def changed_text(pid, name):
    """Bytes of a mapped library's code that differ from those of its file."""
    changed = 0
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in maps:
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r-xp ([0-9a-f]+) \S+ \d+\s+(.*)", line)
            if not m or not m[4].endswith(name):
                continue
            start, end, offset = (int(n, 16) for n in m.groups()[:3])
            with open(m[4], "rb") as file:
                for at in range(0, end - start, 1 << 20):
                    size = min(1 << 20, end - start - at)
                    mem.seek(start + at)
                    file.seek(offset + at)
                    a, b = mem.read(size), file.read(size)
                    changed += a != b and sum(x != y for x, y in zip(a, b))
    return changed
