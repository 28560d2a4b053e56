#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: partly | uWSGI's second application: thread states that another thread made | 3.8, 3.9 have nothing that tells
"""
Threads that run Python code with thread states that another thread made, as uWSGI's do: samples, off-CPU intervals and
`sonde dump` must give each thread the stack that it says it runs. The main thread, which made the states, sleeps in a
function of its own.
"""
import collections
import os
import shutil
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
import ctypes, sys, time
def starter():
    get = ctypes.pythonapi.PyInterpreterState_Get
    get.restype = ctypes.c_void_p
    start = ctypes.PyDLL(sys.argv[1]).foreign_start
    start.argtypes = [ctypes.c_void_p]
    start(get())
    while True:
        time.sleep(0.02)
starter()
"""


def record(python, library, out):
    """({tid: the function that it runs}, the trace, the stacks of the dump by tid)"""
    root = [] if python.root == "/" else ["/usr/sbin/chroot", python.root]
    inside = library if python.root == "/" else library[len(python.root):]
    work = subprocess.Popen(root + [python.exe, "-S", "-c", WORK, inside], stdout=subprocess.PIPE, text=True, cwd="/",
                            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
    try:
        runs = {int(tid): name for tid, name in (work.stdout.readline().split() for _ in range(2))}
        runs[work.pid] = "starter"
        sonde = Sonde(out, "-t", "sample,sched", "-F", "499", "--off-cpu", "-p", str(work.pid), "-d", "2")
        status = sonde.end(None)
        dumps = collections.defaultdict(list)
        # a thread may run too fast to be read
        for _ in range(5):
            for f in tables("dump", str(work.pid))["frames"]:
                dumps[f["tid"]].append(f["function"])
    finally:
        work.kill()
        work.wait()
    ok(status == 0, f"recorded, {python.name}", sonde.messages)
    return runs, Trace(out), dumps


def check(python, folder):
    if python.name.startswith(("3.8", "3.9")):
        skip(f"foreign thread states, {python.name}", "nothing in its thread states tells which thread runs them")
        return
    place = tempfile.mkdtemp(prefix="sonde-foreign-", dir=os.path.join(python.root, "tmp"))
    try:
        os.chmod(place, 0o755)
        runs, trace, dumps = record(python, shutil.copy(os.path.join(folder, "foreign.so"), place), os.path.join(folder, "trace.sonde"))
    finally:
        shutil.rmtree(place)
    stacks = Stacks(trace)
    for kind in ("sample_cpu", "sample_off"):
        found = collections.defaultdict(collections.Counter)
        for e in trace.events(kind):
            names = {f.name for f in python_of(stacks.stack(e.get("stack", 0)))}
            found[e["tid"]][" ".join(sorted(names & {"first", "second", "starter"})) or "none"] += 1
        for tid, name in runs.items():
            counts = found[tid]
            right = counts[name]
            wrong = sum(counts.values()) - right - counts["none"]
            # the first one of each thread may be the one that shows whose stack it is
            ok(not wrong and counts["none"] <= 4 + right // 50 and (right or (kind, name) == ("sample_cpu", "starter")),
               f"{kind} of the thread that runs {name}, {python.name}", dict(counts))
    for tid, name in runs.items():
        others = {"first", "second", "starter"} - {name}
        ok(name in dumps[tid] and not others & set(dumps[tid]),
           f"dump of the thread that runs {name}, {python.name}", dumps[tid][:8])


def main():
    with tempfile.TemporaryDirectory(prefix="sonde-foreign-") as folder:
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", os.path.join(HERE, "built", "foreign.c"),
                        "-o", os.path.join(folder, "foreign.so")], check=True)
        gil_lib.each_python("foreign thread states", lambda python: check(python, folder))
    done()


main()
