#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=60
"""Samples in the kernel: a program that only makes system calls, and one that only has page faults, are distinguished."""
from recording import Recording
from sample_lib import WORK, Stacks, python_of
from tap import done, ok

rec = Recording(["/usr/bin/python3", WORK, "kernel", "4"], "sample", ["-F", "199"])
stacks, counts = Stacks(rec.trace), {}
for e in rec.of("sample_cpu"):
    names = [f.name for f in python_of(stacks.stack(e.get("stack", 0)))]
    for name in ("touch", "call"):
        if e.get("kernel") and name in names:
            n = counts.setdefault(name, [0, 0])
            n[bool(e.get("in_call"))] += 1
faults, calls = counts.get("touch", [0, 0]), counts.get("call", [0, 0])
ok(rec.status == 0 and sum(faults) > 20 and sum(calls) > 20, "both functions have samples in the kernel", counts)
# the memory is given back by munmap, which is a call
ok(faults[0] > faults[1], "most samples of memory that is used for the first time are in no system call", counts)
ok(calls[1] >= 0.95 * sum(calls), "samples of a function that calls the kernel are in a system call", counts)
ok(not any(e.get("in_call") for e in rec.of("sample_cpu") if not e.get("kernel")), "outside of the kernel there is no call")
done()
