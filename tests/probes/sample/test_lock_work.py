#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits
"""A process of several threads without a runtime that waits often is followed; one of a single thread is not."""
import os

from recording import Recording, compile_c
from tap import done, ok

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    rec = Recording([compile_c(os.path.join(HERE, "lock_work.c"))], "proc,sched,sample", ["--off-cpu"], stop_after=4, named=False)
    waits = [e for e in rec.trace.events("sample_off") if e["pid"] == rec.pid and e.get("futex")]
    waited = sum(e["time"] - e["start"] for e in waits)
    # from when the process is followed; of its two threads one waits at any time
    followed = max((e["time"] for e in waits), default=0) - min((e["start"] for e in waits), default=0)
    ok(len(waits) >= 4 and waited > 0.8 * followed, "the waits of a process without a runtime are recorded",
       f"{len(waits)} waits, {waited} ns of {followed}")
    ok(waits and all(e.get("stack") for e in waits), "with their stacks")
    ok(any(e["pid"] == rec.pid for e in rec.trace.events("sched_off")), "and its threads' scheduling")
    child = int(rec.output[0])
    ok(not any(e["pid"] == child for e in rec.trace.events("sched_off")), "a process of one thread that sleeps is not followed")
    done()


main()
