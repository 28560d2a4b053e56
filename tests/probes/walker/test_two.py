#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | py-spy, memray: an extension that brings a second libpython |
"""
Processes with two CPythons: both run; one is a libpython that a program loaded and never initialized, before or while
sonde records. Samples and `sonde dump` must have the stack of each thread.
"""
import collections
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "sample"), os.path.join(HERE, "..", "gil")]
import gil_lib
from sample_lib import Stacks, python_of
from sonde_cli import Sonde, tables
from sonde_trace import Trace
from tap import done, ok, skip

WORK = """
import ctypes, os, sys
def first():
    while True:
        sum(range(10000))
if sys.argv[2] == "before":
    ctypes.CDLL(sys.argv[1])
print(os.getpid(), "first", flush=True)
if sys.argv[2] == "later":
    sys.stdin.readline()
    ctypes.CDLL(sys.argv[1])
    print("loaded", flush=True)
first()
"""


def check(name, command, lines, folder, later=False):
    """Each of the first lines that the command prints is the tid of a thread and the function that it runs."""
    work = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    out = os.path.join(folder, "trace.sonde")
    try:
        runs = {int(tid): function for tid, function in (work.stdout.readline().split() for _ in range(lines))}
        sonde = Sonde(out, "-t", "sample", "-F", "499", "-p", str(work.pid), "-d", "2")
        if later:
            print("go", file=work.stdin, flush=True)
            work.stdout.readline()
        status = sonde.end(None)
        frames = tables("dump", str(work.pid))["frames"]
    finally:
        work.kill()
        work.wait()
    ok(status == 0, f"recorded, {name}", sonde.messages)
    trace = Trace(out)
    stacks, found = Stacks(trace), collections.defaultdict(collections.Counter)
    for e in trace.events("sample_cpu"):
        names = {f.name for f in python_of(stacks.stack(e.get("stack", 0)))}
        found[e["tid"]][" ".join(sorted(names & {"first", "second"})) or "none"] += 1
    for tid, function in runs.items():
        # a thread's first walk may find that it is not one of the first CPython; a program loads before it runs
        allowed = 0.5 * found[tid].total() if later else 2
        ok(found[tid][function] > 100 and found[tid].total() - found[tid][function] - min(found[tid]["none"], allowed) == 0,
           f"samples of {function}, {name}", dict(found[tid]))
        ok([f["function"] for f in frames if f["tid"] == tid][:1] == [function], f"dump of {function}, {name}", frames)


def main():
    pythons = gil_lib.pythons()[0]
    libraries = [p.binary for p in pythons.values() if ".so" in p.binary and p.root == "/"]
    program = pythons["3.11 debian"].exe
    unused = sorted(glob.glob("/usr/lib/*/libpython3.11.so.1.0")) + libraries
    with tempfile.TemporaryDirectory(prefix="sonde-two-") as folder:
        if unused:
            for when in ("before", "later"):
                check(f"a libpython that is not used, loaded {when}", [program, "-c", WORK, unused[0], when], 1, folder, when == "later")
        else:
            skip("a libpython that is not used", "there is no libpython")
        if len(libraries) > 1:
            two = os.path.join(folder, "two")
            subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", os.path.join(HERE, "two.c"), "-o", two, "-ldl"], check=True)
            check("two that run", [two, libraries[-2], libraries[-1]], 2, folder)
        else:
            skip("two that run", "pyenv has fewer than two shared CPythons")
    done()


main()
