#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A C function that holds the GIL for 500 ms is named as the holder, although ten threads wait with a switch interval of 0.5 ms, so that
their time-outs are less than 1 ms apart."""
import os
import subprocess
import sys

from sonde_cli import Sonde, tables
from tap import done, ok

PROGRAM = """
import ctypes, sys, threading, time
sys.setswitchinterval(0.0005)
libc = ctypes.PyDLL(None)
def hold():
    while True:
        libc.usleep(500000)
        time.sleep(0.05)
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
    p.wait()
    rows = tables("report", path, "gil")["blame"]
    held = sum(row["wait_ns"] for row in rows if "hold" in row["holder"].split())
    everything = sum(row["wait_ns"] for row in rows)
    ok(everything > 5e9 and held >= 0.9 * everything, "the function that holds the GIL is the holder in nine tenths of the waits' time", rows[:4])
    done()


main()
