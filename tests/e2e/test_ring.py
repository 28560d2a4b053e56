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
from other_work import DISTURBED, OtherWork
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip

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
    return trace, events, lost, broken(events, pid, calls), others, said


def awaited_bytes(trace, events):
    """Of the records, those that came while no frame got its name: in the longest time between two frames"""
    begin = min(e["time"] for e in events)
    named = [begin] + sorted(e["time"] for e in trace.events("meta_frame") if e["time"] > begin)
    since, until = max(zip(named, named[1:]), key=lambda pair: pair[1] - pair[0], default=(0, 0))
    return sum(since < e["time"] < until for e in events) * next(e.size for e in trace.by_id.values() if e.name == "cuda_copy")


def slow_examination(library):
    """
    While the symbols of the program are read, which takes a second of CPU time, more calls are made than fit in the rings that
    the threads can fill: on a busy machine this may need several tries.
    """
    calls, what = 60000, "the rings are read while a function's name is awaited"
    rings = min(THREADS, os.cpu_count()) * min(4 << 20, max(256 << 10, (64 << 20) // os.cpu_count()))
    for _ in range(6):
        work = OtherWork()
        trace, events, lost, why, _, said = flood(library, calls, "examine-slow:*/call_flood", "-t", "cuda,sample", "-F", "99")
        # a worker that gets no CPU loses records, too, and says so
        starved = lost and not why and len(events) + lost == THREADS * calls and work.share() > DISTURBED
        if not starved and (len(events) != THREADS * calls or lost or why or awaited_bytes(trace, events) > rings):
            ok(len(events) == THREADS * calls and not lost, what, f"{len(events)} recorded and {lost} lost of {THREADS * calls}: {said}")
            ok(not why, "and the records stay in order", why)
            return
    skip(what, f"other work took CPU time from the reader in each of six recordings: {lost} records were lost" if lost else
         f"{awaited_bytes(trace, events)} bytes of records came meanwhile, and {rings} fit in the rings")


def main():
    library = os.path.join(TMP, "libcudart.so.99")
    shutil.copy(os.path.join(B, "tests/fakes/libcudart.so"), library)
    for _ in range(FLOODS):
        # fewer than fit in one ring, even if all calls are on one CPU and none is read meanwhile
        calls = 8000
        _, events, lost, why, others, said = flood(library, calls, "")
        came = len(events)
        ok(came == THREADS * calls and not lost, "default rings: every call is recorded",
           f"{came} recorded and {lost} lost of {THREADS * calls}: {said}")
        ok(not why, "default rings: each record is complete and unique", why)
        calls = 25000
        _, events, lost, why, others, said = flood(library, calls, "small-ring")
        came = len(events)
        print(f"# {lost} of {THREADS * calls} lost")
        ok(lost > 0, "small rings overflow")
        ok(came + lost == THREADS * calls, "small rings: every call is recorded or counted as lost",
           f"{came} recorded and {lost} lost of {THREADS * calls}: {said}")
        ok(not why, "small rings: each record is complete and unique", why)
        ok(not others, "nothing is lost for other reasons", others)
    slow_examination(library)


main()
done()
