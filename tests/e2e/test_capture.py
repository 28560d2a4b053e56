#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240 waits gate
"""--capture-range: a process is recorded from the call that begins a range to the call that ends it, exact to the call."""
import os
import signal
import subprocess
import time

from puppet import RANGES, TMP, B, Puppet, allocs, numbered
from sonde_cli import Sonde, tables
from sonde_trace import Trace
from tap import done, ok, skip

API, REPEAT = "--capture-range=cudaProfilerApi", "--capture-range-end=repeat"
BEGINS, ENDS, UNSEEN = "RANGE_BEGINS", "RANGE_ENDS", "RANGE_UNSEEN"
# Events that state what a process did, beside the calls
DID = ["cuda_alloc", "sched_run", "sched_off", "sample_cpu", "sample_off", "syscall", "lock_wait", "gil_wait"]


class Case:
    """A recording of some processes, each with the fakes of libcudart and of the shim."""

    def __init__(self, name, *options, n=1, families="cuda,proc", puppets=None):
        self.name, self.path = name, os.path.join(TMP, name.replace(" ", "-"))
        self.puppets = puppets or [Puppet(ranges=RANGES) for _ in range(n)]
        self.sonde = Sonde(self.path, "-t", families, "-p", ",".join(str(p.pid) for p in self.puppets), *options,
                           until="waits for" if any("--capture" in o for o in options) else "tracing into")
        self.expected = []

    def inside(self, first, n=5, puppet=0):
        """Calls that the trace must have"""
        self.puppets[puppet].do(f"calls {first} {n}")
        self.expected += numbered(self.puppets[puppet].pid, first, n)

    def outside(self, first, n=3, puppet=0):
        self.puppets[puppet].do(f"calls {first} {n}")

    def do(self, line, puppet=0):
        self.puppets[puppet].do(line)

    def end(self, ends_itself=False):
        """Ends the recording. ends_itself: it has to do so before the processes end."""
        if ends_itself:
            self.sonde.process.wait(60)
        status = self.sonde.end(None if ends_itself else signal.SIGINT)
        for p in self.puppets:
            p.end()
        self.trace = Trace(self.path)
        ok(status == 0 and allocs(self.trace) == sorted(self.expected), f"{self.name}: exactly the calls within ranges are recorded",
           allocs(self.trace), self.expected, self.sonde.messages)
        reason = [e["reason_name"] for e in self.trace.events("meta_end")]
        ok(reason == ["END_RANGES" if ends_itself else "END_SIGNAL"], f"{self.name}: and the recording ends when it should", reason)

    def ranges(self, expected):
        """The ranges that the trace states: [(puppet, change, number)]"""
        found = sorted(self.trace.events("meta_range"), key=lambda e: e["time"])
        got = [([p.pid for p in self.puppets].index(e["pid"]), e["change_name"], e["number"]) for e in found]
        ok(got == expected, f"{self.name}: the trace states when ranges begin and end", got)


def by_call(c, first, puppet=0):
    c.outside(first, puppet=puppet)
    c.do("start", puppet)
    c.inside(first + 10, puppet=puppet)
    c.do("stop", puppet)
    c.outside(first + 20, puppet=puppet)


def first_range():
    c = Case("first", API)
    by_call(c, 100)
    c.do("start")
    c.outside(200)
    c.do("stop")
    c.end(ends_itself=True)
    ok("waits for cudaProfilerStart" in c.sonde.messages, "first: a message says what sonde waits for", c.sonde.messages)
    c.ranges([(0, BEGINS, 1), (0, ENDS, 1)])


def repeated():
    c = Case("repeat", API, REPEAT)
    for first in (100, 200, 300):
        by_call(c, first)
    c.do("start")
    c.do("start")
    c.inside(400)
    c.do("stop")
    c.outside(500)
    c.do("stop")
    c.end()
    c.ranges([(0, change, n) for n in (1, 2, 3, 4) for change in (BEGINS, ENDS)])
    c = Case("repeat 3", API, REPEAT + ":3")
    for first in (100, 200, 300):
        by_call(c, first)
    c.do("start")
    c.outside(400)
    c.end(ends_itself=True)
    c.ranges([(0, change, n) for n in (1, 2, 3) for change in (BEGINS, ENDS)])


def two_processes():
    c = Case("two processes", API, n=2)
    c.do("start", 0)
    c.inside(100, puppet=0)
    c.outside(150, puppet=1)
    c.do("start", 1)
    c.inside(200, puppet=0)
    c.inside(250, puppet=1)
    c.do("stop", 0)
    c.outside(300, puppet=0)
    # longer than the worker takes to see that the first process is done
    time.sleep(0.5)
    c.inside(350, puppet=1)
    c.do("stop", 1)
    c.outside(450, puppet=1)
    c.end(ends_itself=True)
    c.ranges([(0, BEGINS, 1), (1, BEGINS, 1), (0, ENDS, 1), (1, ENDS, 1)])


def threads_and_children():
    c = Case("threads", API, REPEAT)
    c.do("in_thread calls 100 2")
    c.do("in_thread start")
    c.do("in_thread calls 200 4")
    c.expected += numbered(c.puppets[0].pid, 200, 4)
    c.do("fork 300 3")
    c.inside(400)
    c.do("in_thread stop")
    c.do("in_thread calls 500 2")
    c.end()
    c.ranges([(0, BEGINS, 1), (0, ENDS, 1)])


def never():
    c = Case("never", "--capture-range=nvtx:no such range")
    c.outside(100)
    c.end()
    ok("no selected process began the range of --capture-range" in c.sonde.messages, "never: a range that did not begin is reported", c.sonde.messages)


def unmatched():
    """A range that began before the recording, and one that does not end."""
    puppet = Puppet(ranges=RANGES)
    puppet.do("start")
    c = Case("unmatched", API, REPEAT, puppets=[puppet])
    c.outside(100)
    c.do("stop")
    c.do("stop")
    c.outside(200)
    c.do("start")
    c.inside(300)
    ok(c.sonde.wait_trace(lambda trace: allocs(trace)), "unmatched: the trace has the calls of an open range")
    c.end()
    c.ranges([(0, UNSEEN, 0), (0, BEGINS, 1)])
    ok("began before the recording" in c.sonde.messages, "unmatched: a message says that the first range is missing", c.sonde.messages)


def death_inside():
    c = Case("death", API, n=2)
    c.do("start", 0)
    c.inside(100, puppet=0)
    c.puppets[0].process.kill()
    c.puppets[0].process.wait()
    c.end(ends_itself=True)
    c.ranges([(0, BEGINS, 1)])


def by_nvtx():
    c = Case("nvtx", "--capture-range=nvtx:step*@my?app", REPEAT)
    for begin, first in (("begin other my-app", 100), ("begin step my_app_2", 110), ("begin xstep my_app", 120), ("end step9 my_app 8", 130)):
        c.do(f"nvtx {begin}")
        c.outside(first)
    for first, number in ((200, 0), (300, 77)):
        c.do(f"nvtx begin step_{first} my-app {number}")
        c.inside(first)
        c.do(f"nvtx end other my-app {number}")
        c.inside(first + 10)
        c.do(f"nvtx end step_{first} my-app {number}")
        c.outside(first + 20)
    # nested in one thread, and overlapping in two
    for line, first in (("nvtx begin step my-app", 400), ("nvtx begin step1 my_app", 410), ("nvtx end step1 my_app", 420),
                        ("in_thread nvtx begin step my-app 5", 430), ("nvtx end step my-app", 440)):
        c.do(line)
        c.inside(first)
    c.do("nvtx end step my-app 5")
    c.outside(500)
    c.end()
    c.ranges([(0, UNSEEN, 0)] + [(0, change, n) for n in (1, 2, 3) for change in (BEGINS, ENDS)])


def default_domain():
    for name, pattern in (("default domain", "nvtx:train"), ("any domain", "nvtx:train@*")):
        c = Case(name, "--capture-range=" + pattern)
        c.do("nvtx begin train other")
        (c.outside if name == "default domain" else c.inside)(100)
        c.do("nvtx begin train")
        c.inside(200)
        c.do("nvtx end train")
        (c.outside if name == "default domain" else c.inside)(300)
        c.do("nvtx end train other")
        c.end(ends_itself=True)


def gpu_work():
    """Work of a simulated GPU, whose records come after the range; by the call of the driver that the runtime's double makes, too."""
    for version in ("12", "13"):
        program, path = os.path.join(B, f"tests/fakes/cuda/{version}/fake_training"), os.path.join(TMP, "gpu" + version)
        if not os.path.exists(program):
            skip(f"gpu {version}", "CUPTI's headers could not be downloaded")
            continue
        sonde = Sonde(path, "-t", "cuda,gpu", API, REPEAT, "--", program, "-n", "12", "-k", "30", "-P", "7", until="waits for", stdout=subprocess.DEVNULL)
        status = sonde.end(None)
        counts = Trace(path).counts()
        ok(status == 0 and [counts.get(k, 0) for k in ("cuda_launch", "gpu_kernel", "gpu_memcpy", "gpu_memset")] == [30, 30, 2, 1],
           f"gpu {version}: calls, kernels, copies and sets of the step in the range", counts, sonde.messages)
        found = tables("report", path, "cuda-kern")
        kernels = {k["short_name"]: k["instances"] for k in found["summary"]}
        ok(kernels == {"gemm": 8, "softmax": 8, "layer_norm": 7, "adam": 7} and found["coverage"][0]["joined"] == 33,
           f"gpu {version}: kernels have names and launches", kernels, found["coverage"])


def by_library():
    """A program with NVTX's own headers, through the shim that `record` puts into it."""
    program, path = os.path.join(B, "tests/probes/nvtx/nvtx_calls-12"), os.path.join(TMP, "library")
    if not os.path.exists(program):
        skip("library", "NVTX's headers could not be downloaded")
        return
    for pattern, ranges, inside in (("in dom*@the domain", 100, 300), ("outer", 100, 200)):
        sonde = Sonde(path, "-t", "nvtx", "--capture-range=nvtx:" + pattern, REPEAT, "--", program, "100", until="waits for",
                      stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        sonde.process.stdin.write("go\n")
        sonde.end(None)
        trace = Trace(path)
        got = len([1 for e in trace.events("meta_range") if e["since"]]), len(list(trace.events("nvtx_range")))
        ok(got == (ranges, inside), f"library, {pattern}: its ranges, and those within them", got, sonde.messages)


def steps():
    """--step nvtx:NAME: each end of a matching range is the end of a step. The first step began before the recording."""
    c = Case("steps", "--step", "nvtx:step*@app")
    for n in range(5):
        c.do(f"nvtx begin step{n} app")
        c.inside(100 * n, 2)
        c.do("nvtx end other app")
        c.do(f"nvtx end step{n} app")
    c.end()
    found = [(e["pid"], e["step"]) for e in c.trace.events("torch_step")]
    ok(sorted(found) == [(c.puppets[0].pid, n) for n in range(4)], "steps: ranges of NVTX are counted as steps", found)


def all_families():
    """The families that follow threads, and sampled stacks: nothing of theirs begins outside or ends after the range."""
    c = Case("all", API, REPEAT, "-F", "999", "--off-cpu=100000", n=2, families="cuda,proc,sched,syscall,lock,sample,gil")
    for first in (100, 200):
        by_call(c, first)
        c.do("start")
        c.do("spin 0.2")
        c.do("stop")
        c.do("spin 0.2")
    c.end()
    pid = c.puppets[0].pid
    ranges = [(e["since"], e["time"]) for e in c.trace.events("meta_range") if e["since"]]
    events = {kind: list(c.trace.events(kind)) for kind in DID}
    outside = [(k, e) for k, kind in events.items() for e in kind
               if e["pid"] != pid or not any(a <= e.get("start", e["time"]) <= e["time"] <= b for a, b in ranges)]
    ok(not outside, "all: no event of any family lies outside of the ranges", len(outside), outside[:3])
    ok(all(events[k] for k in ("sched_run", "syscall", "sample_cpu")), "all: and there are some inside", {k: len(v) for k, v in events.items()})
    pauses = [(e["start"], e["time"]) for e in c.trace.events("meta_pause")]
    wrong = [(p, r) for p in pauses for r in ranges if p[0] < r[1] and r[0] < p[1]]
    gaps = sum(b - a for a, b in pauses)
    ok(pauses and not wrong, "all: pauses are between the ranges", wrong, pauses)
    ok(gaps + sum(b - a for a, b in ranges) == c.trace.events("meta_end").__next__()["stop"] - min(a for a, _ in pauses),
       "all: and both together are the traced time")


CASES = (by_library, gpu_work, first_range, never, repeated, two_processes, threads_and_children, unmatched, death_inside, by_nvtx, default_domain, steps,
         all_families)


def main():
    for case in CASES:
        case()
    done()


main()
