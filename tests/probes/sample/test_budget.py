#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Off-CPU intervals of 1 to 5 ms: all are recorded, some get a stack, and the others have that of a similar interval."""
import collections
import json

from recording import Recording
from sample_lib import WORK, Stacks, python_of
from tap import done, ok

STACK_NS = 5_000_000 # SAMPLE_STACK_NS
PYTHON3 = "/usr/bin/python3"
REASON = {"nap": 4, "wait_for_lock": 3}


def record(*options):
    rec = Recording([PYTHON3, WORK, "short", "2"], "sample", ["--off-cpu", *options])
    work = json.loads(rec.output[-1])
    events = [e for e in rec.of("sample_off") if e["tid"] == rec.pid and not e["flags"]]
    return work["functions"], work["calls"], events, Stacks(rec.trace)


def check_all(truth, calls, events, stacks):
    """The events of each function against the program's own clock and count"""
    for name, reason in REASON.items():
        mine = [e for e in events if e.get("reason", 0) == reason]
        ns = sum(e["time"] - e["start"] for e in mine)
        ok(len(mine) == calls[name], f"{name}: each of {calls[name]} waits has an event", len(mine))
        ok(0.95 * truth[name] < ns <= 1.01 * truth[name], f"{name}: their time is within 5%", f"{ns} of {truth[name]}")
        wrong = [e for e in mine if not any(f.name == name for f in python_of(stacks.stack(e.get("stack", 0))))]
        ok(len(wrong) <= 1, f"{name}: they have the function's stack", f"{len(wrong)} of {len(mine)} do not")


truth, calls, events, stacks = record()
check_all(truth, calls, events, stacks)
short = [e for e in events if e["time"] - e["start"] < STACK_NS]
estimated = [e for e in short if e.get("estimated", 0)]
without = [e for e in short if not e.get("stack", 0)]
due = sum(e["time"] - e["start"] for e in short) / STACK_NS
own = len(short) - len(estimated) - len(without)
# the sum is drawn from 2.5 to 7.5 ms, and a wait of 3 ms may exceed it by as much; the first 16 waits all have one
ok(0.6 * due < own < 1.1 * due + 20, f"of {len(short)} short ones, one for some 5 ms has a stack of its own", f"{own}, {due:.1f} times 5 ms")
own = collections.Counter(e["reason"] for e in short if not e.get("estimated", 0))
ok(min(own[r] for r in REASON.values()) > 50, "waits of both functions are among these", own)
ok(len(estimated) > len(short) / 4, "the others have that of another one", collections.Counter(e.get("estimated", 0) for e in short))
ok(not any(e.get("estimated", 0) for e in events if e["time"] - e["start"] >= STACK_NS), "intervals of 5 ms or longer have their own")

truth, calls, events, stacks = record("--sample=stacks")
check_all(truth, calls, events, stacks)
ok(not any(e.get("estimated", 0) for e in events), "--sample=stacks: each interval has its own")
done()
