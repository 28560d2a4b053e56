#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The rings between the probes and the loader, flooded by threads that outnumber the CPUs while the scheduler's probes run
in between. With rings of 8 KiB most records don't fit: the recorded calls and those counted as lost must add up to
all calls. With default rings nothing is lost, not even while sonde waits for a second for the name of a sampled function.
Every record is complete and recorded once.

Environment: FLOODS (2), rounds of each kind.
"""
import os
import shutil
import subprocess

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
FLOODS = int(os.environ.get("FLOODS", 2))
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok

THREADS = 4
RING_FULL, BLIND = 1, 8
RETURNS = 2  # a call of the fake library's cudaMemcpy


def record(library, calls, switch, *options):
    path = os.path.join(TMP, "trace.sonde")
    target = subprocess.Popen([os.path.join(B, "tests/workloads/call_flood"), library, str(THREADS), str(calls)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    target.stdout.readline()
    sonde = Sonde(path, *(options or ("-t", "cuda,sched,proc")), "-p", str(target.pid), mode=switch)
    target.communicate("go\n")
    sonde.end(None)
    return Trace(path, verify=True), target.pid, sonde.messages


def broken(events, pid, calls):
    """Faulty records. A thread's calls must follow one another by number and in time."""
    last = {}
    for e in sorted(events, key=lambda e: (e["tid"], e["bytes"])):
        if e["pid"] != pid or not 0 < e["bytes"] <= calls or e["ret"] != RETURNS or e["flags"] or e["cpu"] >= os.cpu_count():
            return f"not what was called: {e}"
        before = last.get(e["tid"])
        if before and before["bytes"] == e["bytes"]:
            return f"came twice: {e}"
        if e["start"] > e["time"] or (before and e["start"] < before["time"]):
            return f"times: {before}, {e}"
        last[e["tid"]] = e
    return f"{len(last)} threads" if len(last) != THREADS else ""


def flood(library, calls, switch, *options):
    trace, pid, said = record(library, calls, switch, *options)
    events = list(trace.events("cuda_copy"))
    family = next(e.id >> 8 for e in trace.by_id.values() if e.name == "cuda_copy")
    losses = list(trace.events("meta_loss"))
    lost = sum(e["count"] for e in losses if e["family"] == family and e["reason"] == RING_FULL)
    # losses from other processes' mappings don't matter to this test
    others = [e for e in losses if e["reason"] not in (RING_FULL, BLIND) and e["pid"] in (0, pid)]
    return len(events), lost, broken(events, pid, calls), others, said


def slow_examination(library):
    """The records of these calls exceed the rings, and come within the second in which the symbols of the program are read."""
    calls = 60000
    came, lost, why, _, said = flood(library, calls, "examine-slow:*/call_flood", "-t", "cuda,sample", "-F", "99")
    ok(came == THREADS * calls and not lost, "the rings are read while a function's name is awaited",
       f"{came} recorded and {lost} lost of {THREADS * calls}: {said}")
    ok(not why, "and the records stay in order", why)


def main():
    library = os.path.join(TMP, "libcudart.so.99")
    shutil.copy(os.path.join(B, "tests/fakes/libcudart.so"), library)
    for _ in range(FLOODS):
        # fewer than fit in one ring, even if all calls are on one CPU and none is read meanwhile
        calls = 8000
        came, lost, why, others, said = flood(library, calls, "")
        ok(came == THREADS * calls and not lost, "default rings: every call is recorded",
           f"{came} recorded and {lost} lost of {THREADS * calls}: {said}")
        ok(not why, "default rings: each record is complete and unique", why)
        calls = 25000
        came, lost, why, others, said = flood(library, calls, "small-ring")
        print(f"# {lost} of {THREADS * calls} lost")
        ok(lost > 0, "small rings overflow")
        ok(came + lost == THREADS * calls, "small rings: every call is recorded or counted as lost",
           f"{came} recorded and {lost} lost of {THREADS * calls}: {said}")
        ok(not why, "small rings: each record is complete and unique", why)
        ok(not others, "nothing is lost for other reasons", others)
    slow_examination(library)


main()
done()
