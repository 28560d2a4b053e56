#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_cuda: the cost of recording CUDA calls. Prints tables.

  nested  ns per call of a driver that does nothing: recorded, and with a nested call that is left out
  stacks  us per launch from Python by ctypes: without and with the Python stack (1 and 40 frames), and the start of sonde

Environment: ROUNDS (5). Nothing here passes or fails.
"""
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.path.join(ROOT, "build")
SONDE = os.environ.get("SONDE", os.path.join(BUILD, "sonde"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
PYTHON = """
import ctypes, sys, time
launch = ctypes.PyDLL(sys.argv[1]).cuLaunchKernel
def deeper(n):
    if n > 1:
        return deeper(n - 1)
    best = 1e9
    for _ in range(20):
        begin = time.perf_counter()
        for _ in range(1000):
            launch(None)
        best = min(best, time.perf_counter() - begin)
    return best * 1e3
print("ready", flush=True)
for line in sys.stdin:
    print(deeper(int(line)), flush=True)
"""


class Sonde:
    def __init__(self, tmp, families, *args):
        begin = time.monotonic()
        self.child = subprocess.Popen([SONDE, "record", "-f", "-o", os.path.join(tmp, "trace"), "-t", families, *args],
                                      stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        while "tracing into" not in (line := self.child.stderr.readline()):
            if not line:
                raise RuntimeError("sonde record")
        self.start = time.monotonic() - begin

    def stop(self):
        begin = time.monotonic()
        self.child.send_signal(signal.SIGINT)
        text = self.child.communicate()[1]
        if self.child.returncode or " 0 lost" not in text:
            print("# sonde: " + text.strip().replace("\n", "\n# "))
        return time.monotonic() - begin


def library(tmp, name, version):
    """A new file, as overwriting a mapped file would break the processes that map it"""
    path = os.path.join(tmp, f"{name}.so.{version}")
    shutil.copy(os.path.join(BUILD, "tests", "fakes", name + ".so"), path)
    return path


def spin_begin(command):
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    return p


def ask(p, line):
    p.stdin.write(line + "\n")
    p.stdin.flush()
    return min(map(float, p.stdout.readline().split()))


def nested(tmp):
    spin = spin_begin([os.path.join(BUILD, "tests", "workloads", "call_spin"), library(tmp, "libcuda", 98)])
    calls = {"one call": "cuLaunchCooperativeKernel", "with one within": "cuLaunchKernel_ptsz"}
    ways = {"nothing": None, "cudadrv": (), "--cudadrv=nested": ("--cudadrv=nested",)}
    found = {(w, c): [] for w in ways for c in calls}
    for _ in range(ROUNDS):
        for way, args in ways.items():
            s = Sonde(tmp, "cudadrv", *args) if args is not None else None
            for call, function in calls.items():
                found[way, call].append(ask(spin, f"{function} 2000 40"))
            if s:
                s.stop()
    spin.communicate()
    print(f"ns a call of libcuda, median of {ROUNDS} rounds")
    for way in ways:
        one, two = (statistics.median(found[way, c]) for c in calls)
        print(f"{way:18}{one:8.0f} {two:8.0f} with one within: {two - one:+.0f}")


def stacks(tmp):
    python = spin_begin(["/usr/bin/python3", "-S", "-c", PYTHON, library(tmp, "libcuda", 99)])
    ways = {"nothing": None, "cuda": ("cuda",), "cuda,cudadrv": ("cuda,cudadrv",),
            "--cuda=stacks": ("cuda,cudadrv", "--cuda=stacks")}  # family cuda alone does not record these calls
    found = {(w, n): [] for w in ways for n in (1, 40, "start", "stop")}
    for _ in range(ROUNDS):
        for way, args in ways.items():
            s = Sonde(tmp, *args) if args else None
            for n in (1, 40):
                found[way, n].append(ask(python, str(n)))
            if s:
                found[way, "start"].append(s.start * 1e3)
                found[way, "stop"].append(s.stop() * 1e3)
    python.communicate()
    print(f"\nus a launch from Python at a depth of 1 and 40, ms that sonde takes to start and stop; median of {ROUNDS} rounds")
    for way in ways:
        row = [statistics.median(found[way, n]) if found[way, n] else 0 for n in (1, 40, "start", "stop")]
        print(f"{way:18}" + "".join(f"{v:10.2f}" for v in row))


def main():
    tmp = tempfile.mkdtemp(prefix="sonde-bench-")
    try:
        nested(tmp)
        stacks(tmp)
    finally:
        shutil.rmtree(tmp, ignore_errors=True)


main()
