#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300 waits
"""CUDA calls have the Python stack and the GIL state that the program prints, under every CPython."""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", family) for family in ("cuda", "gil", "sample")]
import tap
from common import Recording, directory
from drv_lib import BUILD, DRIVER, RUNTIME
from gil_lib import each_python, pythons
from sample_lib import Stacks, python_of

UNKNOWN, HELD, NOT_HELD = 0, 1, 2  # enum gil_held
WITH_STACK = ("launch", "copy", "set", "alloc", "free", "sync", "graph_launch")


class Workload:
    def __init__(self, python):
        self.dir = directory() if python.root == "/" else subprocess.run(
            ["mktemp", "-d", "-p", python.root + "/tmp"], capture_output=True, text=True, check=True).stdout.strip()
        os.chmod(self.dir, 0o755)
        inside = self.dir[len(python.root.rstrip("/")):]
        shutil.copy(os.path.join(HERE, "drv_python.py"), self.dir)
        for name in ("libcudart", "libcuda"):
            shutil.copy(os.path.join(BUILD, "tests", "fakes", name + ".so"), os.path.join(self.dir, name + ".so.99"))
        command = [python.exe, "-S", *(os.path.join(inside, f) for f in
                                       ("drv_python.py", "libcudart.so.99", "libcuda.so.99"))]
        if python.root != "/":
            command = ["/usr/sbin/chroot", python.root] + command
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True)
        self.pid = self.child.pid
        self.ready = self.child.stdout.readline().strip() == "ready"

    def why(self):
        return self.child.communicate()[1].strip().splitlines()[-1:]

    def go(self):
        """[(tid, function, gil, [frame:line])]"""
        self.child.stdin.write("go\n")
        self.child.stdin.flush()
        truth = []
        for line in self.child.stdout:
            if line == "end\n":
                break
            tid, function, held, *frames = line.split()
            gil = {"0": NOT_HELD, "1": HELD, "-": UNKNOWN}[held]
            truth.append((int(tid), function, gil, frames))
        return truth

    def end(self):
        self.child.communicate("\n")
        shutil.rmtree(self.dir)


def record(name, w, families, *options):
    with Recording(os.path.join(w.dir, "trace"), "-p", str(w.pid), *options, families=families) as r:
        truth = w.go()
    w.end()
    losses = [e for e in r.trace.events("meta_loss") if e["reason"] != 8]  # other processes' libraries
    tap.ok(r.status == 0 and truth and not losses, name + ": nothing lost", (r.status, r.text, losses))
    calls = [c for t in r.calls([w.pid], [RUNTIME, DRIVER]).values() for c in t
             if c["event"].split("_", 1)[1] in WITH_STACK]
    return r, truth, sorted(calls, key=lambda c: c["start"])


def check(python):
    w = Workload(python)
    if not w.ready:
        tap.skip(python.name, "it can't run the program: %s" % w.why())
        return
    r, truth, calls = record(python.name, w, "cuda,cudadrv", "--cuda=stacks")
    tap.ok([c["function"] for c in calls] == [t[1] for t in truth] and len(calls) == 57,
           "%s: the %d calls" % (python.name, len(truth)), ([c["function"] for c in calls], [t[1] for t in truth]))
    stacks, wrong, gils = Stacks(r.trace), [], []
    for c, (tid, function, gil, frames) in zip(calls, truth):
        seen = ["%s:%d" % (f.name.replace(" ", ""), f.line) for f in python_of(stacks.stack(c["stack"]))]
        if seen != frames or tid not in (0, c["tid"]):
            wrong.append((function, seen, frames))
        if c["gil"] != gil:
            gils.append((function, c["gil"], gil))
    tap.ok(not wrong, "%s: their Python stacks, frame by frame with lines" % python.name,
           "\n".join(map(str, wrong[:5])))
    tap.ok(not gils, "%s: holder of the GIL: CDLL releases it, PyDLL keeps it" % python.name, gils)


def check_switches(python):
    """There are no stacks without an option, and family cudadrv has an option of its own."""
    r, truth, calls = record("without", Workload(python), "cuda,cudadrv")
    tap.ok(len(calls) == len(truth) and not [c for c in calls if c["stack"] or c["gil"]] and
           not list(r.trace.events("meta_frame")), "without --cuda=stacks: no stacks, no GIL")
    r, truth, calls = record("--cudadrv=stacks", Workload(python), "cuda,cudadrv", "--cudadrv=stacks")
    driver = [c for c in calls if c["event"].startswith("cudadrv_")]
    tap.ok(len(calls) == len(truth) and len(driver) == 28 and all(c["stack"] and c["gil"] for c in driver) and
           not [c for c in calls if c["stack"] and c not in driver], "--cudadrv=stacks: only the driver's calls have stacks")


def main():
    each_python("stacks at CUDA's calls", check)
    if os.path.exists("/usr/bin/python3.11"):
        check_switches(pythons()[0]["3.11 debian"])
    tap.done()


main()
