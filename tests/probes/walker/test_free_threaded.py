#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits
# case: partly | py-spy, austin: free-threaded builds | 3.15t was not there to try
"""
Free-threaded CPythons 3.13 and 3.14, where installed: samples and `sonde dump` have the functions and lines that threads run at
the same time, the same function in two threads too. No Debian package has one; FREE_THREADED names the programs, with a colon.
"""
import collections
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "sample"), os.path.join(HERE, "..", "gil")]
from sample_lib import Stacks, python_of
from sonde_cli import Sonde, tables
from sonde_trace import Trace
from tap import done, ok, skip_all

WORK = """
import threading
def first():
    x = 0
    while True:
        x = (x * 31 + 7) % 1000003
def second():
    x = 0
    while True:
        x = (x * 31 + 7) % 1000003
def run(function):
    print(threading.get_native_id(), function.__name__, flush=True)
    function()
for _ in range(2):
    threading.Thread(target=run, args=[first], daemon=True).start()
run(second)
"""
LINES = {"first": {5, 6}, "second": {9, 10}}
THREADS = 3


def programs():
    found = [*os.environ.get("FREE_THREADED", "").split(":"), *glob.glob("/usr/bin/python3.*t"),
             *glob.glob(os.path.expanduser("~/.pyenv/versions/3.*t/bin/python3.*t"))]
    return [p for p in found if os.path.exists(p)]


def check(exe):
    with tempfile.TemporaryDirectory(prefix="sonde-free-") as folder:
        work = subprocess.Popen([exe, "-S", "-c", WORK], stdout=subprocess.PIPE, text=True)
        out = os.path.join(folder, "trace.sonde")
        try:
            runs = {int(tid): name for tid, name in (work.stdout.readline().split() for _ in range(THREADS))}
            sonde = Sonde(out, "-t", "sample", "-F", "499", "-p", str(work.pid), "-d", "2")
            status = sonde.end(None)
            frames = tables("dump", str(work.pid))["frames"]
        finally:
            work.kill()
            work.wait()
        ok(status == 0, f"{os.path.basename(exe)}: recorded", sonde.messages)
        trace = Trace(out)
        stacks, found = Stacks(trace), collections.defaultdict(collections.Counter)
        for e in trace.events("sample_cpu"):
            at = python_of(stacks.stack(e.get("stack", 0)))[-1:]
            found[e["tid"]][(at[0].name, at[0].line) if at else "none"] += 1
        for tid, name in runs.items():
            right = sum(n for at, n in found[tid].items() if at[0] == name and at[1] in LINES[name])
            ok(right > 100 and right >= 0.99 * found[tid].total(), f"samples of {name} and their lines", dict(found[tid]))
            tops = [(f["function"], f["line"]) for f in frames if f["tid"] == tid][:1]
            ok(tops and tops[0][0] == name and tops[0][1] in LINES[name], f"dump of {name}", frames)


def main():
    exes = programs()
    if not exes:
        skip_all("no free-threaded CPython is installed")
    for exe in exes:
        check(exe)
    done()


main()
