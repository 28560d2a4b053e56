# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Pythons with PyTorch that the tests of this folder run, by default that of build/venv, where PyTorch is installed if it is missing. And
their recordings."""
import os
import subprocess

import proc_files
from file_lock import locked
from pip_packages import has_torch, install_torch
from process_text import text_stays_different
from recording import workdir
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import note, skip, skip_all

B = os.environ.get("B", "build")
TRIES = 3  # recordings of which one has to be without losses


def version_of(python):
    """The version of PyTorch that this interpreter has"""
    return subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True).stdout.strip()


def pythons():
    """Paths of the interpreters to test: those that SONDE_TORCH_PYTHON lists, separated by colons, or the one of build/venv. Those without
    PyTorch are left out; if none has it, the test is skipped."""
    named = os.environ.get("SONDE_TORCH_PYTHON")
    found = [p for p in named.split(":") if has_torch(p)] if named else [python()]
    if not found:
        skip_all(f"no Python of SONDE_TORCH_PYTHON={named} has PyTorch")
    return found


def python():
    """The path of an interpreter that has PyTorch; without one the test is skipped."""
    named = os.environ.get("SONDE_TORCH_PYTHON")
    chosen = named.split(":")[0] if named else os.path.join(B, "venv/bin/python")
    with locked(os.path.join(B, "venv")):
        if not has_torch(chosen) and not named:
            install_torch(chosen)
        if not has_torch(chosen):
            skip_all("PyTorch can't be installed")
    return chosen


class Recording:
    """A recording of a program that prints "ready", does its work after a line on stdin, prints "done" and waits for another line. The
    recording begins and ends while it waits. Its other lines are .output; before "ready" a line "pids N N" may name the
    processes with PyTorch that it has started, .pids."""

    def __init__(self, program, *options, families="torch"):
        if os.geteuid():
            skip_all("tracing needs root")
        self.target = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.pid = self.target.pid
        self.output = self.until("ready")
        self.path = os.path.join(workdir(), f"{self.pid}.sonde")
        self.pids = [int(pid) for line in self.output if line.startswith("pids ") for pid in line.split()[1:]] or [self.pid]
        sonde = Sonde(self.path, "-t", families, "-p", ",".join(map(str, {self.pid, *self.pids})), *options)
        if "--inject" in options:
            sonde.wait_trace(lambda t: {e["pid"] for e in t.events("torch_shim") if e["state_name"] == "GPU_SHIM_STARTED"} >= set(self.pids))
        self.go()
        self.output += self.until("done")
        attacher = proc_files.child_named(sonde.pid, "sonde-attacher")
        self.status = sonde.end()
        self.messages = sonde.messages
        self.changed = text_stays_different(self.pid, "libtorch_cpu.so", attacher)
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


def lost(r, start, end):
    """Was a record lost between these times (CLOCK_MONOTONIC, ns)?"""
    return any(e["reason_name"] == "LOSS_RING_FULL" and e["first"] < end and start < e["last"] for e in r.trace.events("meta_loss"))


def judge_modes(record, check):
    """Calls check(recording, mode, start, end, ...) for each line "MODE START END ..." that the recorded program prints. Shares are judged in a
    recording that lost no record between these times: a machine that is too busy to examine libtorch and to record at once loses records and
    says so. record() makes a recording."""
    judged, modes = set(), ()
    for _ in range(TRIES):
        r = record()
        modes = [line.split() for line in r.output if len(line.split()) > 1]
        for mode, *numbers in modes:
            start, end, *others = map(int, numbers)
            if mode in judged:
                continue
            if lost(r, start, end):
                note(f"{mode}: records were lost\n{r.messages}")
                continue
            check(r, mode, start, end, *others)
            judged.add(mode)
        if len(judged) == len(modes):
            break
    for mode, *_ in modes:
        if mode not in judged:
            skip(mode, f"records were lost in each of {TRIES} recordings")
