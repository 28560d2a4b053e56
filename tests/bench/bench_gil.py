#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_gil [PAIRS [WORK..]]: what tracing the GIL costs a program: one with CPU-bound contention, one with a convoy, and one without
contention.

Runs of a workload alternate with and without sonde attached. It prints the median ratio of the work done (without / with: 1.01
is a loss of 1%), its 95% bootstrap interval, and the cost of the probes themselves: the number of hits times the cost of a hit on
this machine, as a share of the wall time. If the interval is wider than the effect, use that share instead.
SONDE_TEST=no-gil-slices measures a convoy throughout instead of in slices. SONDE_TEST=attached-gil-slices leaves the probes attached between
slices, where their programs do nothing.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

import pairs

PYTHON = os.environ.get("GIL_PYTHON", "/usr/bin/python3.11")
PAIRS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
SECONDS = 1.0

WORK = r'''
import os, sys, threading, time

kind, n = sys.argv[1], 1 if sys.argv[1] == "uncontended" else 3
done = [0] * n
stop = False
fd = os.open("/dev/zero", os.O_RDONLY)

def spin(i):
    while not stop:
        for _ in range(2000):
            pass
        done[i] += 1

def convoy(i):
    while not stop:
        os.read(fd, 1)
        for _ in range(200):
            pass
        done[i] += 1

f = convoy if kind == "convoy" else spin
for t in [threading.Thread(target=f, args=(i,), daemon=True) for i in range(n)]:
    t.start()
print("ready", flush=True)
# for each line of input, prints the work done since the last one
before = 0
for line in sys.stdin:
    now = sum(done)
    print(now - before, time.monotonic_ns(), flush=True)
    before = now
'''


class Work:
    def __init__(self, kind):
        self.p = subprocess.Popen([PYTHON, "-S", "-c", WORK, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  universal_newlines=True)
        self.p.stdout.readline()

    def read(self):
        self.p.stdin.write("\n")
        self.p.stdin.flush()
        done, at = self.p.stdout.readline().split()
        return int(done), int(at)

    def speed(self, seconds):
        """The work done per second"""
        before = self.read()[1]
        time.sleep(seconds)
        done, after = self.read()
        return done / (after - before) * 1e9

    def end(self):
        self.p.kill()
        self.p.wait()


def bench(kind, options, slow_start=0.0):
    work, ratios, hits, shares = Work(kind), [], [], []
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "bench.sonde")
        for i in range(PAIRS):
            alone = work.speed(SECONDS) if i % 2 else None
            sonde = pairs.attach(work.p.pid, ["-t", "gil", *options], out)
            # sonde has detected a convoy and measures in slices
            time.sleep(slow_start)
            traced = work.speed(SECONDS + (1 if slow_start else 0))
            pairs.end(sonde)
            alone = alone or work.speed(SECONDS)
            ratios.append(alone / traced)
            h, share = pairs.costs(out)
            hits.append(h)
            shares.append(share)
    work.end()
    low, high = pairs.interval(ratios)
    print("%-12s %-11s %7.3f   [%.3f, %.3f]   %10.0f   %8.3f %%" %
          (kind, " ".join(options) or "-", statistics.median(ratios), low, high, statistics.median(hits),
           100 * statistics.median(shares)), flush=True)


print("%d alternated pairs of %.1f s, %s, %d CPUs" % (PAIRS, SECONDS, os.path.basename(PYTHON), os.cpu_count()))
print("work         option        ratio   95% interval       hits a run   probes' share of wall")
kinds = sys.argv[2:] or ["contended", "convoy", "uncontended"]
for options in ([], ["--gil=full"]):
    for kind in kinds:
        bench(kind, options, 0.3 if kind == "convoy" else 0)
