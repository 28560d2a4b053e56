#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test:
"""Off-CPU time by Python function and reason, compared with the program's own clock."""
import collections
import json

from bounds import share
from recording import EVENT_OPEN, Recording
from sample_lib import WORK, Stacks, off_cpu, python_of
from tap import done, ok

PREEMPTED, GIL, LOCK, SLEEP, IO, CHILD = 1, 2, 3, 4, 8, 9
PYTHON3 = "/usr/bin/python3"


def sleeps():
    rec = Recording([PYTHON3, WORK, "sleep", "50"], "sample", ["--off-cpu"])
    waits = json.loads(rec.output[-1])["waits"]
    stacks = Stacks(rec.trace)
    events = [e for e in rec.of("sample_off") if e["tid"] == rec.pid]
    expected = {"nap": {SLEEP}, "wait_for_lock": {LOCK}, "wait_for_pipe": {IO, GIL}, "wait_for_child": {CHILD}}
    for name, reasons in expected.items():
        mine = [e for e in events if any(f.name == name for f in python_of(stacks.stack(e.get("stack", 0))))]
        off_cpu(f"{name}: its time is what the program measured", waits[name], mine, rec.steal)
        # a pipe may have the byte already, if the thread gets no CPU for long; or it waits for the GIL of the writer
        found = collections.Counter(e.get("reason", 0) for e in mine)
        ok(found[min(reasons - {GIL})] and set(found) <= reasons | {PREEMPTED}, f"{name}: the reason is right", found)
    bare = [e for e in rec.of("sample_off") if not e.get("stack", 0) and not e["flags"]]
    ok(not bare, "each of the program's off-CPU intervals has a stack", bare)


def gil():
    rec = Recording([PYTHON3, WORK, "gil", "3"], "sample", ["--off-cpu", "-F", "199"])
    stacks, by_thread = Stacks(rec.trace), collections.defaultdict(list)
    for e in rec.of("sample_off"):
        if e.get("reason", 0) == GIL and e["tid"] != rec.pid:
            by_thread[e["tid"]].append([f.name for f in python_of(stacks.stack(e.get("stack", 0)))])
    # the first and last ones may be in the code that starts and ends the thread
    ok(len(by_thread) == 2 and all(len(waits) > 2 and all("spin" in names for names in waits[1:-1]) for waits in by_thread.values()),
       "two threads that compute wait for the GIL, in their own lines", {t: len(w) for t, w in by_thread.items()})
    held = [e.get("gil", 0) == 1 for e in rec.of("sample_cpu") if e["tid"] != rec.pid]
    share("threads on a CPU hold the GIL", sum(held) / max(1, len(held)), 1, len(held), systematic=0.05,
          why="a thread that waits runs for some 20 us in each switch interval of 5 ms")


def hang():
    rec = Recording([PYTHON3, WORK, "hang", "4"], "sample", ["--off-cpu"], stop_at="hanging")
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
