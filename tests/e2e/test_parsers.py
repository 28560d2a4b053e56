#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file that makes its parser process crash, loop or return an invalid answer (SONDE_TEST=examine-*) is left out with a message, and
other files are not affected."""
import os
import signal
import subprocess
import tempfile

SONDE, ROOT = os.environ["SONDE"], os.environ["ROOT"]
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip_all

CALLS = 200
BUDGET = 13  # enum loss_reason
LIBRARY = "int cudaMalloc(void **p, unsigned long n) { *p = (void *)n; return 0; }\n"
# maps a library, and for each line of input makes that many calls and prints a line
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
    """Records two processes that have mapped a library each. Returns the recorded calls of each and the messages."""
    paths = {which: os.path.join(tmp, name, which, "libcudart.so.91") for which in ("bad", "good")}
    for path in paths.values():
        os.makedirs(os.path.dirname(path))
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path, "-Wl,-soname,libcudart.so.91"],
                       input=LIBRARY.encode(), check=True)
        os.chmod(path, 0o644)
    trace = os.path.join(tmp, name + ".sonde")
    # two processes: the dynamic linker would take the second library for the first, as their names are equal
    callers = {which: Caller() for which in paths}
    for which, path in paths.items():
        callers[which].call(path, 0)
    sonde = Sonde(trace, "-t", "cuda", mode=f"{switch}:{paths['bad']}")
    for which, path in paths.items():
        callers[which].call(path, CALLS)
    sonde.end(signal.SIGTERM)
    for c in callers.values():
        c.end()
    return paths, {which: c.p.pid for which, c in callers.items()}, Trace(trace), sonde.messages


def check(tmp, name, switch, why):
    paths, pids, trace, said = record(tmp, name, switch)
    calls = {which: sum(1 for e in trace.events("cuda_alloc") if e["pid"] == pid) for which, pid in pids.items()}
    lines = [line for line in said.splitlines() if paths["bad"] in line]
    ok(calls["good"] == CALLS, f"{name}: every call of the other library is recorded", calls, said)
    ok(calls["bad"] == 0, f"{name}: no call of the faulty library is recorded", calls)
    ok(len(lines) == 1 and why in lines[0] and "not traced" in lines[0], f"{name}: one message has the file and the reason", said)
    lost = [e for e in trace.events("meta_loss") if e["reason"] == BUDGET]
    ok(len(lost) == 1 and lost[0]["count"] == 1 and "can't be parsed" in said, f"{name}: it is counted as a loss", lost, said)


def main():
    if os.geteuid():
        skip_all("recording needs root")
    with tempfile.TemporaryDirectory(prefix="sonde-parsers-") as tmp:
        check(tmp, "crash", "examine-crash", "crashed")
        check(tmp, "lie", "examine-lie", "an invalid answer")
        check(tmp, "loop", "examine-loop", "in time")
    done()


main()
