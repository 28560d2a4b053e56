#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Off-CPU intervals of 1 to 5 ms: all are recorded, some get a stack, and the others have that of a similar interval."""
import json
import math

from bounds import Z
from recording import Recording
from sample_lib import WORK, Stacks, off_cpu, python_of
from tap import done, ok

STACK_NS = 5_000_000 # SAMPLE_STACK_NS
FIRST_STACKS = 16 # bpf/probes/sample/sample.bpf.c
ROUNDS = 300
PYTHON3 = "/usr/bin/python3"
REASON = {"nap": 4, "wait_for_lock": 3}


def record(*options):
    rec = Recording([PYTHON3, WORK, "short", str(ROUNDS)], "sample", ["--off-cpu", *options])
    events = [e for e in rec.of("sample_off") if e["tid"] == rec.pid and not e["flags"]]
    return rec, json.loads(rec.output[-1])["waits"], events, Stacks(rec.trace)


def check_all(rec, waits, events, stacks):
    """The events of each function against the program's own clock and count"""
    for name, reason in REASON.items():
        mine = [e for e in events if e.get("reason", 0) == reason]
        within = [sum(start <= e["start"] and e["time"] <= end for e in mine) for start, end, *_ in waits[name]]
        ok(within == [1] * ROUNDS and len(mine) == ROUNDS, f"{name}: each of {ROUNDS} waits has an event", len(mine), within)
        off_cpu(f"{name}: their time is what the program measured", waits[name], events, rec.steal)
        wrong = [e for e in mine if not any(f.name == name for f in python_of(stacks.stack(e.get("stack", 0))))]
        ok(len(wrong) <= 1, f"{name}: they have the function's stack", f"{len(wrong)} of {len(mine)} do not")


def length(some):
    return sum(e["time"] - e["start"] for e in some) / STACK_NS


rec, waits, events, stacks = record()
check_all(rec, waits, events, stacks)
short = [e for e in events if e["time"] - e["start"] < STACK_NS]
own = [e for e in short if not e.get("estimated", 0) and e.get("stack", 0)]
# The wait that completes a sum gets a stack. The sums are drawn from 2.5 to 7.5 ms: 5 ms on average, with a standard
# deviation of 5 ms / sqrt(12), and what a wait exceeds its sum by is a part of that wait. The first waits all get one.
n, chance = len(own) - FIRST_STACKS, Z * math.sqrt(len(own) / 12)
ok(length(short) - length(own) - 1.5 - chance <= n <= length(short) + chance + FIRST_STACKS,
   f"of {len(short)} short ones, one for some 5 ms has a stack of its own", f"{len(own)}, {length(short):.1f} times 5 ms, {length(own):.1f} of them in these")
ok(not any(e.get("estimated", 0) for e in events if e["time"] - e["start"] >= STACK_NS), "intervals of 5 ms or longer have their own")

rec, waits, events, stacks = record("--sample=stacks")
check_all(rec, waits, events, stacks)
ok(not any(e.get("estimated", 0) for e in events), "--sample=stacks: each interval has its own")
done()
