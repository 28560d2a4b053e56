#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits
"""A process of several threads without a runtime that waits often is followed; one of a single thread is not."""
import os

from recording import Recording, compile_c
from tap import done, ok

HOLD_NS = 40_000_000
HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    rec = Recording([compile_c(os.path.join(HERE, "lock_work.c"))], "proc,sched,sample", ["--off-cpu"], stop_at="end", named=False)
    waits = [e for e in rec.trace.events("sample_off") if e["pid"] == rec.pid and e.get("futex")]
    # from when each of the two threads is followed; a wait that is shorter than most holds may be for a CPU
    followed = max((min(e["start"] for e in waits if e["tid"] == tid) for tid in {e["tid"] for e in waits}), default=0)
    true = [tuple(map(int, line.split()[1:])) for line in rec.output if line.startswith("wait")]
    true = [(begin, end) for begin, end in true if begin > followed and end - begin > HOLD_NS]
    missing = [w for w in true if not any(w[0] <= e["start"] and e["time"] <= w[1] for e in waits)]
    ok(followed and len(true) >= 4 and not missing, f"the {len(true)} waits of a process without a runtime are recorded", missing)
    ok(waits and all(e.get("stack") for e in waits), "with their stacks")
    ok(any(e["pid"] == rec.pid for e in rec.trace.events("sched_off")), "and its threads' scheduling")
    child = int(rec.output[0])
    ok(not any(e["pid"] == child for e in rec.trace.events("sched_off")), "a process of one thread that sleeps is not followed")
    done()


main()
