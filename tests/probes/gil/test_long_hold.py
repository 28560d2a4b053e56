#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A C function that holds the GIL for 500 ms is named as the holder, although ten threads wait with a switch interval of 0.5 ms, so that
their time-outs are less than 1 ms apart."""
import os
import subprocess
import sys

from sonde_cli import Sonde, tables
from sonde_trace import Trace
from tap import done, ok

PROGRAM = """
import ctypes, sys, threading, time
from time import monotonic_ns as now
sys.setswitchinterval(0.0005)
libc = ctypes.PyDLL(None)
def hold():
    while True:
        start = now()
        libc.usleep(500000)
        end = now()
        time.sleep(0.05)
        print(start, end, flush=True)
def wait():
    while True:
        time.sleep(0.001)
for i in range(10):
    threading.Thread(target=wait, daemon=True).start()
print("ready", flush=True)
hold()
"""


def main():
    path = os.path.join(os.environ["TMPDIR"], "hold.sonde")
    p = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    Sonde(path, "-t", "gil", "-d", "4", "-p", str(p.pid)).process.wait()
    p.kill()
    held_from_to = [tuple(map(int, line.split())) for line in p.communicate()[0].splitlines()[1:]]
    trace = Trace(path)
    waits = [(e["start"], e["time"]) for e in trace.events("gil_wait")]
    # the function is known from its second hold on
    first = min(start for start, _ in waits)
    true = sum(max(0, min(b, end) - max(a, start)) for a, b in [h for h in held_from_to if h[0] > first][1:] for start, end in waits)
    rows = tables("report", path, "gil")["blame"]
    held = sum(row["wait_ns"] for row in rows if "hold" in row["holder"].split())
    everything = sum(row["wait_ns"] for row in rows)
    ok(0 < true <= held <= everything, "the function that holds the GIL is the holder for as long as others waited while it did", true, held, everything,
       rows[:4])
    done()


main()
