#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A machine with 2,000 processes, of which three matter: a Python and two that use a CUDA runtime.

  live     ms from the start of `sonde record` until it reports that it traces; goal: 1,000
  memory   peak resident MiB of its two processes together; goal: 64. Pages that both map are counted twice.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
B = os.environ.get("B", os.path.join(ROOT, "build"))
SONDE = os.environ.get("SONDE", os.path.join(B, "sonde"))
PROCESSES, ROUNDS = int(os.environ.get("PROCESSES", 2000)), int(os.environ.get("ROUNDS", 5))


def peak(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmHWM"))


def attacher_of(pid):
    for other in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{other}/status") as f:
                text = f.read()
        except OSError:
            continue
        if text.startswith("Name:\tsonde-attacher\n") and f"\nPPid:\t{pid}\n" in text:
            return int(other)
    raise RuntimeError("no sonde-attacher")


def one(tmp, args):
    start = time.monotonic()
    sonde = subprocess.Popen([SONDE, "record", "-f", "-o", os.path.join(tmp, "trace"), *args], stderr=subprocess.PIPE, text=True)
    line = sonde.stderr.readline()
    while line and "tracing into" not in line:
        line = sonde.stderr.readline()
    live = (time.monotonic() - start) * 1000
    time.sleep(2)
    worker, attacher = peak(sonde.pid), peak(attacher_of(sonde.pid))
    sonde.send_signal(2)
    sonde.communicate()
    return live, worker, attacher


def main():
    tmp = tempfile.mkdtemp()
    libraries = [os.path.join(tmp, d, "libcudart.so.12") for d in "ab"]
    for library in libraries:
        os.mkdir(os.path.dirname(library))
        shutil.copy(os.path.join(B, "tests/fakes/libcudart.so"), library)
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen([os.path.join(B, "tests/workloads/crowd"), str(PROCESSES)], **pipe)]
    started += [subprocess.Popen([os.path.join(B, "tests/workloads/busy_calls"), lib, "1"], **pipe) for lib in libraries]
    started += [subprocess.Popen([sys.executable, "-c", "print('ready', flush=True); __import__('sys').stdin.read()"], **pipe)]
    try:
        for p in started:
            p.stdout.readline()
        there = sum(d.isdigit() for d in os.listdir("/proc"))
        print(f"{there} processes")
        print(f"{'families':22} {'live ms':>8} {'worker MiB':>11} {'attacher MiB':>13} {'of 1 s':>7} {'of 64 MiB':>10}")
        for args in ([], ["-t", "+sched"]):
            live, worker, attacher = (statistics.median(x) for x in zip(*(one(tmp, args) for _ in range(ROUNDS))))
            print(f"{' '.join(args) or 'default':22} {live:8.0f} {worker:11.1f} {attacher:13.1f} {live / 1000:7.2f} "
                  f"{(worker + attacher) / 64:10.2f}", flush=True)
    finally:
        for p in started:
            p.stdin.close()
            p.wait()
        shutil.rmtree(tmp)


if os.geteuid():
    print("not root")
    sys.exit(77)
main()
