#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file that the process which parses it can't cope with costs that file alone, and a line says which and why: one that
crashes it, one that keeps it busy for ever, one for which it answers what makes no sense (SONDE_TEST=examine-*)."""
import os
import subprocess
import sys
import tempfile

SONDE, ROOT = os.environ["SONDE"], os.environ["ROOT"]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from sonde_trace import Trace
from tap import done, ok, skip_all

CALLS = 200
BUDGET = 13  # enum loss_reason
LIBRARY = "int cudaMalloc(void **p, unsigned long n) { *p = (void *)n; return 0; }\n"
# maps a library and calls it as often as a line of its input says, and answers
CALLER = """
import ctypes, sys
for line in sys.stdin:
    word, path = line.split()
    f = ctypes.CDLL(path).cudaMalloc
    for i in range(int(word)):
        f(ctypes.byref(ctypes.c_void_p()), 16)
    print("done", flush=True)
"""


class Caller:
    def __init__(self):
        self.p = subprocess.Popen(["/usr/bin/python3", "-c", CALLER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(self, path, n):
        self.p.stdin.write(f"{n} {path}\n")
        self.p.stdin.flush()
        return self.p.stdout.readline()

    def end(self):
        self.p.communicate(timeout=60)


def record(tmp, name, switch):
    """Both libraries are mapped when the recording begins; what of each is in it, and what is said."""
    paths = {which: os.path.join(tmp, name, which, "libcudart.so.91") for which in ("bad", "good")}
    for path in paths.values():
        os.makedirs(os.path.dirname(path))
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path, "-Wl,-soname,libcudart.so.91"],
                       input=LIBRARY.encode(), check=True)
        os.chmod(path, 0o644)
    trace, said = os.path.join(tmp, name + ".sonde"), ""
    # a process each: the linker takes a library for another one of the same name
    callers = {which: Caller() for which in paths}
    for which, path in paths.items():
        callers[which].call(path, 0)
    sonde = subprocess.Popen([SONDE, "record", "-t", "cuda", "-o", trace], stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "SONDE_TEST": f"{switch}:{paths['bad']}"})
    for line in sonde.stderr:
        said += line
        if "tracing into" in line:
            break
    for which, path in paths.items():
        callers[which].call(path, CALLS)
    sonde.terminate()
    said += sonde.communicate(timeout=60)[1]
    for c in callers.values():
        c.end()
    return paths, {which: c.p.pid for which, c in callers.items()}, Trace(trace), said


def check(tmp, name, switch, why):
    paths, pids, trace, said = record(tmp, name, switch)
    calls = {which: sum(1 for e in trace.events("cuda_alloc") if e["pid"] == pid) for which, pid in pids.items()}
    lines = [line for line in said.splitlines() if paths["bad"] in line]
    ok(calls["good"] == CALLS, f"{name}: every call of another file's is there", calls, said)
    ok(calls["bad"] == 0, f"{name}: none of its own", calls)
    ok(len(lines) == 1 and why in lines[0] and "not traced" in lines[0], f"{name}: one line says which file and why", said)
    lost = [e for e in trace.events("meta_loss") if e["reason"] == BUDGET]
    ok(len(lost) == 1 and lost[0]["count"] == 1 and "can't be parsed" in said, f"{name}: it is counted as a loss", lost, said)


def main():
    if os.geteuid():
        skip_all("recording needs root")
    with tempfile.TemporaryDirectory(prefix="sonde-parsers-") as tmp:
        check(tmp, "crash", "examine-crash", "crashed")
        check(tmp, "lie", "examine-lie", "makes no sense")
        check(tmp, "loop", "examine-loop", "in time")
    done()


main()
