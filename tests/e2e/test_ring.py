#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The rings between the probes and the loader, flooded by threads that outnumber the CPUs while the scheduler's probes run
in between. With rings of 8 KiB most records don't fit: the recorded calls and those counted as lost must add up to
all calls. With default rings nothing is lost. Every record is complete and recorded once.

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


def record(library, calls, switch):
    path = os.path.join(TMP, "trace.sonde")
    target = subprocess.Popen([os.path.join(B, "tests/workloads/call_flood"), library, str(THREADS), str(calls)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    target.stdout.readline()
    sonde = Sonde(path, "-t", "cuda,sched,proc", "-p", str(target.pid), mode=switch)
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


def flood(library, calls, switch):
    trace, pid, said = record(library, calls, switch)
    events = list(trace.events("cuda_copy"))
    family = next(e.id >> 8 for e in trace.by_id.values() if e.name == "cuda_copy")
    losses = list(trace.events("meta_loss"))
    lost = sum(e["count"] for e in losses if e["family"] == family and e["reason"] == RING_FULL)
    # losses from other processes' mappings don't matter to this test
    others = [e for e in losses if e["reason"] not in (RING_FULL, BLIND) and e["pid"] in (0, pid)]
    return len(events), lost, broken(events, pid, calls), others, said


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


main()
done()
