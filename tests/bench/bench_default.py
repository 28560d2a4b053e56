#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_default [--steady] [WORK..]: what `sonde record` without options costs programs. PAIRS=30 SECONDS=1 (of a run) in the environment.

A work runs alone and beside each tool in turns, in an order that changes, PAIRS rounds: sonde's default, `-t lean`, py-spy and
perf at the default's 49 Hz. Printed are the median ratios to the work alone in the same round, with a bootstrap interval of 95%:
the wall time and the CPU time of a unit of work (1.01: 1% more). The goal is below 1%. A run begins half a second after sonde says
that it records, or after the peers were started. `gunicorn` is a service of Flask with four threads, loaded by one client: its unit
is a request, its CPU time that of the service. The programs are those of bench_python, and torch and gunicorn are looked for in
build/venv. Nothing here passes or fails.

--steady: the default alone, once it records in slices of time (--cost-limit), which it does not in the first 10 s. Half of the runs
alone precede a recording and half follow it; there are three recordings. Printed are the means of the ratios, because the cost
differs between slices and pauses. Without WORK: those of the goal, which take 8 minutes.
"""
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import bench_python
import pairs

PAIRS = int(os.environ.get("PAIRS", "30"))
SECONDS = float(os.environ.get("SECONDS", "1"))
KINDS = ("loop", "contended", "convoy", "calls", "objects", "torch", "gunicorn")
STEADY_KINDS = ("loop", "contended", "calls", "torch", "gunicorn")
RECORDINGS = 3
COMPLETE = 11  # s: more than a recording measures without a limit
APPLICATION = '''
import hashlib
from flask import Flask
app = Flask(__name__)
@app.get("/")
def page():
    return hashlib.sha256(b"x" * 20000).hexdigest()
'''


class Gunicorn:
    """A service under load, as bench_python.Work is a program."""
    kind = "gunicorn"

    def __init__(self, folder):
        with open(os.path.join(folder, "bench_app.py"), "w") as f:
            f.write(APPLICATION)
        bind = "127.0.0.1:18473"
        self.p = subprocess.Popen([bench_python.PYTHON, "-m", "gunicorn", "--threads", "4", "-b", bind, "bench_app:app"], cwd=folder,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            try:
                self.request()
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise RuntimeError(f"{bench_python.PYTHON} can't run gunicorn and Flask")
        self.run()

    @staticmethod
    def request():
        with urllib.request.urlopen("http://127.0.0.1:18473/", timeout=10) as reply:
            reply.read()

    def cpu_ns(self):
        total = 0
        for pid in pairs.family(self.p.pid):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/schedstat") as f:
                    total += int(f.read().split()[0])
        return total

    def run(self):
        """(wall ns, CPU ns) of a request"""
        n, start, cpu = 0, time.monotonic_ns(), self.cpu_ns()
        while time.monotonic_ns() - start < SECONDS * 1e9:
            self.request()
            n += 1
        return (time.monotonic_ns() - start) / n, (self.cpu_ns() - cpu) / n

    def end(self):
        self.p.terminate()
        self.p.wait()


def pid_of(work):
    """The process that works: gunicorn's is a child."""
    return pairs.family(work.p.pid)[-1]


def tools(work, tmp):
    """name: command"""
    out = os.path.join(tmp, "out")
    found = {"sonde": [pairs.SONDE, "record", "-f", "-o", out], "sonde -t lean": [pairs.SONDE, "record", "-t", "lean", "-f", "-o", out]}
    if bench_python.tool("py-spy"):
        found["py-spy 49 Hz"] = [bench_python.tool("py-spy"), "record", "-r", "49", "-d", "1000", "-f", "raw", "-o", out, "-p", str(pid_of(work))]
    if bench_python.tool("perf"):
        found["perf -a -g 49 Hz"] = [bench_python.tool("perf"), "record", "-q", "-F", "49", "-a", "-g", "-o", out]
    return found


def start(command):
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True)
    if command[0] == pairs.SONDE:
        while (line := p.stderr.readline()) and "tracing into" not in line:
            pass
    # What a tool reads before it can begin (symbols, for instance) is its start, which bench_start measures
    time.sleep(0.5)
    return p


def under(work, command):
    p = start(command)
    alive = p.poll() is None
    found = work.run()
    pairs.end(p)
    return found if alive else None


def runs(work, n):
    return [work.run() for _ in range(n)]


def ratio(beside, alone):
    return [a / b for a, b in zip(beside, alone)]


def steady(kind, work, tmp):
    found, n = [], PAIRS // RECORDINGS
    for _ in range(RECORDINGS):
        alone = runs(work, n // 2)
        p = start(tools(work, tmp)["sonde"])
        runs(work, round(COMPLETE / SECONDS))
        beside = runs(work, n)
        pairs.end(p)
        alone += runs(work, n - n // 2)
        found += map(ratio, beside, alone)
    print(f"{kind}: {len(found)} pairs of {SECONDS:g} s\n  beside it             wall time of a unit           CPU time of a unit")
    bench_python.line("sonde, in slices", found, middle=statistics.mean)


def bench(kind, tmp, is_steady):
    try:
        work = Gunicorn(tmp) if kind == "gunicorn" else bench_python.Work(kind)
    except RuntimeError as e:
        print(f"{kind}: left out: {e}")
        return
    if is_steady:
        steady(kind, work, tmp)
        work.end()
        return
    commands = tools(work, tmp)
    names = ["nothing", *commands]
    found = {name: [] for name in commands}
    for _ in range(PAIRS):
        random.shuffle(names)
        now = {name: work.run() if name == "nothing" else under(work, commands[name]) for name in names}
        for name in found:
            if now[name]:
                found[name].append(ratio(now[name], now["nothing"]))
    work.end()
    print(f"{kind}: {PAIRS} rounds of {SECONDS:g} s\n  beside it             wall time of a unit           CPU time of a unit")
    for name, ratios in found.items():
        if ratios:
            bench_python.line(name, ratios)
        else:
            print(f"  {name:20}  did not run")


def main():
    if os.geteuid():
        print("tracing needs root")
        sys.exit(77)
    bench_python.SECONDS = SECONDS
    print(f"{bench_python.PYTHON}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, median of {PAIRS} rounds", flush=True)
    with tempfile.TemporaryDirectory() as tmp:
        is_steady = "--steady" in sys.argv
        for kind in [a for a in sys.argv[1:] if a != "--steady"] or (STEADY_KINDS if is_steady else KINDS):
            bench(kind, tmp, is_steady)


if __name__ == "__main__":
    main()
