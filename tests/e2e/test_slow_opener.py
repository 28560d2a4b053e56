#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The opener, which opens files for sonde, answers late while processes start and map libraries, which causes more requests. Each
answer must be matched with its request, so that each library gets the probes of its own functions. A process that
ended before the answer must be counted as a missed mapping, with its own pid.
"""
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip

LIBRARY = os.path.join(B, "tests", "fakes", "libcudart.so")
CALLS, COPIES = 200, 8
CALLER = f"""import ctypes, sys
library, p = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
print(library, flush=True)
sys.stdin.readline()
for _ in range({CALLS}):
    library.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(100))"""


def parents():
    """{pid: (parent, name)}"""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
            found[int(pid)] = int(rest.split()[1]), name
        except OSError:
            pass
    return found


def openers(sonde):
    tree = parents()
    for pid, (parent, name) in tree.items():
        while parent in tree and parent != sonde:
            parent = tree[parent][0]
        if parent == sonde and name == "sonde-opener":
            yield pid


class Late:
    """Stops the opener for 0.12 s of each 0.13 s."""

    def __init__(self, sonde):
        self.sonde, self.stops, self.end = sonde, 0, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.end.is_set():
            for pid in list(openers(self.sonde)):
                try:
                    os.kill(pid, signal.SIGSTOP)
                    self.stops += 1
                    self.end.wait(0.12)
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)

    def close(self):
        self.end.set()
        self.thread.join()


def begin(folder):
    """Starts processes that map a copy of the library each, and unrelated processes in between."""
    callers, unrelated = {}, {}
    for i in range(COPIES):
        path = os.path.join(folder, f"libcudart.so.{100 + i}")
        shutil.copy(LIBRARY, path)
        p = subprocess.Popen([sys.executable, "-c", CALLER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        callers[p.pid] = p, path
        for j in range(3):
            q = subprocess.Popen(["/bin/sleep", f"2.{i}{j}"])
            unrelated[q.pid] = q
    return callers, unrelated


def missed():
    """A program that has ended, and whose file is gone, before sonde could read it."""
    program, path = os.path.join(TMP, "unknown"), os.path.join(TMP, "missed.sonde")
    shutil.copy("/bin/true", program)
    sonde = Sonde(path, "-t", "cuda,proc")
    opener = next(openers(sonde.pid))
    os.kill(opener, signal.SIGSTOP)
    p = subprocess.Popen([program])
    p.wait()
    os.unlink(program)
    os.kill(opener, signal.SIGCONT)
    sonde.wait_trace(lambda trace: any(e["reason_name"] == "LOSS_MMAP" for e in trace.events("meta_loss")))
    sonde.end()
    output = sonde.messages
    found = [e for e in Trace(path).events("meta_loss") if e["reason_name"] == "LOSS_MMAP"]
    if "does not answer" in output:
        skip("a missed mapping", "the machine was too slow: sonde gave up waiting for the answer")
        return
    ok(any(e["pid"] == p.pid for e in found) and all(e["pid"] for e in found) and "mappings missed" in output,
       "a missed mapping has the pid of its process", p.pid, found, output)


def main():
    path = os.path.join(TMP, "late.sonde")
    sonde = Sonde(path, "-t", "cuda,proc")
    late = Late(sonde.pid)
    callers, unrelated = begin(TMP)
    for p, _ in callers.values():
        p.stdout.readline()
    sonde.wait_probed(os.path.join(TMP, "libcudart.so."), len(callers))
    late.close()
    for p, _ in callers.values():
        p.communicate("\n")
    for q in unrelated.values():
        q.wait()
    status, output = sonde.end(), sonde.messages
    trace = Trace(path)
    counts = {pid: sum(e["pid"] == pid for e in trace.events("cuda_alloc")) for pid in callers}
    # each stop is 0.12 s; how many there are depends on how fast the machine starts the programs
    ok(late.stops > 2, "the answers were late", late.stops)
    ok(all(n == CALLS for n in counts.values()), f"each of {CALLS} calls in {COPIES} libraries is recorded", counts, output)
    strings = {e["string"]: e["text"] for e in trace.events("meta_string")}
    probed = sorted(strings[o["path"]] for o in trace.events("meta_object") if o["sites"])
    ok({p for _, p in callers.values()} <= set(probed), "each library is probed under its own name", probed, output)
    lines = [line for line in output.splitlines() if "does not answer" in line or "not traced" in line and TMP in line]
    ok(status in (0, 3) and not lines, "no process and no file is left out", status, output)
    missed()
    done()


main()
