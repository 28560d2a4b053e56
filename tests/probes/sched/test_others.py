#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits
"""The CPU time of processes that are not recorded, also of one that begins and ends between two readings, against their own clocks."""
import os
import subprocess
import sys
import time

import bounds
from recording import workdir
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip_all

# Computes for the given CPU time; prints its CPU time at each line of its input, and at its end
BURNER = """import select, sys, time
limit = float(sys.argv[1])
while time.process_time() < limit:
    sum(range(10000))
    if select.select([sys.stdin], [], [], 0)[0]:
        if not sys.stdin.readline():
            break
        print(time.process_time(), flush=True)
print(time.process_time(), flush=True)
"""


def burner(limit):
    return subprocess.Popen([sys.executable, "-c", BURNER, str(limit)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ran(program):
    program.stdin.write("\n")
    program.stdin.flush()
    return float(program.stdout.readline())


def main():
    if os.geteuid():
        skip_all("tracing needs root")
    path = os.path.join(workdir(), "t.sonde")
    sleeper, long = subprocess.Popen(["sleep", "60"]), burner(60)
    try:
        time.sleep(0.5)
        sonde = Sonde(path, "-t", "sched", "-p", str(sleeper.pid))
        before = ran(long)
        time.sleep(1.2)
        short = burner(0.3)
        took = float(short.communicate()[0])
        time.sleep(2.5)
        after = ran(long)
        sonde.end()
    finally:
        for program in sleeper, long:
            program.kill()
            program.wait()
    events = list(Trace(path).events("sched_other"))
    sums = {pid: sum(e["ran"] for e in events if e["other_pid"] == pid) / 1e9 for pid in (long.pid, short.pid, sleeper.pid)}
    # the recording ends up to a second after the last reading, and began a little before the first clock was read
    bounds.between("the CPU time of a process, in s", sums[long.pid], (after - before) * 0.6, after - before + 0.3)
    bounds.between("and that of a short one, with its start", sums[short.pid], took * 0.9, took + 0.1)
    ok(not sums[sleeper.pid] and all(e["pid"] == 0 and e["ran"] >= 10000000 for e in events), "no record of the process that is recorded, nor of little time",
       events[:3])
    done()


main()
