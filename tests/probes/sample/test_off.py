#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test:
"""Off-CPU time by Python function and reason, compared with the program's own clock."""
import collections
import json

from recording import EVENT_OPEN, Recording
from sample_lib import WORK, Stacks, python_of
from tap import done, ok

GIL, LOCK, SLEEP, IO, CHILD = 2, 3, 4, 8, 9
PYTHON3 = "/usr/bin/python3"


def sleeps():
    rec = Recording([PYTHON3, WORK, "sleep", "5"], "sample", ["--off-cpu"])
    truth = json.loads(rec.output[-1])["functions"]
    stacks, seen, reasons, bare = Stacks(rec.trace), collections.Counter(), collections.defaultdict(collections.Counter), 0
    for e in rec.of("sample_off"):
        stack = python_of(stacks.stack(e.get("stack", 0)))
        bare += not e.get("stack", 0) and not e["flags"]
        kind = next((f.name for f in stack if f.name in truth), None)
        if kind:
            seen[kind] += e["time"] - e["start"]
            reasons[kind][e.get("reason", 0)] += e["time"] - e["start"]
    expected = {"nap": SLEEP, "wait_for_lock": LOCK, "wait_for_pipe": IO, "wait_for_child": CHILD}
    for k, reason in expected.items():
        # creating the child process takes time too
        low = 0.9 if k == "wait_for_child" else 0.99
        ok(low * truth[k] < seen[k] < 1.01 * truth[k], f"{k}: {truth[k] / 1e9:.3f} s, within {100 - 100 * low:.0f}%",
           f"{seen[k] / 1e9:.4f} s")
        ok(reasons[k][reason] > 0.9 * seen[k], f"{k}: the reason is right", reasons[k])
    ok(not bare, "each of the program's off-CPU intervals has a stack", bare)


def gil():
    rec = Recording([PYTHON3, WORK, "gil", "3"], "sample", ["--off-cpu", "-F", "199"])
    stacks, by_reason, in_spin = Stacks(rec.trace), collections.Counter(), 0
    for e in rec.of("sample_off"):
        by_reason[e.get("reason", 0)] += e["time"] - e["start"]
        if e.get("reason", 0) == GIL:
            in_spin += any(f.name == "spin" for f in python_of(stacks.stack(e.get("stack", 0))))
    waits = sum(e.get("reason", 0) == GIL for e in rec.of("sample_off"))
    ok(waits > 50 and in_spin > 0.95 * waits, "two threads that compute wait for the GIL, in their own lines",
       f"{waits} {in_spin} {by_reason}")
    held = [e.get("gil", 0) == 1 for e in rec.of("sample_cpu")]
    ok(sum(held) > 0.8 * len(held), "threads on a CPU mostly hold the GIL", f"{sum(held)} of {len(held)}")


def hang():
    rec = Recording([PYTHON3, WORK, "hang", "4"], "sample", ["--off-cpu"], stop_after=1.5)
    stacks = Stacks(rec.trace)
    last = [e for e in rec.of("sample_off") if e["flags"] & EVENT_OPEN]
    names = [f.name for f in stacks.stack(last[0].get("stack", 0))] if last else []
    # libc's functions are further inward
    ok(len(last) == 1 and names[:3] == ["<module>", "main", "hang"] and last[0].get("reason", 0) == SLEEP,
       "an interval that outlasts the trace has a stack", f"{last} {names}")


sleeps()
gil()
hang()
done()
