#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_dump: the effect of `sonde dump` on a program's latency. Environment: RUNS (20).

The target is a Python program with 30 idle threads and one thread in C that only reads the clock and stores the largest gap between
two readings. It has a real-time priority, so that other work does not cause gaps. Its runs of 0.4 s alternate: alone, with three
`sonde dump` in a row, with three `py-spy dump` (if installed). Goal: the median of the largest gaps with sonde is at most the
95th percentile of those without. Nothing here passes or fails.
"""
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import pairs

RUNS = int(os.environ.get("RUNS", "20"))
SECONDS = 0.4
JITTER = r'''
#include <sched.h>
#include <time.h>
static long long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
int realtime(void) { struct sched_param p = { .sched_priority = 1 }; return sched_setscheduler(0, SCHED_FIFO, &p); }
int usual(void) { struct sched_param p = { 0 }; return sched_setscheduler(0, SCHED_OTHER, &p); }
long long jitter(long long ns)
{
	long long before = now(), end = before + ns, largest = 0, t;
	for (; before < end; before = t) {
		t = now();
		if (t - before > largest)
			largest = t - before;
	}
	return largest;
}
'''
WORK = r'''
import ctypes, sys, threading

lib = ctypes.CDLL(sys.argv[1])
lib.jitter.restype = ctypes.c_longlong
lib.jitter.argtypes = [ctypes.c_longlong]
def idle(n):
    return idle(n - 1) if n else threading.Event().wait()
for i in range(30):
    threading.Thread(target=idle, args=(i,), daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    # ctypes calls it without the GIL
    kind = "usual" if lib.realtime() else "realtime"
    gap = lib.jitter(int(line))
    lib.usual()
    print(gap, kind, flush=True)
'''


def py_spy():
    for path in (shutil.which("py-spy"), os.path.join(pairs.B, "peers/bin/py-spy"), os.path.join(pairs.B, "py-spy/bin/py-spy")):
        if path and os.access(path, os.X_OK):
            return path
    return None


def one(target, command):
    target.stdin.write(f"{int(SECONDS * 1e9)}\n")
    target.stdin.flush()
    for _ in range(3 if command else 0):
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    gap, kind = target.stdout.readline().split()
    return int(gap) / 1e3, kind


def main():
    if os.geteuid():
        print("looking into any process wants root")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as tmp:
        source, lib = os.path.join(tmp, "jitter.c"), os.path.join(tmp, "jitter.so")
        with open(source, "w", encoding="utf-8") as f:
            f.write(JITTER)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", lib, source], check=True)
        target = subprocess.Popen([sys.executable, "-c", WORK, lib], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  universal_newlines=True)
        target.stdout.readline()
        tools = {"nothing": None, "sonde dump": [pairs.SONDE, "dump", str(target.pid)]}
        if py_spy():
            tools["py-spy dump"] = [py_spy(), "dump", "-p", str(target.pid)]
        gaps, names, kinds = {n: [] for n in tools}, list(tools), set()
        for _ in range(RUNS):
            random.shuffle(names)
            for name in names:
                gap, kind = one(target, tools[name])
                gaps[name].append(gap)
                kinds.add(kind)
                time.sleep(0.05)
        target.kill()
        target.wait()
    print(f"{RUNS} runs of {SECONDS} s each, in turns; priority: {', '.join(sorted(kinds))}; load {os.getloadavg()[0]:.1f}")
    print("largest gap of a run, us     median   95th percentile   largest")
    for name, values in gaps.items():
        print(f"  {name:22} {statistics.median(values):12.0f} {sorted(values)[int(0.95 * (len(values) - 1) + 0.5)]:17.0f} {max(values):9.0f}")
    limit = sorted(gaps["nothing"])[int(0.95 * (RUNS - 1) + 0.5)]
    median = statistics.median(gaps["sonde dump"])
    print(f"sonde's median {median:.0f} us, 95th percentile without {limit:.0f} us: {'met' if median <= limit else 'missed'}")


if __name__ == "__main__":
    main()
