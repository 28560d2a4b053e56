#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Samples in the kernel: a program that only makes system calls, and one that only has page faults, are distinguished."""
from bounds import share
from recording import Recording
from sample_lib import WORK, Stacks, python_of
from tap import done, ok

rec = Recording(["/usr/bin/python3", WORK, "kernel", "4"], "sample", ["-F", "499"], limit=60)
stacks, counts = Stacks(rec.trace), {"touch": [0, 0], "call": [0, 0]}
for e in rec.of("sample_cpu"):
    names = [f.name for f in python_of(stacks.stack(e.get("stack", 0)))]
    for name in counts:
        if e.get("kernel") and name in names:
            counts[name][bool(e.get("in_call"))] += 1
faults, calls = counts["touch"], counts["call"]
ok(rec.status == 0 and sum(faults) and sum(calls), "both functions have samples in the kernel", counts, rec.messages)
ok(not faults[1], "samples of memory that is used for the first time are in no system call", counts)
share("samples of a function that calls the kernel are in a system call", calls[1] / max(1, sum(calls)), 1, sum(calls), counts,
      systematic=0.05, why="the kernel also handles interrupts that arrive in the function's own code")
ok(not any(e.get("in_call") for e in rec.of("sample_cpu") if not e.get("kernel")), "outside of the kernel there is no call")
done()
