#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_sample: the cost of sampling call-heavy Python at 99 Hz.

In each of ROUNDS (30) rounds a program runs with sonde, with py-spy (if installed) and alone. A round's figure is the program's CPU
time for the same work; the table has the mean ratio to the program alone in the same round with its 95% interval. If that
is wider than the effect (0.3%), use the cost by counting: samples times the run time of sonde's BPF program, measured
by the kernel, as a share of the wall time.
Nothing here passes or fails.
"""
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
SONDE = os.environ.get("SONDE", os.path.join(ROOT, "build", "sonde"))
SPY = shutil.which("py-spy") or os.path.join(ROOT, "build", "py-spy", "bin", "py-spy")
ROUNDS = int(os.environ.get("ROUNDS", "30"))
WORK = """
import sys, time
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
for line in sys.stdin:
    cpu, wall = time.process_time_ns(), time.perf_counter_ns()
    fib(int(line))
    print(time.process_time_ns() - cpu, time.perf_counter_ns() - wall, flush=True)
"""
PEERS = {
    "nothing": None,
    "sonde -F 99": lambda pid, out: [SONDE, "record", "-f", "-o", out, "-t", "sample", "-F", "99", "-p", str(pid)],
    "sonde --off-cpu": lambda pid, out: [SONDE, "record", "-f", "-o", out, "-t", "sample", "--off-cpu", "-p", str(pid)],
    "py-spy 100": lambda pid, out: [SPY, "record", "-r", "100", "-d", "1000", "-f", "raw", "-o", out, "-p", str(pid)],
}


def programs():
    """(runs, ns) of the sampling BPF program so far"""
    p = subprocess.run(["bpftool", "-j", "prog", "show"], stdout=subprocess.PIPE)
    own = [x for x in json.loads(p.stdout or b"[]") if x.get("name") == "sample_tick"]
    return sum(x.get("run_cnt", 0) for x in own), sum(x.get("run_time_ns", 0) for x in own)


def start(command):
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if command[0] == SONDE:
        while "tracing into" not in p.stderr.readline():
            pass
    else:
        time.sleep(0.5)
    return p


def one(target, name, tmp, n):
    """(CPU ns, wall ns, runs and ns of the BPF program)"""
    command = PEERS[name]
    p = start(command(target.pid, os.path.join(tmp, "out"))) if command else None
    before = programs() if name == "sonde -F 99" else (0, 0)
    target.stdin.write(f"{n}\n")
    target.stdin.flush()
    cpu, wall = map(int, target.stdout.readline().split())
    after = programs() if name == "sonde -F 99" else (0, 0)
    if p:
        p.send_signal(signal.SIGINT)
        p.communicate()
    return cpu, wall, after[0] - before[0], after[1] - before[1]


def interval(values):
    """(mean, half the width of its 95% interval)"""
    if len(values) < 2:
        return values[0], math.inf
    return statistics.mean(values), 1.96 * statistics.stdev(values) / math.sqrt(len(values))


def main():
    peers = [n for n in PEERS if n != "py-spy 100" or os.access(SPY, os.X_OK)]
    found = {n: [] for n in peers}
    tmp = tempfile.mkdtemp(prefix="sonde-bench-")
    subprocess.run(["sysctl", "-q", "kernel.bpf_stats_enabled=1"])
    target = subprocess.Popen([sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        one(target, "nothing", tmp, 27)
        for _ in range(ROUNDS):
            for name in peers:
                found[name].append(one(target, name, tmp, 30))
    finally:
        subprocess.run(["sysctl", "-q", "kernel.bpf_stats_enabled=0"])
        target.stdin.close()
        target.wait()
        shutil.rmtree(tmp)
    print(f"\nCPU time of the same work, ratio to nothing in the same of {ROUNDS} rounds, and its 95% interval")
    for name in peers:
        ratios = [x[0] / y[0] for x, y in zip(found[name], found["nothing"])]
        mean, half = interval(ratios)
        print(f"{name:16} {mean:.4f} +- {half:.4f}")
    runs, ns, wall = (sum(x[i] for x in found["sonde -F 99"]) for i in (2, 3, 1))
    if runs:
        print(f"sonde -F 99: {runs} ticks of {ns / runs:.0f} ns on average in the program: {100 * ns / wall:.3f}% of the wall time")


main()
